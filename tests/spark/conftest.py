"""The session that the Spark suite shares: two executors, each a process of its own.

STREAMCLUST_REQUIRE_SPARK makes a missing Java or Maven a failure.
"""

from __future__ import annotations

import os

import pytest

from tests.spark.sessions import TWO_EXECUTORS, missing, session


def demand_java():
    """Skip, or fail where that is asked for, what this machine cannot run."""
    if (why := missing()) is not None:
        if os.environ.get("STREAMCLUST_REQUIRE_SPARK"):
            pytest.fail(why)
        pytest.skip(why)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    demand_java()
    made = session(TWO_EXECUTORS, tmp_path_factory.mktemp("spark"), kafka=True)
    try:
        yield made
    finally:
        made.stop()
