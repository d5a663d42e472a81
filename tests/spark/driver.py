"""A driver of its own, to be killed: it learns files and stops in the middle of a batch.

Arguments: the folder of files, that of the checkpoint, a folder of its own, the number of the batch
within whose last sink it waits to be killed, and the file that says that it does.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from streamclust import StreamClusterer
from streamclust_adapters.spark import StreamClusterQuery
from tests.spark.sessions import session
from tests.spark.streams import stream_of


def main(files: str, checkpoint: str, own: str, last: str, mark: str) -> None:
    """Learn until the batch `last` has been learned and is not kept yet; wait there."""

    def wait(_: object, batch: int) -> None:
        if batch == int(last):
            Path(mark).touch()
            signal.pause()

    spark = session("local[2]", Path(own))
    model = StreamClusterer(window=200, seed=3)
    query = StreamClusterQuery(model, id="id", changes=wait)
    query.start(stream_of(spark, Path(files)), checkpoint).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
