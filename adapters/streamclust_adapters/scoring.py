"""Lanes that only answer: one frozen model for all partitions, and nothing to be kept."""

from __future__ import annotations

from collections.abc import Sequence

from streamclust.errors import AdapterError
from streamclust_adapters.broker import Broker, Commit
from streamclust_adapters.lanes import Lane, Manner
from streamclust_adapters.logs import Log
from streamclust_adapters.order import Run
from streamclust_adapters.ports import Model
from streamclust_adapters.resuming import Origin


class Scorer:
    """Opens such lanes.

    Parameters
    ----------
    broker : Broker
        Who knows the commits, which are all there is to go on from.
    origin : Origin
        What is read.
    model : Model
        Who answers; nobody teaches it.
    manner : Manner
        How lanes answer.
    log : Log
        Where is told what is opened.
    """

    def __init__(
        self, broker: Broker, origin: Origin, model: Model, *, manner: Manner, log: Log
    ) -> None:
        self._broker = broker
        self._origin = origin
        self._model = model
        self._manner = manner
        self._log = log

    def open(self, partition: int) -> Lane:
        """Open the lane of one partition.

        Raises
        ------
        AdapterError
            When messages are gone that were not answered.
        """
        extent = self._broker.extent(self._origin.topic, partition)
        first = extent.high if self._origin.start == "latest" else extent.low
        commit = self._broker.committed([partition]).get(partition, Commit(first, None))
        if commit.offset < extent.low:
            raise AdapterError(
                f"{self._origin.topic}, partition {partition}: offsets {commit.offset} to "
                f"{extent.low - 1} were deleted by retention before they were answered; name "
                "another group to start anew"
            )
        name = f"partition-{partition}"
        lane = Lane(
            name,
            self._model,
            None,
            identity={},
            offsets={partition: commit.offset},
            number=commit.number or 0,
            commits={},
            order=None,
            manner=self._manner,
        )
        self._log.info("engine opened", engine=name, events=lane.number, offsets=lane.offsets)
        return lane

    def open_shared(self, partitions: Sequence[int], order_topic: str) -> tuple[Lane, list[Run]]:
        """An order matters only to who learns."""
        raise AdapterError("a model that does not learn needs no order of partitions")
