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
from streamclust_adapters.launch import checked, failures, names
from streamclust_adapters.options import RunCommand, given_parameters, model_options

if TYPE_CHECKING:
    from streamclust import StreamClusterer
    from streamclust_adapters.codec import Fields
    from streamclust_adapters.logs import Log
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
    required=True,
    metavar="DIR",
    help="Where engines are kept; the same folder for all workers of a group.",
)
@click.option(
    "--snapshot-every",
    "every",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Events of an engine between two snapshots.",
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
    help="Of a message: a JSON object, or a row of cells named by --features.",
)
@click.option("--features", type=names, metavar="A,B,..", help="The fields to cluster by.")
@click.option("--ignore", type=names, metavar="A,B,..", help="Fields that are no features.")
@click.option("--time-field", metavar="NAME", help="Stream time: seconds or ISO 8601.")
@click.option("--id-field", metavar="NAME", help="Repeated in the answers.")
@click.option("--explain", is_flag=True, help="Add the rule to each answer.")
@click.option("--strict", is_flag=True, help="Stop before the first message that holds no event.")
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
    if options["id_field"] in OWN_NAMES:
        raise click.UsageError(f"--id-field {options['id_field']}: an answer has such a field")
    if options["time_unit"] == "seconds" and options["time_field"] is None:
        raise click.UsageError("--time-unit seconds needs --time-field NAME")
    if options["form"] == "csv" and options["features"] is None:
        raise click.UsageError("--format csv needs --features: a message has no header")
    if _fields(options).selected == ():
        raise click.UsageError("--features leaves no feature beside the other named fields")


def _fields(options: dict[str, Any]) -> Fields:
    from streamclust_adapters.codec import Fields

    return Fields(
        features=options["features"],
        ignore=frozenset(options["ignore"] or ()),
        time=options["time_field"],
        key=options["id_field"],
    )


def _work(
    options: dict[str, Any],
    client: dict[str, str],
    given: dict[str, object],
    log: Log,
    stack: ExitStack,
) -> None:
    from streamclust import StreamClusterer
    from streamclust_adapters.claim import Claim
    from streamclust_adapters.codec import decoder
    from streamclust_adapters.encoder import Encoder
    from streamclust_adapters.kafka import OWN_OPTIONS, KafkaBroker, Membership
    from streamclust_adapters.lanes import Manner
    from streamclust_adapters.logs import ClientLog
    from streamclust_adapters.messages import MessageReader, Outbox, Topics
    from streamclust_adapters.resuming import Opener, Origin, prepare
    from streamclust_adapters.runner import Shutdown
    from streamclust_adapters.worker import Worker

    if own := sorted(OWN_OPTIONS & set(client)):
        raise click.UsageError(f"{own[0]}: the worker sets this option itself")
    topic, columns = options["topic"], options["features"]
    topics = Topics(options["output"], options["changes"], options["dead_letter"], options["order"])
    reader = MessageReader(topic, decoder(options["form"], _fields(options), columns))
    encoder = Encoder(key=options["id_field"], rules=options["explain"], places=True)
    shutdown = stack.enter_context(Shutdown())
    logger = logging.Logger("librdkafka")
    logger.addHandler(ClientLog(log))

    name = options["worker"] or socket.gethostname()
    member = Membership(topic, options["group"], "shared" if options["order"] else name)
    prepare(options["folder"])
    claim = Claim(options["folder"], member.name)
    broker = KafkaBroker(
        client, member, claim, batch=options["batch"], shutdown=shutdown, logger=logger
    )
    stack.callback(broker.close)
    n = broker.n_partitions(topic)
    if options["create_topics"]:
        broker.create({t: 1 if t == topics.order else n for t in topics.named})
    counts = {t: broker.n_partitions(t) for t in topics.named}

    def load(path: Path) -> StreamClusterer:
        return checked(StreamClusterer.load(path), given)

    opener = Opener(
        broker,
        Origin(topic, options["group"], _reading(options), options["start"]),
        options["folder"],
        create=lambda: StreamClusterer(**cast(dict[str, Any], given)),
        load=load,
        manner=Manner(
            explain=options["explain"],
            strict=options["strict"],
            changes=options["changes"] is not None,
            every=options["every"],
            seconds=options["seconds"],
        ),
        log=log,
    )
    worker = Worker(
        broker,
        opener,
        reader,
        lambda: Outbox(topics, counts, encoder),
        shutdown=shutdown,
        log=log,
        shared=None if topics.order is None else (topic, topics.order),
        after_turn=_watched(options, broker.lag, stack),
    )
    log.info("worker started", group=member.group, worker=name, topic=topic, partitions=n)
    worker.run()
    log.info("worker stopped")


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


def _reading(options: dict[str, Any]) -> dict[str, object]:
    """What must be the same in a later run for its events to be the same."""
    return {
        "format": options["form"],
        "features": None if options["features"] is None else list(options["features"]),
        "ignore": sorted(options["ignore"] or ()),
        "time_field": options["time_field"],
        "id_field": options["id_field"],
    }
