"""Transaction ids of a session's commits."""

from __future__ import annotations

import pytest

from headrace.io.delta.transaction_id import TransactionId


def test_session_settings_are_removed_after_a_failed_merge(spark):
    with pytest.raises(Exception, match="nonsense"):  # noqa: SIM117
        with TransactionId("a query", 7).in_session(spark):
            assert spark.conf.get("spark.databricks.delta.write.txnVersion") == "7"
            spark.sql("SELECT nonsense")
    assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) is None
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None
