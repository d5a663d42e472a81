"""``streamclust kafka``: parses and wires a worker of a Kafka topic."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from streamclust.errors import AdapterError, SnapshotError
from streamclust_adapters import settings
from streamclust_adapters.input_options import check_input, fields_of, input_options, reading_of
from streamclust_adapters.launch import checked, failures, load_model
from streamclust_adapters.options import RunCommand, given_parameters, model_options

if TYPE_CHECKING:
    from streamclust import StreamClusterer
    from streamclust_adapters.broker import Broker
    from streamclust_adapters.kafka.client import Client
    from streamclust_adapters.kafka.connection import KafkaBroker
    from streamclust_adapters.logs import Log
    from streamclust_adapters.messages import MessageReader
    from streamclust_adapters.resuming import Opener
    from streamclust_adapters.runner import Shutdown
    from streamclust_adapters.scoring import Scorer
    from streamclust_adapters.worker import Turn

OWN_NAMES = ("event", "partition", "offset", "cluster", "region", "rule")
"""The names of an answer's own fields, which an id field cannot have."""

_FILE_OPTIONS = "streamclust.librdkafka"


def _read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Make what a settings file says the defaults of this run."""
    if path is None:
        return None
    options = {
        max(o.opts, key=len).removeprefix("--"): o
        for o in ctx.command.params
        if isinstance(o, click.Option) and o.name not in {"config", "pairs"}
    }
    lists = [name for name in ("features", "ignore") if name in options]
    content, client = settings.read_file(path, options, lists)
    ctx.default_map = {str(options[name].name): value for name, value in content.items()}
    ctx.meta[_FILE_OPTIONS] = client
    return path


def _address(text: str) -> tuple[str, int]:
    """HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise click.BadParameter(f"{text!r}: HOST:PORT is accepted")
    return host.strip("[]"), int(port)


@click.command(cls=RunCommand)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    callback=_read_config,
    help="A TOML file of these options, and of librdkafka's in [librdkafka].",
)
@click.option(
    "-X", "pairs", multiple=True, metavar="NAME=VALUE", help="An option of librdkafka, as is."
)
@click.option("--brokers", metavar="HOST:PORT,..", help="Where the cluster is reached first.")
@click.option("--topic", required=True, help="The events.")
@click.option("--group", required=True, help="Whose workers share the partitions.")
@click.option("--worker", metavar="NAME", help="One of the group; the host's name by default.")
@click.option("--output", "-o", required=True, metavar="TOPIC", help="Answers.")
@click.option("--events", "changes", metavar="TOPIC", help="Change events.")
@click.option("--dead-letter", metavar="TOPIC", help="Messages that hold no event, as they came.")
@click.option(
    "--engine",
    type=click.Choice(["per-partition", "shared"]),
    default="per-partition",
    show_default=True,
    help="One engine each, on any number of workers; or one for all, on one worker.",
)
@click.option("--order", metavar="TOPIC", help="What a shared engine took when; OUTPUT-order.")
@click.option(
    "--start",
    type=click.Choice(["earliest", "latest"]),
    default="earliest",
    show_default=True,
    help="Where a partition begins that the group has never read.",
)
@click.option("--create-topics", is_flag=True, help="Make output topics that are not there.")
@click.option(
    "--snapshot",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where engines are kept; the same folder for all workers of a group.",
)
@click.option(
    "--snapshot-seconds",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="A snapshot at latest after this time, if there was an event.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    metavar="N",
    help="Most messages of one transaction.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="Of a message: JSON, or a row of cells named by --features.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Of the lines on stderr.",
)
@click.option(
    "--metrics",
    type=_address,
    metavar="HOST:PORT",
    help="Serve /metrics, /healthz and /readyz, for example on 127.0.0.1:9108.",
)
@input_options
@model_options
@click.pass_context
def kafka(ctx: click.Context, /, **_: object) -> None:
    """Cluster the messages of a Kafka topic; answers and offsets are one transaction.

    Each message is answered from what was known before it, and then learned.
    """
    options = ctx.params
    client = {**ctx.meta.get(_FILE_OPTIONS, {}), **settings.read_pairs(options["pairs"])}
    if options["brokers"] is not None:
        client["bootstrap.servers"] = options["brokers"]
    _check_usage(options, client)
    with failures():
        from streamclust_adapters.logs import Log

        log = Log(sys.stderr, options["log_format"], hide=settings.Secrets(client).hide)
        try:
            with ExitStack() as stack:
                _work(options, client, given_parameters(ctx), log, stack)
        except (AdapterError, SnapshotError, OSError) as error:
            log.error(str(error), kind=type(error).__name__)
            raise click.exceptions.Exit(1) from None


def _check_usage(options: dict[str, Any], client: dict[str, str]) -> None:
    """Refuse options that contradict one another, before anything is opened."""
    if "bootstrap.servers" not in client:
        raise click.UsageError("--brokers HOST:PORT is needed")
    if options["engine"] == "shared":
        options["order"] = options["order"] or f"{options['output']}-order"
    elif options["order"] is not None:
        raise click.UsageError("--order is for --engine shared")
    topics = [options[n] for n in ("topic", "output", "changes", "dead_letter", "order")]
    used = [topic for topic in topics if topic is not None]
    if len(set(used)) != len(used):
        raise click.UsageError("input and outputs must be different topics")
    check_input(options, OWN_NAMES)
    if options["folder"] is None and not options["no_learn"]:
        raise click.UsageError("--snapshot DIR is needed")
    if options["engine"] == "shared" and options["no_learn"]:
        raise click.UsageError("--engine shared is for models that learn")
    if options["form"] == "csv" and options["features"] is None:
        raise click.UsageError("--format csv needs --features: a message has no header")


def _work(
    options: dict[str, Any],
    client_options: dict[str, str],
    given: dict[str, object],
    log: Log,
    stack: ExitStack,
) -> None:
    from streamclust_adapters.encoder import Encoder
    from streamclust_adapters.messages import Outbox, Topics
    from streamclust_adapters.runner import Shutdown
    from streamclust_adapters.worker import Worker

    topic = options["topic"]
    topics = Topics(options["output"], options["changes"], options["dead_letter"], options["order"])
    encoder = Encoder(key=options["id_field"], rules=options["explain"], places=True)
    shutdown = stack.enter_context(Shutdown())
    client = _client(options, client_options, shutdown, log)
    broker = _broker(client, options["batch"])
    stack.callback(broker.close)
    n = broker.n_partitions(topic)
    if options["create_topics"]:
        broker.create({t: 1 if t == topics.order else n for t in topics.named})
    counts = {t: broker.n_partitions(t) for t in topics.named}
    worker = Worker(
        broker,
        _opener(options, given, broker, log),
        _reader(options),
        lambda: Outbox(topics, counts, encoder),
        shutdown=shutdown,
        log=log,
        shared=None if topics.order is None else (topic, topics.order),
        after_turn=_watched(options, broker.lag, stack),
    )
    member = client.member
    log.info("worker started", group=member.group, worker=_name(options), topic=topic, partitions=n)
    worker.run()
    log.info("worker stopped")


def _name(options: dict[str, Any]) -> str:
    return options["worker"] or socket.gethostname()


def _client(
    options: dict[str, Any], client_options: dict[str, str], shutdown: Shutdown, log: Log
) -> Client:
    from streamclust_adapters.claim import Claim, Unclaimed
    from streamclust_adapters.kafka.client import OWN_OPTIONS, Client, Membership
    from streamclust_adapters.logs import ClientLog
    from streamclust_adapters.resuming import prepare

    if own := sorted(OWN_OPTIONS & set(client_options)):
        raise click.UsageError(f"{own[0]}: the worker sets this option itself")
    name = "shared" if options["order"] else _name(options)
    member = Membership(options["topic"], options["group"], name)
    logger = logging.Logger("librdkafka")
    logger.addHandler(ClientLog(log))
    if options["folder"] is None:
        return Client(client_options, member, Unclaimed(), shutdown, logger)
    prepare(options["folder"])
    claim = Claim(options["folder"], member.name)
    return Client(client_options, member, claim, shutdown, logger)


def _broker(client: Client, batch: int) -> KafkaBroker:
    from streamclust_adapters.kafka.connection import KafkaBroker

    return KafkaBroker(client, batch=batch)


def _reader(options: dict[str, Any]) -> MessageReader:
    from streamclust_adapters.codec import decoder
    from streamclust_adapters.messages import MessageReader

    lines = decoder(options["form"], fields_of(options), options["features"])
    return MessageReader(options["topic"], lines)


def _opener(
    options: dict[str, Any], given: dict[str, object], broker: Broker, log: Log
) -> Opener | Scorer:
    from streamclust import StreamClusterer
    from streamclust_adapters.lanes import Manner
    from streamclust_adapters.resuming import Opener, Origin
    from streamclust_adapters.scoring import Scorer

    origin = Origin(options["topic"], options["group"], reading_of(options), options["start"])
    manner = Manner(
        explain=options["explain"],
        strict=options["strict"],
        changes=options["changes"] is not None,
        every=options["every"],
        seconds=options["seconds"],
        learn=not options["no_learn"],
    )

    def load(path: Path) -> StreamClusterer:
        return checked(StreamClusterer.load(path), given)

    def create() -> StreamClusterer:
        if options["model_file"] is not None:
            return checked(load_model(options["model_file"]), given)
        return StreamClusterer(**cast(dict[str, Any], given))

    if options["no_learn"]:
        return Scorer(broker, origin, create(), manner=manner, log=log)
    return Opener(
        broker, origin, options["folder"], create=create, load=load, manner=manner, log=log
    )


def _watched(
    options: dict[str, Any], lag: Callable[[], Mapping[int, int]], stack: ExitStack
) -> Callable[[Turn], None] | None:
    """What counts the turns, served while the worker runs."""
    if options["metrics"] is None:
        return None
    from streamclust_adapters.metrics import Metrics, MetricsServer

    metrics = Metrics(lag)
    stack.enter_context(MetricsServer(metrics, *options["metrics"]))
    return metrics
