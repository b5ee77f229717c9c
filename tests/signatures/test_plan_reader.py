"""What a signature contains of a plan: lineage, inputs, operators; nothing that differs between sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from signature_queries import empty_inputs, signature_of


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return empty_inputs(spark, tmp_path_factory.mktemp("inputs"))


def lineage(signature):
    return {column.name: column.text for column in signature.output}


def test_lineage_of_columns(inputs):
    rows = inputs.orders.select("id", (F.col("amount") + F.col("fee")).alias("total"))
    rows = rows.withColumnRenamed("id", "order").withColumn("twice", F.col("total") * 2)
    assert lineage(signature_of(rows)) == {
        "order": "orders.id",
        "total": "(orders.amount + orders.fee)",
        "twice": "((orders.amount + orders.fee) * cast(2 as double))",
    }


def test_both_sides_of_a_self_join_are_inputs(inputs):
    left, right = inputs.timed.alias("l"), inputs.timed.alias("r")
    earlier = left.join(right, F.expr("l.id = r.id AND l.at < r.at"))
    later = left.join(right, F.expr("l.id = r.id AND l.at > r.at"))
    signature = signature_of(earlier)
    assert [(source.input, source.name) for source in signature.sources] == [
        ("orders", "table orders"),
        ("orders:2", "table orders"),
    ]
    assert signature.stateful[0].keys[0].text == "(orders.id = orders:2.id)"
    assert signature.stateful[0].properties["condition"] == "(orders.at < orders:2.at)"
    assert signature_of(later).stateful[0].properties["condition"] == "(orders.at > orders:2.at)"


def test_branches_of_a_union_share_their_input(inputs):
    rows = inputs.orders.where("n = 1").select("id").union(inputs.orders.where("n = 2").select("customer"))
    signature = signature_of(rows)
    assert [source.input for source in signature.sources] == ["orders"]
    assert lineage(signature) == {"id": "union(orders.id | orders.customer)"}
    assert signature.filters == ("branch 1: (orders.n = 1)", "branch 2: (orders.n = 2)")


def test_sources_are_in_the_order_of_the_plan(inputs):
    orders, returns = inputs.orders.select("id"), inputs.returns.select("return_id")
    assert [item.input for item in signature_of(orders.union(returns)).sources] == ["orders", "returns"]
    assert [item.input for item in signature_of(returns.union(orders)).sources] == ["returns", "orders"]


def test_data_that_a_transform_opens_itself(spark, inputs):
    rate = spark.readStream.format("rate").load()
    codes = spark.createDataFrame([(1, "a")], "value LONG, code STRING")
    signature = signature_of(rate.join(codes, "value").select("code"))
    assert [(item.kind, item.name) for item in signature.sources] == [("StreamingRelationV2", "")]
    assert len(signature.static_inputs) == 1
    assert "code" in lineage(signature)["code"]


def test_position_of_a_filter_relative_to_state(inputs):
    before = inputs.timed.where("n > 1").dropDuplicates(["id"])
    after = inputs.timed.dropDuplicates(["id"]).where("n > 1")
    assert signature_of(before).filters == ("(orders.n > 1)",)
    assert signature_of(after).filters == ("after dropDuplicates: (orders.n > 1)",)


@pytest.mark.parametrize(
    "column",
    [
        lambda: F.rand(),
        lambda: F.randn(),
        lambda: F.uuid(),
        lambda: F.shuffle(F.array("id", F.upper(F.trim("id")))),
        lambda: F.randstr(5),
        lambda: F.uniform(1, 5),
        lambda: F.transform(F.array("n"), lambda item: item + 1),
        lambda: F.to_json(F.struct("id")),
        lambda: F.from_json("id", "a INT"),
        lambda: F.udf(lambda value: value)("id"),
        lambda: F.monotonically_increasing_id(),
        lambda: F.current_timestamp(),
    ],
)
def test_same_expression_has_the_same_text(inputs, column):
    first, second = signature_of(inputs.orders.select(column())), signature_of(inputs.orders.select(column()))
    assert first == second


def test_literals_that_look_like_column_ids(inputs):
    one, other = (inputs.orders.where(F.col("id") == text) for text in ("x#12", "x#13"))
    assert signature_of(one).filters == ("(orders.id = x#12)",)
    assert signature_of(other).filters == ("(orders.id = x#13)",)


def test_more_columns_than_spark_prints(spark, inputs):
    """By default, Spark prints 25 items of a list (4.2.0)."""
    key = "spark.sql.debug.maxToStringFields"
    before = spark.conf.get(key)
    many = [F.coalesce(*[F.lit(number) for number in (*range(40), last)]).alias("x") for last in (1, 2)]
    first, second = (inputs.orders.select(column) for column in many)
    assert signature_of(first).output != signature_of(second).output
    assert spark.conf.get(key) == before


def test_long_texts_are_shortened(inputs):
    one, other = (inputs.orders.select(F.concat(F.lit("x" * 1000), F.lit(end)).alias("x")) for end in "ab")
    texts = [lineage(signature_of(rows))["x"] for rows in (one, other)]
    assert texts[0] != texts[1]
    assert max(map(len, texts)) < 400


def test_subqueries_and_common_table_expressions(spark, inputs):
    inputs.orders.createOrReplaceTempView("signature_orders")
    inputs.customers.createOrReplaceTempView("signature_customers")

    def filtered(country, columns="customer"):
        return signature_of(
            spark.sql(f"""
                WITH large AS (SELECT customer, amount * 2 AS twice FROM signature_orders WHERE amount > 10)
                SELECT twice FROM large
                WHERE customer IN (SELECT {columns} FROM signature_customers WHERE country = '{country}')
            """)
        )

    try:
        german = filtered("DE")
        assert german == filtered("DE")
        assert german.filters != filtered("FR").filters
        assert german.filters != filtered("DE", "segment").filters
        assert [item.input for item in german.sources] == ["orders"]
        assert lineage(german) == {"twice": "(orders.amount * cast(2 as double))"}
        assert [item.input for item in german.static_inputs] == ["customers"]
        assert "(orders.amount > cast(10 as double))" in german.filters
    finally:
        spark.catalog.dropTempView("signature_orders")
        spark.catalog.dropTempView("signature_customers")


def test_repartitioning_observing_and_hints_mean_nothing(inputs):
    plain = inputs.orders.join(inputs.customers, "customer")
    observed = inputs.orders.observe("metrics", F.max("at")).repartition(3, "id").alias("o")
    assert signature_of(observed.join(F.broadcast(inputs.customers), "customer")) == signature_of(plain)


def test_other_operators(inputs):
    exploded = signature_of(inputs.orders.select("id", F.explode(F.split("customer", ",")).alias("part")))
    assert exploded.others == ("Generate: explode(split(orders.customer, ,, -1)); part",)
    static = inputs.customers.groupBy("customer").agg(F.max("country").alias("country"))
    grouped = signature_of(inputs.orders.join(static, "customer"))
    assert grouped.others == (
        "static aggregate orders.customer; max(customers.country)".replace("orders", "customers"),
    )
    assert grouped.stateful == ()


def test_order_of_keys_means_nothing_in_a_static_join(inputs):
    customers = inputs.customers.withColumnRenamed("segment", "region")
    one = inputs.orders.join(customers, ["customer", "region"]).select("id")
    other = inputs.orders.join(customers, ["region", "customer"]).select("id")
    assert signature_of(one) == signature_of(other)


def test_inputs_that_the_plan_lacks_are_not_listed(inputs):
    assert [item.input for item in signature_of(inputs.orders).sources] == ["orders"]
    assert signature_of(replace(inputs, orders=inputs.returns).orders).sources[0].input == "returns"
