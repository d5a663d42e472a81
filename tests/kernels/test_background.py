import numpy as np
import pytest

from streamclust.kernels.background import kth_least, weigh_background


@pytest.mark.parametrize("k", [1, 3, 9])
def test_kth_least(k):
    values = np.random.default_rng(k).integers(0, 12, (40, 9)).astype(float)
    out = np.empty(40)
    kth_least(values, k, out)
    assert np.array_equal(out, np.sort(values, axis=1)[:, k - 1])


def test_the_mixture_is_fitted_by_expectation_and_maximisation():
    rng = np.random.default_rng(0)
    own = np.concatenate((rng.normal(0.0, 1.0, 150), rng.normal(6.0, 0.5, 20)))
    middle, width, far, spread, share = 0.5, 2.0, 6.0, 0.5, 0.05
    like = np.empty(170)
    assert weigh_background(own, middle, width, far, spread, share, 7, like)
    for _ in range(7):
        background = share / spread * np.exp(-0.5 * np.minimum((own - far) / spread, 0.0) ** 2)
        others = (1.0 - share) / width * np.exp(-0.5 * np.maximum((own - middle) / width, 0.0) ** 2)
        told = background / (background + others)
        share = told.mean()
        middle = np.average(own, weights=1.0 - told)
        width = np.sqrt(np.average((own - middle) ** 2, weights=1.0 - told))
    assert np.allclose(like, told)
    assert np.array_equal(like > 0.5, np.arange(170) >= 150)


@pytest.mark.parametrize(("far", "spread"), [(-1.0, 0.5), (6.0, 0.0)])
def test_laws_that_cannot_be_told_apart(far, spread):
    own, like = np.random.default_rng(1).normal(size=50), np.empty(50)
    assert not weigh_background(own, 0.0, 1.0, far, spread, 0.05, 5, like)
