"""The session that the Spark suite shares: two executors, each a process of its own.

STREAMCLUST_REQUIRE_SPARK makes a missing Java or Maven a failure.
"""

from __future__ import annotations

import pytest

from tests.demands import demand
from tests.spark.sessions import TWO_EXECUTORS, missing, session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    demand(missing(), "STREAMCLUST_REQUIRE_SPARK")
    made = session(TWO_EXECUTORS, tmp_path_factory.mktemp("spark"), kafka=True)
    try:
        yield made
    finally:
        made.stop()
