"""A name belongs to whoever took it last."""

from __future__ import annotations

import pytest

from streamclust.errors import AdapterError
from streamclust_adapters.claim import Claim


def test_the_last_who_took_a_name_has_it(tmp_path):
    first, second, other = (Claim(tmp_path, name) for name in ("a/b", "a/b", "a"))
    for claim in (first, other):
        claim.take()
    assert first.held()
    assert not second.held()
    second.take()
    assert second.held()
    assert not first.held()
    assert other.held()
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_read_says_nothing(tmp_path):
    claim = Claim(tmp_path, "a")
    claim.take()
    for path in tmp_path.iterdir():
        path.unlink()
    assert claim.held()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(AdapterError, match="cannot write"):
        Claim(tmp_path / "none", "a").take()
