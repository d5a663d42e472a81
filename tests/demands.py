"""What a machine may lack: tests that need it are skipped, or fail where it is required."""

from __future__ import annotations

import os

import pytest


def demand(why, required):
    """Skip for the reason `why`, or fail where the variable `required` is set; None: go on."""
    if why is not None:
        if os.environ.get(required):
            pytest.fail(f"{why}; {required} is set")
        pytest.skip(why)
