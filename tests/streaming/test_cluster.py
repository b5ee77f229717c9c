"""The reference bundle on a standalone Spark cluster with one worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from deltalake import DeltaTable

from clusters import SETTINGS, standalone
from processes import copy_bundle, headrace


@pytest.mark.full
def test_orders_pipeline_runs_unchanged_on_a_cluster(tmp_path: Path) -> None:
    bundle = copy_bundle(tmp_path / "bundle", orders=300, customers=20, files=3, pace=10)
    local = (bundle / "conf" / "local.yml").read_text()
    with standalone(tmp_path) as master:
        engine = f'engine: {{kind: spark, master: "{master}"}}'
        cluster = re.sub(r"^engine:.*$", engine, local, flags=re.MULTILINE)
        (bundle / "conf" / "local.yml").write_text(cluster + SETTINGS)
        with headrace("run", "orders", bundle=bundle) as process:
            assert process.wait(timeout=300) == 0, (bundle / "output.txt").read_text()
    rows = {
        name: DeltaTable(str(bundle / ".headrace" / "tables" / name)).to_pyarrow_table().num_rows
        for name in ("bronze_orders", "silver_orders", "gold_revenue")
    }
    assert rows["bronze_orders"] == rows["silver_orders"] > 250
    assert rows["gold_revenue"] > 0
    assert "Registered app" in (tmp_path / "master.log").read_text()
