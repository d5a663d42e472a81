"""Which new cluster is which old one."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.events import ClusterBorn, ClusterDied, ClustersMerged, ClusterSplit
from streamclust.identity import lineage, match


def matched(ids, old, new, n_new=None):
    old, new = np.array(old), np.array(new)
    n_new = int(new.max()) + 1 if n_new is None else n_new
    return match(ids, old, new, n_new, np.ones(len(old)))


def told(ids, old, new):
    found = matched(ids, old, new)
    fresh = iter(range(100, 200))
    new_ids = [
        found.survivors[b] if b in found.survivors else next(fresh) for b in range(max(new) + 1)
    ]
    return lineage(found, new_ids, np.bincount([b for b in new if b >= 0]).astype(float), 9, 9.0)


def test_equal_clusters_keep_their_ids_whatever_their_order():
    found = matched([5, 8], [0] * 10 + [1] * 10, [1] * 10 + [0] * 10)
    assert found.survivors == {1: 5, 0: 8}
    assert not any((found.born, found.splits, found.merges, found.died, found.unseen))


def test_noise_does_not_break_identity():
    found = matched([3], [0] * 10 + [-1] * 5, [0] * 7 + [-1] * 3 + [0] * 5)
    assert found.survivors == {0: 3}


def test_a_split_leaves_the_id_with_the_largest_child():
    (split,) = told([4], [0] * 20, [0] * 8 + [1] * 12)
    assert isinstance(split, ClusterSplit)
    assert (split.parent, split.children[0]) == (4, 4)
    assert split.children[1] == 100
    assert split.overlaps == (0.6, 0.4)


def test_a_merge_keeps_the_heaviest_parents_id():
    (merge,) = told([4, 6], [0] * 8 + [1] * 12, [0] * 20)
    assert isinstance(merge, ClustersMerged)
    assert (merge.parents, merge.child) == ((6, 4), 6)
    assert merge.overlaps == (1.0, 1.0)


def test_a_cluster_of_former_noise_is_born_and_one_that_became_noise_dies():
    born, died = told([4], [0] * 10 + [-1] * 10, [-1] * 10 + [0] * 10)
    assert isinstance(born, ClusterBorn)
    assert (born.cluster, born.weight, born.found_by) == (100, 10.0, "refit")
    assert isinstance(died, ClusterDied)
    assert (died.cluster, died.reason) == (4, "refit")


def test_a_cluster_too_rare_for_the_window_lives_on():
    found = matched([4, 9], [0] * 199 + [1], [0] * 199 + [-1])
    assert found.unseen == [9]
    assert not found.died


def test_without_old_clusters_all_are_born():
    found = matched([], [-1] * 6, [0, 0, 1, 1, 2, 2])
    assert found.born == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_every_old_and_every_new_cluster_has_exactly_one_fate(seed):
    rng = np.random.default_rng(seed)
    n_old, n_new = rng.integers(1, 6, 2)
    old = rng.integers(-1, n_old, 60)
    new = np.where(rng.random(60) < 0.7, old % n_new, rng.integers(-1, n_new, 60))
    ids = [10 + a for a in range(n_old)]
    found = match(ids, old, new, int(n_new), np.ones(60))
    fates = [
        *found.survivors.values(),
        *(i for m in found.merges.values() for i in m),
        *found.died,
        *found.unseen,
    ]
    assert sorted(fates) == ids
    origins = [*found.survivors, *found.born, *(b for s in found.splits.values() for b in s)]
    assert sorted(origins) == list(range(n_new))
