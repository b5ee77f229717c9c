"""A real Kafka broker for tests: a single node on 127.0.0.1 in a child process. Its data is deleted when it stops."""

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

__all__ = ["KafkaBroker", "Record"]

Value = str | bytes | None  # of the key or the value of a record; a str is sent as UTF-8

_TIMEOUT_S = 60.0
_READY_MESSAGE = "Kafka Server started"
# Use little memory, and only the quick compiler (C1), so that the broker starts quickly.
_JVM_OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
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
    """One record of a topic, as stored by Kafka."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int


class KafkaBroker:
    """A broker that runs inside a `with` block. Its topics are created, written and read through a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._port, self._controller_port = _free_ports(2)
        self._home = tempfile.TemporaryDirectory(prefix="headrace-kafka-")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """The value of `kafka.bootstrap.servers` for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def log(self) -> Path:
        """The broker's log file, which is deleted when the broker stops."""
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
            self._process.kill()  # a clean shutdown is not needed, because the broker's data is deleted
            self._process.wait()
        self._home.cleanup()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic and wait until it accepts records."""
        with self._admin() as admin:
            topic = self._kafka.admin.NewTopic(name, partitions, 1)
            result = admin.createTopics([topic])
            self._wait_for_result(result.all())
            topic_id = result.topicId(name).get()
            # The controller knows the topic before the broker does, so wait for the broker.
            _wait_for(lambda: topic_id.equals(self._topic_id(admin, name)), f"topic {name!r} was not created")

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        with self._admin() as admin:
            self._wait_for_result(admin.deleteTopics([name]).all())
            _wait_for(lambda: self._topic_id(admin, name) is None, f"topic {name!r} was not deleted")

    def send(self, topic: str, records: Iterable[Value | tuple[Value, Value]]) -> None:
        """Append records to a topic, in order within each partition; each is a value, or a tuple of key and value."""
        self._require_topic(topic)
        pairs = [record if isinstance(record, tuple) else (None, record) for record in records]
        if not pairs:
            return
        rows = [(_encode(key), _encode(value)) for key, value in pairs]
        frame = self._spark.createDataFrame(rows, "key binary, value binary").coalesce(1)
        frame.write.format("kafka").options(**self._options(topic=topic)).save()

    def read(self, topic: str) -> list[Record]:
        """Return all records of a topic, sorted by partition and offset."""
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
                raise DataError(f"the broker has no topic {name!r}", fix=f"call create_topic({name!r}) first")

    @property
    def _kafka(self) -> Any:
        """The package of Kafka's Java clients in the session's JVM."""
        jvm = self._spark._jvm
        assert jvm is not None
        return jvm.org.apache.kafka.clients

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        try:
            admin = self._kafka.admin.Admin.create({"bootstrap.servers": self.servers})
        except TypeError as error:  # raised by py4j for an unknown class
            raise SetupError(
                "this Spark session has no Kafka classes",
                fix="start it with headrace.spark.jars.spark_jars(…) on spark.driver.extraClassPath",
            ) from error
        try:
            yield admin
        finally:
            admin.close()

    def _topic_id(self, admin: Any, name: str) -> Any:
        """Return the id of a topic; None if the broker has no such topic, or does not know it yet."""
        listing = admin.listTopics().namesToListings().get().get(name)
        return None if listing is None else listing.topicId()

    def _wait_for_result(self, future: Any) -> None:
        """Wait for a future of the admin client; raise DataError with Kafka's message if it failed."""
        from py4j.protocol import Py4JJavaError

        try:
            future.get()
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            raise DataError(cause.getMessage(), fix=f"see the broker's log for details: {self.log}") from error

    def _start(self) -> None:
        home = Path(self._home.name)
        settings_file, logging_file = home / "server.properties", home / "log4j2.properties"
        settings_file.write_text(
            _SETTINGS.format(port=self._port, controller_port=self._controller_port, home=home.as_posix())
        )
        logging_file.write_text(_LOGGING)
        command = [str(java.executable()), *_JVM_OPTIONS, f"-Dlog4j2.configurationFile={logging_file.as_uri()}"]
        command += ["-cp", os.pathsep.join(str(jar) for jar in jars.kafka_broker_jars())]
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_command = [*command, "kafka.tools.StorageTool", "format", "-c", str(settings_file)]
        format_command += [f"--cluster-id={cluster_id}"]  # one argument: an id may start with "-"
        with self.log.open("ab") as log:
            if subprocess.run(format_command, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode != 0:
                raise self._startup_error("could not format its directory")
            self._process = broker = subprocess.Popen(
                [*command, "kafka.Kafka", str(settings_file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        _wait_for(lambda: _READY_MESSAGE in self._read_log() or broker.poll() is not None, "it did not start")
        if broker.poll() is not None:
            raise self._startup_error("died during startup")

    def _read_log(self) -> str:
        return self.log.read_text(errors="replace")

    def _startup_error(self, problem: str) -> SetupError:
        tail = "\n".join(f"  {line}" for line in self._read_log().splitlines()[-20:])
        return SetupError(
            f"the Kafka broker {problem}; the last lines of its log:\n{tail}",
            fix="correct the cause that the log shows, and start the broker again",
        )


def _encode(value: Value) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def _free_ports(count: int) -> list[int]:
    # These are not ephemeral ports: an outgoing connection could take an ephemeral port before the broker does.
    candidates = random.sample(range(20_000, 32_000), 1000)
    return list(islice(filter(_is_free, candidates), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _wait_for(condition: Callable[[], bool], problem: str) -> None:
    """Wait until the condition is true; raise SetupError with the problem after a timeout."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise SetupError(
                f"the Kafka broker timed out after {_TIMEOUT_S:.0f} s: {problem}",
                fix="try again when the machine is less busy",
            )
        time.sleep(0.05)
