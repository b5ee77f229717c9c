"""Run a transform as a real stream over given rows, with watermarks, state and windows as in production."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

Rows = Sequence[Any]  # each item is a tuple, a dictionary or a pyspark Row, as createDataFrame accepts them
Output = Literal["append", "update", "complete"]  # Spark's output mode


@dataclass(frozen=True)
class Input:
    """A streaming input of a transform. `watermark` is the event-time column and the delay; None sets no watermark."""

    schema: StructType | str
    watermark: tuple[str, str] | None = None


class StreamHarness:
    """Starts transforms as streams; their files and checkpoints are in `directory`."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory

    def start(
        self,
        transform: Callable[..., DataFrame],
        inputs: Input | Mapping[str, Input | DataFrame],
        /,
        *,
        output: Output = "append",
        **settings: Any,
    ) -> Stream:
        """Apply the transform to inputs that have no rows yet. `Stream.feed` adds rows and runs the query.

        `inputs` are passed to the transform's parameters by name; a DataFrame is a static input. A single Input is
        passed to the first parameter. `settings` are the transform's other arguments.
        """
        inputs_by_name = {_first_parameter(transform): inputs} if isinstance(inputs, Input) else inputs
        directory = Path(tempfile.mkdtemp(prefix="stream-", dir=self._directory))
        streaming_inputs = {name: source for name, source in inputs_by_name.items() if isinstance(source, Input)}
        frames = {name: source for name, source in inputs_by_name.items() if not isinstance(source, Input)}
        for name, source in streaming_inputs.items():
            (directory / name).mkdir()
            frames[name] = _read_stream(self._spark, source, directory / name)
        return Stream(self._spark, _call(transform, frames, settings), streaming_inputs, directory, output)

    def run(
        self,
        transform: Callable[..., DataFrame],
        inputs: Input | Mapping[str, Input | DataFrame],
        batches: Sequence[Rows | Mapping[str, Rows]],
        /,
        *,
        output: Output = "append",
        **settings: Any,
    ) -> list[list[Row]]:
        """Start a stream and feed the batches to it, one after the other; return the output rows of each batch.

        A batch is a list of rows for the only streaming input, or a mapping from the names of inputs to their rows.
        """
        stream = self.start(transform, inputs, output=output, **settings)
        return [stream.feed(**batch) if isinstance(batch, Mapping) else stream.feed(batch) for batch in batches]


class Stream:
    """A transform and its streaming inputs. Each `feed` adds rows, and restarts the query from its checkpoint."""

    def __init__(
        self, spark: SparkSession, frame: DataFrame, inputs: Mapping[str, Input], directory: Path, output: Output
    ) -> None:
        self._spark = spark
        self._frame = frame
        self._inputs = inputs
        self._directory = directory
        self._output = output

    def feed(self, rows: Rows = (), /, **by_input: Rows) -> list[Row]:
        """Add rows and process them in one batch; return the output rows.

        `rows` are for the only streaming input; rows for several inputs are passed by input name. Without any rows,
        the query only restarts from its checkpoint.
        """
        if rows and len(self._inputs) != 1:
            raise ValueError(f"the stream has several inputs; pass the rows by input name: {list(self._inputs)}")
        batch = dict(by_input)
        if rows:
            (only_input,) = self._inputs
            batch[only_input] = rows
        if unknown := batch.keys() - self._inputs.keys():
            raise ValueError(f"unknown inputs {sorted(unknown)}; the streaming inputs are {list(self._inputs)}")
        for name, input_rows in batch.items():
            if input_rows:
                frame = self._spark.createDataFrame(input_rows, self._inputs[name].schema)
                frame.coalesce(1).write.mode("append").parquet(str(self._directory / name))
        return self._process_available()

    def _process_available(self) -> list[Row]:
        # All files are written before the query starts, so the rows of all inputs are processed in one batch. If this
        # batch advances the watermark, Spark runs another batch without new rows, which may have output rows too.
        batches: list[list[Row]] = []
        query = (
            self._frame.writeStream.outputMode(self._output)
            .foreachBatch(lambda batch, _: batches.append(batch.collect()))
            .option("checkpointLocation", str(self._directory / "_checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [row for batch in batches for row in batch]


def _read_stream(spark: SparkSession, source: Input, directory: Path) -> DataFrame:
    frame = spark.readStream.schema(source.schema).parquet(str(directory))
    return frame.withWatermark(*source.watermark) if source.watermark else frame


def _first_parameter(transform: Callable[..., DataFrame]) -> str:
    return next(iter(inspect.signature(transform).parameters))


def _call(
    transform: Callable[..., DataFrame], frames: Mapping[str, DataFrame], settings: Mapping[str, Any]
) -> DataFrame:
    """Call the transform as a run does: a positional-only first parameter takes the only streaming input.

    The name of the streaming input then does not matter. All other inputs and the settings are passed by name.
    """
    first = next(iter(inspect.signature(transform).parameters.values()))
    if first.kind is not first.POSITIONAL_ONLY:
        return transform(**frames, **settings)
    (streaming,) = [name for name, frame in frames.items() if frame.isStreaming]
    others = {name: frame for name, frame in frames.items() if name != streaming}
    return transform(frames[streaming], **others, **settings)
