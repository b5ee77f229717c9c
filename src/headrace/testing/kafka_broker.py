"""A real Kafka broker for tests: one node on 127.0.0.1, started as a child process and gone afterwards."""

from __future__ import annotations

import base64
import os
import random
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from headrace.errors import DataError, SetupError
from headrace.spark import jars, java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = str | bytes | None

_PATIENCE = 60.0
_READY = "Kafka Server started"
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={home}/data
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c)%n
"""


class Record(NamedTuple):
    """One record of a topic, as Kafka has it."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int


class KafkaBroker:
    """A broker for the time of a `with` block; topics are made, written and read through a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._port, self._controller = _free_ports(2)
        self._home = tempfile.TemporaryDirectory(prefix="headrace-kafka-")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """What a client gives as its bootstrap servers."""
        return f"127.0.0.1:{self._port}"

    @property
    def log(self) -> Path:
        """The file with everything that the broker says; it goes when the broker goes."""
        return Path(self._home.name, "broker.log")

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()  # nothing of it is kept, so nothing has to be closed well
            self._process.wait()
        self._home.cleanup()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic; it can be written to at once."""
        with self._admin() as admin:
            new = self._kafka.admin.NewTopic(name, partitions, 1)
            made = admin.createTopics([new])
            self._answer(made.all())
            topic_id = made.topicId(name).get()
            # The controller knows the topic before the broker does.
            _wait(lambda: topic_id.equals(self._topic_id(admin, name)), f"topic {name!r} did not appear")

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all of its records."""
        with self._admin() as admin:
            self._answer(admin.deleteTopics([name]).all())
            _wait(lambda: self._topic_id(admin, name) is None, f"topic {name!r} did not go")

    def send(self, topic: str, records: Iterable[Value | tuple[Value, Value]]) -> None:
        """Append records in this order; each is a value, or a key and a value."""
        self._require_topic(topic)
        pairs = [record if isinstance(record, tuple) else (None, record) for record in records]
        if not pairs:
            return
        rows = [tuple(each.encode() if isinstance(each, str) else each for each in pair) for pair in pairs]
        frame = self._spark.createDataFrame(rows, "key binary, value binary").coalesce(1)
        frame.write.format("kafka").options(**self._options(topic=topic)).save()

    def read(self, topic: str) -> list[Record]:
        """All records of a topic, by partition and offset."""
        self._require_topic(topic)
        options = self._options(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
        frame = self._spark.read.format("kafka").options(**options).load()
        rows = frame.select("partition", "offset", "key", "value").collect()
        return sorted(
            (Record(_bytes(row.key), _bytes(row.value), row.partition, row.offset) for row in rows),
            key=lambda record: (record.partition, record.offset),
        )

    def _options(self, **options: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, **options}

    def _require_topic(self, name: str) -> None:
        with self._admin() as admin:
            if self._topic_id(admin, name) is None:
                raise DataError(f"the broker has no topic {name!r}", fix=f"create_topic({name!r}) first")

    @property
    def _kafka(self) -> Any:
        """Kafka's Java client, as the session's JVM has it."""
        jvm = self._spark._jvm
        assert jvm is not None
        return jvm.org.apache.kafka.clients

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        try:
            admin = self._kafka.admin.Admin.create({"bootstrap.servers": self.servers})
        except TypeError as error:  # what py4j calls a class that is not there
            raise SetupError(
                "this Spark session has no Kafka classes",
                fix="start it with headrace.spark.jars.spark_jars(…) on spark.driver.extraClassPath",
            ) from error
        try:
            yield admin
        finally:
            admin.close()

    def _topic_id(self, admin: Any, name: str) -> Any:
        listing = admin.listTopics().namesToListings().get().get(name)
        return None if listing is None else listing.topicId()

    def _answer(self, future: Any) -> None:
        from py4j.protocol import Py4JJavaError

        try:
            future.get()
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            raise DataError(cause.getMessage(), fix=f"the broker's log says more: {self.log}") from error

    def _start(self) -> None:
        home = Path(self._home.name)
        settings, logging = home / "server.properties", home / "log4j2.properties"
        settings.write_text(_SETTINGS.format(port=self._port, controller=self._controller, home=home.as_posix()))
        logging.write_text(_LOGGING)
        command = [str(java.executable()), *_JVM, f"-Dlog4j2.configurationFile={logging.as_uri()}"]
        command += ["-cp", os.pathsep.join(str(jar) for jar in jars.kafka_broker_jars())]
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_ = [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        with self.log.open("ab") as log:
            if subprocess.run(format_, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode != 0:
                raise self._failed("could not format its directory")
            self._process = broker = subprocess.Popen(
                [*command, "kafka.Kafka", str(settings)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        _wait(lambda: _READY in self._said() or broker.poll() is not None, "it does not start")
        if broker.poll() is not None:
            raise self._failed("died while it started")

    def _said(self) -> str:
        return self.log.read_text(errors="replace")

    def _failed(self, what: str) -> SetupError:
        tail = "\n".join(f"  {line}" for line in self._said().splitlines()[-20:])
        return SetupError(f"the Kafka broker {what}; the end of its log:\n{tail}", fix="mend what the log tells")


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def _free_ports(count: int) -> list[int]:
    # Not ones of the system's choice: an outgoing connection could take them before the broker does.
    candidates = random.sample(range(20_000, 32_000), 1000)
    return list(islice(filter(_is_free, candidates), count))


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SetupError(f"the Kafka broker was waited for {_PATIENCE:.0f} s: {otherwise}", fix="try again")
        time.sleep(0.05)
