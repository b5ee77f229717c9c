"""Load the Python functions that a query's plan contains in pickled form, and list the state of state processors."""

from __future__ import annotations

from typing import Any

UDF_CLASSES = {"PythonUDF", "PythonUDAF", "PythonUDTF"}


def load_function(expression: Any) -> Any:
    """Return the function of a Python UDF expression. The plan contains it pickled; nothing is read from a file."""
    from pyspark import cloudpickle

    command = cloudpickle.loads(bytes(expression.func().command().unsafeArray()))
    if hasattr(command, "unpersist"):  # pyspark broadcasts commands of more than 1 MB
        command = cloudpickle.loads(command.value)
    return command[0] if isinstance(command, tuple) else command


class StateVariables:
    """Stands in for the handle of a state processor, and records the state variables that its `init` declares."""

    def __init__(self) -> None:
        self.declared: list[str] = []

    def __getattr__(self, method: str) -> Any:
        def declare(name: str = "", *arguments: Any, **options: Any) -> None:
            if method.startswith("get"):
                texts = [_type_text(argument) for argument in arguments]
                texts += [f"{option}={_type_text(value)}" for option, value in sorted(options.items())]
                self.declared.append(f"{name}: {method.removeprefix('get')}({', '.join(texts)})")

        return declare


def declared_state(processor: Any) -> tuple[list[str], dict[str, Any]]:
    """Return the state variables that a processor's `init` declares, and the attributes that the processor had before.

    `init` may change `processor`, because it is only a copy that was loaded from the plan.
    """
    settings = dict(vars(processor))
    variables = StateVariables()
    try:
        processor.init(variables)
    except Exception as error:  # user code, which may need what only a worker has
        variables.declared.append(f"init failed: {type(error).__name__}")
    return sorted(variables.declared), settings


def _type_text(value: Any) -> str:
    from pyspark.sql.types import DataType, StructType

    if isinstance(value, str):
        try:
            return StructType.fromDDL(value).simpleString()
        except Exception:  # not a schema
            return value
    return value.simpleString() if isinstance(value, DataType) else str(value)
