"""Empty inputs with given schemas. Signatures are computed over these, so that no source has to be reachable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

INPUT_OPTION = "headraceInput"  # marks the leaf of a plan that reads the input; Spark ignores it


def empty_stream(spark: SparkSession, name: str, schema: StructType, directory: str) -> DataFrame:
    """Return a stream without rows. `name` is the input's name, `directory` an empty local directory."""
    return spark.readStream.schema(schema).option(INPUT_OPTION, name).parquet(_location(directory))


def empty_static(spark: SparkSession, name: str, schema: StructType, directory: str) -> DataFrame:
    """Return a static input without rows. `name` is the input's name, `directory` an empty local directory."""
    return spark.read.schema(schema).option(INPUT_OPTION, name).parquet(_location(directory))


def _location(directory: str) -> str:
    path = Path(directory).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path.as_uri()  # otherwise a cluster would look in its own default file system
