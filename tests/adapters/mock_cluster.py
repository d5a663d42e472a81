"""librdkafka's mock of a cluster, which answers requests with the errors that a test asks for.

The Python client starts such a mock but cannot inject errors, so the library that it brings is
called directly.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import confluent_kafka

# Requests of Kafka's protocol, by their numbers.
PRODUCE, FETCH, LIST_OFFSETS, OFFSET_FETCH = 0, 1, 2, 9
INIT_PRODUCER, ADD_PARTITIONS, ADD_OFFSETS, END_TRANSACTION, COMMIT_OFFSETS = 22, 24, 25, 26, 28

_PRODUCER = 0


class MockCluster:
    """A cluster in memory.

    Attributes
    ----------
    address : str
        Where it listens.
    """

    def __init__(self, **topics: int) -> None:
        self._library = _library()
        told = ctypes.create_string_buffer(512)
        conf = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(conf, b"log_level", b"0", told, 512)
        self._client = self._library.rd_kafka_new(_PRODUCER, conf, told, 512)
        assert self._client, told.value
        self._mock = self._library.rd_kafka_mock_cluster_new(self._client, 1)
        self.address = self._library.rd_kafka_mock_cluster_bootstraps(self._mock).decode()
        for name, partitions in topics.items():
            made = self._library.rd_kafka_mock_topic_create(
                self._mock, name.encode(), partitions, 1
            )
            assert made == 0

    def __enter__(self) -> MockCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._mock)
        self._library.rd_kafka_destroy(self._client)

    def inject(self, request: int, *errors: int) -> None:
        """Answer the next requests of a kind with these errors, one each."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._mock, request, len(errors), codes
        )


def _library() -> ctypes.CDLL:
    package = Path(confluent_kafka.__file__).parent
    (path,) = (package.parent / "confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    handle, text, size, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
    results = {
        "conf_new": (handle, []),
        "conf_set": (number, [handle, text, text, text, size]),
        "new": (handle, [number, handle, text, size]),
        "destroy": (None, [handle]),
        "mock_cluster_new": (handle, [handle, number]),
        "mock_cluster_destroy": (None, [handle]),
        "mock_cluster_bootstraps": (text, [handle]),
        "mock_topic_create": (number, [handle, text, number, number]),
        "mock_push_request_errors_array": (
            None,
            [handle, ctypes.c_int16, size, ctypes.POINTER(number)],
        ),
    }
    for name, (result, arguments) in results.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library
