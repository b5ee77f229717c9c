"""A fingerprint changes with what code does, not with how it is written."""

from __future__ import annotations

import importlib
import sys
from textwrap import dedent

import pytest

from headrace.signatures import library_code
from headrace.signatures.code_fingerprint import code_fingerprint

ORIGINAL = """
    import functools
    import math
    import re

    RATE = 2
    CODES = {"a", "b", "c"}
    PATTERN = re.compile("x" * 300)

    def helper(value):
        return value * RATE

    @functools.cache
    def cached(value):
        return value - 1

    def convert(amount, discount=0.5, *, ceiling=100):
        result = helper(amount) - discount
        return min(math.floor(result), ceiling) if amount in CODES else cached(amount)

    def constant(value):
        return value + 1

    def closure(offset, scale):
        def shifted(value):
            return (value + offset) * scale
        return shifted

    def minus(left, right):
        return left - right

    def matches(text):
        return PATTERN.match(text)

    def imports(value):
        import math as maths
        return maths.sin(value)

    class Rounder:
        digits = 2

        def __init__(self, step):
            self.step = step

        def __call__(self, value):
            return round(value / self.step, self.digits)

        @property
        def double(self):
            return self.step * 2

    shift = closure(1, 3)
    rounder = Rounder(5)
    convert_twice = functools.partial(convert, discount=1)
"""

_versions = iter(range(1000))


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return a function that imports a module with the given source, under the same name each time."""

    def load_module(source):
        directory = tmp_path / str(next(_versions))
        directory.mkdir()
        (directory / "shop_rules.py").write_text(dedent(source))
        sys.modules.pop("shop_rules", None)
        with monkeypatch.context() as context:
            context.syspath_prepend(str(directory))
            return __import__("shop_rules")

    yield load_module
    sys.modules.pop("shop_rules", None)


NAMES = (
    "convert",
    "constant",
    "closure",
    "shift",
    "minus",
    "matches",
    "imports",
    "Rounder",
    "rounder",
    "convert_twice",
)


def fingerprints(module):
    return {name: code_fingerprint(getattr(module, name)) for name in NAMES}


@pytest.mark.parametrize(
    "replacements",
    [
        {"def helper(value):": "# A comment.\n\n    def helper(value):"},
        {"def helper(value):": 'def helper(value):\n        """Return something."""'},
        {"class Rounder:": 'class Rounder:\n        """Round."""\n'},
        {"def minus(left, right):": "def minus(left: int, right: 'int | None') -> int:"},
        {"import functools\n": "from __future__ import annotations\n    import functools\n"},
        {"result": "renamed"},
        {"left": "a", "right": "b"},
        {"maths": "m"},
        {"offset": "z_offset", "scale": "a_scale"},  # closures are laid out in alphabetical order
        {'{"a", "b", "c"}': '{"c", "b", "a"}'},
    ],
)
def test_spelling_does_not_matter(load, replacements):
    source = ORIGINAL
    for old, new in replacements.items():
        assert old in source
        source = source.replace(old, new)
    assert fingerprints(load(source)) == fingerprints(load(ORIGINAL))


FORMATTED = """
    def use(a, b, c):
        while True:
            if a:
                break
            a += 1
        try:
            b = int(b) if a and (b or c) else 0
        except ValueError:
            pass
        finally:
            a = 1
        with open(a) as file:
            lines = [line for line in file if line and a < b < c or not line]
        match lines:
            case [1 | 2]:
                return lines
            case _:
                return b
"""
REFORMATTED = """
    def use(
        a, b, c
    ):
        while (
            True
        ):
            if a: break
            a += 1
        try: b = int(b) if a and (b or c) else 0
        except ValueError: pass
        finally: a = 1
        with open(
            a
        ) as file:
            lines = [
                line
                for line in file
                if line
                and a
                < b
                < c
                or not line
            ]
        match lines:
            case [
                1
                | 2
            ]: return lines
            case _: return (
                b
            )
"""


def test_formatting_does_not_matter(load):
    assert code_fingerprint(load(REFORMATTED).use) == code_fingerprint(load(FORMATTED).use)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if a:", "if not a:"),
        ("a and (b or c)", "a or (b and c)"),
        ("a and (b or c)", "(a and b) or c"),
        ("a and (b or c) else 0", "a else 0"),
        ("break", "continue"),
        ("except ValueError:", "except TypeError:"),
        ("finally:", "else:"),
        ("a < b < c", "a < b and c"),
        ("1 | 2", "2 | 1"),
        ("return lines", "raise lines"),
    ],
)
def test_control_flow_matters(load, old, new):
    assert FORMATTED.count(old) == 1
    assert code_fingerprint(load(FORMATTED.replace(old, new)).use) != code_fingerprint(load(FORMATTED).use)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("value + 1", "value + 2", {"constant"}),
        ("value + 1", "value - 1", {"constant"}),
        ("value * RATE", "value / RATE", {"convert", "convert_twice"}),  # a helper
        ("RATE = 2", "RATE = 3", {"convert", "convert_twice"}),  # a global of a helper
        ("value - 1", "value - 2", {"convert", "convert_twice"}),  # a helper behind functools.cache
        ('"c"}', '"d"}', {"convert", "convert_twice"}),
        ("discount=0.5", "discount=0.6", {"convert", "convert_twice"}),
        ("ceiling=100", "ceiling=101", {"convert", "convert_twice"}),
        ("math.floor", "math.ceil", {"convert", "convert_twice"}),
        ("closure(1, 3)", "closure(2, 3)", {"shift"}),
        ("closure(1, 3)", "closure(3, 1)", {"shift"}),
        ("(value + offset) * scale", "(value + scale) * offset", {"closure", "shift"}),
        ("left - right", "right - left", {"minus"}),
        ('"x" * 300', '"x" * 301', {"matches"}),
        ("maths.sin", "maths.cos", {"imports"}),
        ("digits = 2", "digits = 3", {"Rounder", "rounder"}),
        ("self.step * 2", "self.step * 3", {"Rounder", "rounder"}),
        ("Rounder(5)", "Rounder(6)", {"rounder"}),
        ("(convert, discount=1)", "(convert, discount=2)", {"convert_twice"}),
    ],
)
def test_behaviour_matters(load, old, new, changed):
    assert ORIGINAL.count(old) == 1
    before, after = fingerprints(load(ORIGINAL)), fingerprints(load(ORIGINAL.replace(old, new)))
    assert {name for name in NAMES if before[name] != after[name]} == changed


def test_directory_of_the_package_does_not_matter(load):
    """Each module is loaded from another directory."""
    source = """
        import os
        from pathlib import Path

        CODES = Path(__file__).parent / "codes.json"
        NAMES = os.path.join(os.path.dirname(__file__), "names.json")
        SHARED = Path("/data/shared.json")

        def use(value):
            return CODES, NAMES, SHARED, __file__
    """
    before = code_fingerprint(load(source).use)
    assert code_fingerprint(load(source).use) == before
    for old, new in (("codes.json", "rates.json"), ("names.json", "n.json"), ("/data/shared", "/data/other")):
        assert code_fingerprint(load(source.replace(old, new)).use) != before


def test_installed_bundle_has_the_same_fingerprints(load, monkeypatch):
    """A deployed bundle is installed beside the libraries."""
    module = load(ORIGINAL)
    before, settings = fingerprints(module), {"rounder": module.rounder}
    of_settings = code_fingerprint(settings, module="shop_rules")
    installed = {"shop_rules", "numpy", "pandas", "pyspark"}
    monkeypatch.setattr(library_code, "_is_installed", installed.__contains__)
    assert fingerprints(module) == before
    assert code_fingerprint(module.rounder.__call__) != code_fingerprint(module.Rounder(6).__call__)
    assert code_fingerprint(settings, module="shop_rules") == of_settings


def test_attribute_of_another_module_of_the_user_matters(load, tmp_path, monkeypatch):
    other = tmp_path / "shop_limits.py"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files of the same second and size would not be read again
    monkeypatch.syspath_prepend(str(tmp_path))
    results = []
    for limit in (1, 1, 2):
        other.write_text(f"LIMIT = {limit}\nUNUSED = {len(results)}\n")
        sys.modules.pop("shop_limits", None)
        module = load("import shop_limits\ndef check(value):\n    return value < shop_limits.LIMIT\n")
        results.append(code_fingerprint(module.check))
    sys.modules.pop("shop_limits", None)
    assert results[0] == results[1] != results[2]


def test_module_that_is_imported_when_the_function_runs_matters(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "shop_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rules.py").write_text(
        "def f(value):\n    from shop_package.rates import RATE\n    return value * RATE\n"
    )
    results = []
    for rate in (1, 1, 2):
        (package / "rates.py").write_text(f"RATE = {rate}\n")
        for name in [name for name in sys.modules if name.startswith("shop_package")]:
            del sys.modules[name]
        results.append(code_fingerprint(importlib.import_module("shop_package.rules").f))
    assert results[0] == results[1] != results[2]


def test_recursion_and_cycles_end(load):
    module = load("""
        class Node:
            def __init__(self, value):
                self.value, self.next = value, self

        def factorial(value):
            return value * factorial(value - 1) if value else 1

        one, two = Node(1), Node(2)
    """)
    assert code_fingerprint(module.factorial)
    assert code_fingerprint(module.one) == code_fingerprint(module.Node(1)) != code_fingerprint(module.two)


def test_values_of_libraries(load):
    module = load("""
        import datetime, decimal, numpy, logging
        def f(value): return value
        def with_default(default):
            return lambda value: value or default
    """)
    with_default = module.with_default

    def of(value):
        return code_fingerprint(with_default(value))

    day, array = module.datetime.date, module.numpy.arange
    assert of(day(2026, 1, 1)) == of(day(2026, 1, 1)) != of(day(2026, 1, 2))
    assert of(array(5000)) == of(array(5000)) != of(array(5000) + (array(5000) == 2500))
    assert of(module.logging.getLogger("a")) == of(module.logging.getLogger("b"))
    assert of(module.decimal.Decimal("1.0")) != of(module.decimal.Decimal("1.00"))


def test_class_with_slots_and_subclass_of_a_builtin(load):
    module = load("""
        class Point:
            __slots__ = ("x",)
            def __init__(self, x): self.x = x

        class Codes(list):
            pass
    """)
    assert code_fingerprint(module.Point(1)) == code_fingerprint(module.Point(1)) != code_fingerprint(module.Point(2))
    assert code_fingerprint(module.Codes("a")) != code_fingerprint(module.Codes("b"))


CLASSES = """
    import abc, dataclasses, enum, typing
    import pydantic

    class Colour(enum.Enum):
        RED = 1

    class Code(enum.StrEnum):
        NEW = "new"

    class Level(enum.IntEnum):
        LOW = 1

    class Access(enum.Flag):
        READ = enum.auto()

    class Point(typing.NamedTuple):
        x: int = 0

    @dataclasses.dataclass(frozen=True)
    class Rate:
        value: float = 0.5
        names: list = dataclasses.field(default_factory=list)

    class Shape(abc.ABC, typing.Generic[typing.TypeVar("T")]):
        @abc.abstractmethod
        def area(self): return 1

    class Model(pydantic.BaseModel):
        size: int = 3
        def double(self): return self.size * 2

    class Odd:
        def __getattr__(self, name): raise RuntimeError(name)

    NAMES = Colour.RED, Code.NEW, Level.LOW, Access.READ, Point(2), Rate(0.7), Model(size=4)

    def use(value):
        return NAMES, Shape, Odd
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RED = 1", "RED = 2"),
        ('NEW = "new"', 'NEW = "n"'),
        ("LOW = 1", "LOW = 2"),
        ("x: int = 0", "x: int = 1"),
        ("Point(2)", "Point(3)"),
        ("value: float = 0.5", "value: float = 0.6"),
        ("Rate(0.7)", "Rate(0.8)"),
        ("return 1", "return 2"),
        ("self.size * 2", "self.size * 3"),
        ("Model(size=4)", "Model(size=5)"),
        ("RuntimeError(name)", "ValueError(name)"),
    ],
)
def test_classes_of_all_kinds(load, old, new):
    assert CLASSES.count(old) == 1
    original = code_fingerprint(load(CLASSES).use)
    assert code_fingerprint(load(CLASSES).use) == original
    assert code_fingerprint(load(CLASSES.replace(old, new)).use) != original
