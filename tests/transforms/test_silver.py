"""join_static: joining a stream with dimensions."""

import pytest

from headrace.testing import Input
from headrace.transforms.silver import join_static

ORDERS = Input("id int, customer string, product string")
ORDER = [(1, "ann", "pen"), (2, "ben", "ink")]


@pytest.fixture
def customers(spark):
    return spark.createDataFrame([("Berlin", "ann"), ("Rome", None)], "city string, customer string")


@pytest.fixture
def products(spark):
    return spark.createDataFrame([("ink", 3), ("pen", 2)], "product string, price int")


def test_left_join_keeps_rows_without_a_match_and_column_order(stream, customers):
    joined = stream.start(join_static, {"orders": ORDERS, "customers": customers}, keys=["customer"])
    out = joined.feed(ORDER)
    assert sorted(out) == [(1, "ann", "pen", "Berlin"), (2, "ben", "ink", None)]
    assert out[0].__fields__ == ["id", "customer", "product", "city"]


def test_inner_join_drops_rows_without_a_match_and_null_keys(stream, customers):
    joined = stream.start(join_static, {"orders": ORDERS, "customers": customers}, keys=["customer"], how="inner")
    assert joined.feed([*ORDER, (3, None, "pen")]) == [(1, "ann", "pen", "Berlin")]


def test_several_dimensions_with_different_keys(stream, customers, products):
    inputs = {"orders": ORDERS, "customers": customers, "products": products}
    keys = {"products": ["product"], "customers": ["customer"]}
    out = stream.run(join_static, inputs, [ORDER, [(3, "ann", "ink")]], keys=keys)
    assert sorted(out[0]) == [(1, "ann", "pen", 2, "Berlin"), (2, "ben", "ink", 3, None)]
    assert out[1] == [(3, "ann", "ink", 3, "Berlin")]


def test_several_dimensions_with_the_same_keys(stream, spark, customers):
    ages = spark.createDataFrame([("ann", 30)], "customer string, age int")
    out = stream.run(join_static, {"orders": ORDERS, "customers": customers, "ages": ages}, [ORDER], keys=["customer"])
    assert sorted(out[0]) == [(1, "ann", "pen", "Berlin", 30), (2, "ben", "ink", None, None)]


def test_composite_key_must_match_in_all_columns(stream, spark):
    prices = spark.createDataFrame([("ann", "pen", 1), ("ann", "ink", 9)], "customer string, product string, price int")
    out = stream.run(join_static, {"orders": ORDERS, "prices": prices}, [ORDER], keys=["customer", "product"])
    assert sorted(out[0]) == [(1, "ann", "pen", 1), (2, "ben", "ink", None)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keys": ["customer"], "how": "outer"}, "how must be 'left' or 'inner', not 'outer'"),
        (
            {"keys": "customer"},
            "keys of 'customers' must be a list of one or more column names, not 'customer'",
        ),
        ({"keys": []}, r"keys of 'customers' must be a list of one or more column names, not \[\]"),
        ({"keys": ["nr"]}, r"unknown columns \['nr'\]; the columns of the stream are \['id', "),
        ({"keys": ["id"]}, r"unknown columns \['id'\]; the columns of dimension 'customers' are \['city', "),
        (
            {"keys": {"shops": ["id"]}},
            r"'keys' names \['shops'\], but the dimensions are \['customers'\]",
        ),
    ],
)
def test_invalid_settings_are_an_error(stream, customers, settings, message):
    with pytest.raises(ValueError, match=message):
        stream.start(join_static, {"orders": ORDERS, "customers": customers}, **settings)


def test_columns_with_equal_names_are_an_error(stream, products):
    orders = Input("id int, product string, price int")
    with pytest.raises(ValueError, match=r"dimension 'products' has columns \['price'\]"):
        stream.start(join_static, {"orders": orders, "products": products}, keys=["product"])


def test_missing_dimension_is_an_error(stream):
    with pytest.raises(ValueError, match="no dimension to join"):
        stream.start(join_static, {"orders": ORDERS}, keys=["customer"])
