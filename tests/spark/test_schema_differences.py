"""Differences between two schemas: what is missing, which types differ, and the types as SQL."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from headrace.spark.schema_differences import Difference, differences, sql_type, with_added_fields

OLD = StructType().add("id", StringType()).add("n", IntegerType()).add("gone", DateType())
NEW = StructType().add("ID", StringType(), nullable=False).add("more", LongType()).add("n", DoubleType())


def nested(inner):
    """Return a schema with the type as a field, and in an array and a map."""
    struct = StructType().add("inner", inner)
    return StructType().add("s", struct).add("a", ArrayType(struct)).add("m", MapType(StringType(), struct))


def test_missing_columns_and_other_types_are_found():
    found = [(each.name, each.old_type, each.new_type) for each in differences(OLD, NEW)]
    assert found == [("n", "INT", "DOUBLE"), ("gone", "DATE", ""), ("more", "", "BIGINT")]


def test_fields_in_structs_arrays_and_maps_are_compared():
    old, new = StructType().add("x", IntegerType()), StructType().add("x", LongType()).add("y", StringType())
    found = [(each.sql_name, each.old_type, each.new_type) for each in differences(nested(old), nested(new))]
    paths = ["`s`.`inner`", "`a`.`element`.`inner`", "`m`.`value`.`inner`"]
    assert found == [
        difference for path in paths for difference in ((f"{path}.`x`", "INT", "BIGINT"), (f"{path}.`y`", "", "STRING"))
    ]


def test_added_fields_are_the_last_ones_of_their_structs():
    old = StructType().add("x", IntegerType())
    merged = with_added_fields(nested(old), nested(StructType().add("y", StringType()).add("X", LongType())))
    assert merged == nested(StructType().add("x", IntegerType()).add("y", StringType()))
    assert with_added_fields(OLD, NEW).names == ["id", "n", "gone", "more"]


def test_types_in_sql_have_quoted_names():
    inner = StructType().add("e`mail", StringType())
    assert sql_type(nested(inner)["m"].dataType) == "MAP<STRING, STRUCT<`inner`: STRUCT<`e``mail`: STRING>>>"
    assert sql_type(ArrayType(DecimalType(12, 2))) == "ARRAY<DECIMAL(12,2)>"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (IntegerType(), LongType(), True),
        (IntegerType(), DecimalType(12, 2), True),
        (LongType(), IntegerType(), False),
        (IntegerType(), StringType(), False),
        (DecimalType(10, 2), DecimalType(12, 4), True),
        (DecimalType(10, 2), DecimalType(11, 4), False),
        (DecimalType(10, 2), DecimalType(12, 1), False),
        (None, LongType(), False),
    ],
)
def test_widening_is_recognised(old, new, expected):
    assert Difference(("n",), old, new).is_widening is expected
