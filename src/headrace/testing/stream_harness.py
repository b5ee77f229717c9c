"""Runs a transform as a real stream over given rows: watermarks, state and windows as in production."""

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

Rows = Sequence[Any]  # tuples, dictionaries or Rows: whatever createDataFrame takes
Output = Literal["append", "update", "complete"]


@dataclass(frozen=True)
class Input:
    """A streaming input of the transform: its schema, and its event-time column with the delay."""

    schema: StructType | str
    watermark: tuple[str, str] | None = None


class StreamHarness:
    """Starts transforms as streams in a directory of the test's own."""

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
        """A stream that waits to be fed. Inputs are matched by parameter name; a frame is a static one."""
        by_name = {_first_parameter(transform): inputs} if isinstance(inputs, Input) else inputs
        home = Path(tempfile.mkdtemp(prefix="stream-", dir=self._directory))
        streaming = {name: input_ for name, input_ in by_name.items() if isinstance(input_, Input)}
        frames = {name: input_ for name, input_ in by_name.items() if not isinstance(input_, Input)}
        for name, input_ in streaming.items():
            (home / name).mkdir()
            frames[name] = _read(self._spark, input_, home / name)
        return Stream(self._spark, _call(transform, frames, settings), streaming, home, output)

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
        """Feeds the batches one after the other; what came out after each."""
        stream = self.start(transform, inputs, output=output, **settings)
        return [stream.feed(**batch) if isinstance(batch, Mapping) else stream.feed(batch) for batch in batches]


class Stream:
    """A transform over inputs that grow by what is fed; each feed starts it again from its checkpoint."""

    def __init__(
        self, spark: SparkSession, frame: DataFrame, inputs: Mapping[str, Input], home: Path, output: Output
    ) -> None:
        self._spark = spark
        self._frame = frame
        self._inputs = inputs
        self._home = home
        self._output = output

    def feed(self, rows: Rows = (), /, **by_input: Rows) -> list[Row]:
        """One batch of rows in, for the one streaming input or by input name; the rows that came out."""
        if rows and len(self._inputs) != 1:
            raise ValueError(f"the stream has several inputs, name the one to feed: {list(self._inputs)}")
        fed = by_input | ({next(iter(self._inputs)): rows} if rows else {})
        if unknown := fed.keys() - self._inputs.keys():
            raise ValueError(f"unknown inputs {sorted(unknown)}; the streaming inputs are {list(self._inputs)}")
        for name, own in fed.items():
            if own:
                frame = self._spark.createDataFrame(own, self._inputs[name].schema)
                frame.coalesce(1).write.mode("append").parquet(str(self._home / name))
        return self._advance()

    def _advance(self) -> list[Row]:
        # Rows that all lie there before the query starts are one batch, whatever the number of inputs.
        batches: list[list[Row]] = []
        query = (
            self._frame.writeStream.outputMode(self._output)
            .foreachBatch(lambda batch, _: batches.append(batch.collect()))
            .option("checkpointLocation", str(self._home / "_checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [row for batch in batches for row in batch]


def _read(spark: SparkSession, given: Input, directory: Path) -> DataFrame:
    frame = spark.readStream.schema(given.schema).parquet(str(directory))
    return frame.withWatermark(*given.watermark) if given.watermark else frame


def _first_parameter(transform: Callable[..., DataFrame]) -> str:
    return next(iter(inspect.signature(transform).parameters))


def _call(
    transform: Callable[..., DataFrame], frames: Mapping[str, DataFrame], settings: Mapping[str, Any]
) -> DataFrame:
    """As a run calls it: a positional-only parameter takes the one streaming input, whatever its name."""
    first = next(iter(inspect.signature(transform).parameters.values()))
    if first.kind is not first.POSITIONAL_ONLY:
        return transform(**frames, **settings)
    (rows,) = [name for name, frame in frames.items() if frame.isStreaming]
    others = {name: frame for name, frame in frames.items() if name != rows}
    return transform(frames[rows], **others, **settings)
