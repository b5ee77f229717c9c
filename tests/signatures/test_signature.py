"""A signature survives JSON, and its digest identifies everything but the versions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headrace.signatures.signature import Column, Input, Operator, Signature, Watermark

SIGNATURE = Signature(
    sources=(Input("orders", "files", "source orders"), Input("rate", "rate")),
    static_inputs=(Input("customers", "table", "table customers"),),
    stateful=(
        Operator(
            "aggregate",
            keys=(Column("window", "struct<start:timestamp,end:timestamp>", "window(orders.at, 15 minutes)"),),
            values=(Column("revenue", "double", "sum(orders.amount)"),),
            state_columns=("struct<start:timestamp,end:timestamp>, double",),
        ),
    ),
    watermarks=(Watermark("orders.at", "10 minutes"),),
    filters=("(orders.n > 1)",),
    joins=(Operator("join", keys=(Column("", "string", "(orders.c = customers.c)"),), properties={"type": "Inner"}),),
    others=("Generate: explode(orders.tags)",),
    output=(Column("revenue", "double", "sum(orders.amount)"),),
    output_mode="append",
    sinks=({"kind": "table", "name": "gold", "keys": ["id"], "sequence": None},),
    time_zone="Etc/UTC",
    ansi=True,
    spark="4.2.0",
    python="3.11",
)


def test_signature_is_read_back_from_json():
    text = json.dumps(SIGNATURE.to_json())
    assert Signature.from_json(json.loads(text)) == SIGNATURE
    assert len(text) < 1100


def test_empty_parts_are_not_stored():
    plain = replace(SIGNATURE, stateful=(), watermarks=(), filters=(), joins=(), others=(), static_inputs=())
    assert not plain.to_json().keys() & {"stateful", "watermarks", "filters", "joins", "others", "static_inputs"}
    assert Signature.from_json(plain.to_json()) == plain


def test_json_has_a_stable_order():
    other = replace(SIGNATURE, sinks=({"sequence": None, "keys": ["id"], "name": "gold", "kind": "table"},))
    assert json.dumps(other.to_json()) == json.dumps(SIGNATURE.to_json())
    assert next(iter(SIGNATURE.to_json())) == "format"


def test_digest_depends_on_everything_but_the_versions():
    assert len(SIGNATURE.digest) == 12
    assert replace(SIGNATURE, spark="4.1.0", python="3.12").digest == SIGNATURE.digest
    changed = {"filters": (), "output_mode": "update", "sinks": (), "time_zone": "Asia/Tokyo", "ansi": False}
    digests = {replace(SIGNATURE, **{name: value}).digest for name, value in changed.items()}
    assert len(digests | {SIGNATURE.digest}) == len(changed) + 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**SIGNATURE.to_json(), "format": 2}, "signature has format 2, but only 1 is known"),
        ({}, "signature has format None"),
        ([], "signature has format None"),
        ({"format": 1}, "signature is invalid: KeyError"),
        ({**SIGNATURE.to_json(), "sources": ["orders"]}, "signature is invalid: TypeError"),
        ({**SIGNATURE.to_json(), "output": [["a", "b", "c", "d"]]}, "signature is invalid: TypeError"),
    ],
)
def test_unknown_format_and_invalid_content_are_errors(content, message):
    with pytest.raises(ValueError, match=message):
        Signature.from_json(content)
