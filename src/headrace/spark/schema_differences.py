"""Compare two schemas: the columns, and the fields in columns, that only one of them has or whose types differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# The types to which Delta can widen a type (4.4.0).
WIDER_TYPES = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT", "DOUBLE"),
    "SMALLINT": ("INT", "BIGINT", "DOUBLE"),
    "INT": ("BIGINT", "DOUBLE"),
    "FLOAT": ("DOUBLE",),
    "DATE": ("TIMESTAMP_NTZ",),
}

# The digits before the point that a decimal type needs, so that Delta can widen an integer type to it.
DECIMAL_DIGITS = {"TINYINT": 10, "SMALLINT": 10, "INT": 10, "BIGINT": 20}


class Difference(NamedTuple):
    """A column, or a field in a column, that two schemas do not have in common.

    `path` is the name of the column, then those of the fields in it. As in Delta's SQL, the parts of arrays and maps
    are fields named `element`, `key` and `value`.
    """

    path: tuple[str, ...]
    old: DataType | None  # its type in the old schema; None if that schema lacks it
    new: DataType | None

    @property
    def name(self) -> str:
        """The name for messages, like "customer.email"."""
        return ".".join(self.path)

    @property
    def sql_name(self) -> str:
        """The name in SQL."""
        return ".".join(map(quote_name, self.path))

    @property
    def old_type(self) -> str:
        """The type in the old schema, in SQL; empty if that schema lacks the column."""
        return sql_type(self.old) if self.old else ""

    @property
    def new_type(self) -> str:
        """The type in the new schema, likewise."""
        return sql_type(self.new) if self.new else ""

    @property
    def is_widening(self) -> bool:
        """Whether Delta can change the old type to the new one without rewriting files: its type widening."""
        from pyspark.sql.types import DecimalType

        if isinstance(self.old, DecimalType) and isinstance(self.new, DecimalType):
            digits = self.new.precision - self.new.scale, self.old.precision - self.old.scale
            return digits[0] >= digits[1] and self.new.scale >= self.old.scale
        if isinstance(self.new, DecimalType) and self.old_type in DECIMAL_DIGITS:
            return self.new.precision - self.new.scale >= DECIMAL_DIGITS[self.old_type]
        return self.new_type in WIDER_TYPES.get(self.old_type, ())


def differences(old: StructType, new: StructType, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield the differences between two schemas. Order, upper and lower case, and nullability do not count."""
    old_types = {field.name.lower(): (field.name, field.dataType) for field in old}
    new_types = {field.name.lower(): field.dataType for field in new}
    for key, (name, data_type) in old_types.items():
        if key in new_types:
            yield from _different_types(data_type, new_types[key], (*path, name))
        else:
            yield Difference((*path, name), data_type, None)
    for field in new:
        if field.name.lower() not in old_types:
            yield Difference((*path, field.name), None, field.dataType)


def with_added_fields(old: StructType, new: StructType) -> StructType:
    """Return the old schema with the columns and fields that only the new one has, each at the end of its struct."""
    from pyspark.sql.types import StructField, StructType

    new_types = {field.name.lower(): field.dataType for field in new}
    known = {field.name.lower() for field in old}
    kept = [
        StructField(
            field.name,
            _merged_type(field.dataType, new_types.get(field.name.lower(), field.dataType)),
            field.nullable,
            field.metadata,
        )
        for field in old
    ]
    return StructType([*kept, *(field for field in new if field.name.lower() not in known)])


def sql_type(data_type: DataType) -> str:
    """Return a data type in SQL, with names of fields in backticks, because these may have any characters."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(data_type, StructType):
        return f"STRUCT<{', '.join(f'{quote_name(field.name)}: {sql_type(field.dataType)}' for field in data_type)}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{sql_type(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{sql_type(data_type.keyType)}, {sql_type(data_type.valueType)}>"
    return data_type.simpleString().upper()


def _merged_type(old: DataType, new: DataType) -> DataType:
    """Return the old type with the fields that only the new one has."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(old, StructType) and isinstance(new, StructType):
        return with_added_fields(old, new)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(_merged_type(old.elementType, new.elementType), old.containsNull)
    if isinstance(old, MapType) and isinstance(new, MapType):
        key, value = _merged_type(old.keyType, new.keyType), _merged_type(old.valueType, new.valueType)
        return MapType(key, value, old.valueContainsNull)
    return old


def _different_types(old: DataType, new: DataType, path: tuple[str, ...]) -> Iterator[Difference]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(old, StructType) and isinstance(new, StructType):
        yield from differences(old, new, path)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _different_types(old.elementType, new.elementType, (*path, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _different_types(old.keyType, new.keyType, (*path, "key"))
        yield from _different_types(old.valueType, new.valueType, (*path, "value"))
    elif old != new:
        yield Difference(path, old, new)
