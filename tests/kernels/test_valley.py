import numpy as np
import pytest

from streamclust.kernels.valley import border_weight, fisher_line


@pytest.mark.parametrize("p", [1, 2, 7])
@pytest.mark.parametrize("seed", range(3))
def test_the_line_is_fishers(p, seed):
    rng = np.random.default_rng(seed)
    points = np.concatenate((rng.normal(size=(30, p)), rng.normal(1.0, 2.0, (50, p))))
    points = points @ rng.normal(size=(p, p))
    weights, along = rng.uniform(0.5, 2.0, 80), np.empty(80)
    fisher_line(points, weights, 30, 0.3, along)
    means, scatter = [], np.zeros((p, p))
    for own in (slice(0, 30), slice(30, 80)):
        means.append(np.average(points[own], axis=0, weights=weights[own]))
        step = points[own] - means[-1]
        scatter += (weights[own, None] * step).T @ step
    total = weights.sum()
    sphere = 0.5 * (p + 2) * np.trace(scatter) / (total * p) + 0.3e-6 * total
    direction = np.linalg.solve(scatter + sphere * np.eye(p), means[1] - means[0])
    assert np.allclose(along, points @ direction)


def middle_half(values, weights):
    order = np.argsort(values)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    low, high = np.interp((0.25, 0.75), below / weights.sum(), values[order])
    return high - low


@pytest.mark.parametrize(("first", "n"), [(1, 2), (1, 40), (3, 7), (30, 100)])
@pytest.mark.parametrize("seed", range(3))
def test_the_border_is_where_fewest_are_on_the_wrong_side(first, n, seed):
    rng = np.random.default_rng(seed)
    along = np.concatenate((rng.normal(size=first), rng.normal(2.0, 1.0, n - first)))
    weights = rng.uniform(0.5, 2.0, n)
    order = np.argsort(along)
    width, found, expected = border_weight(along, weights, order, first)
    one, other = (
        middle_half(along[own], weights[own])
        for own in (order[order < first], order[order >= first])
    )
    assert width == pytest.approx(0.5 * min(one, other))
    if width <= 0.0:
        assert (found, expected) == (0.0, 0.0)
        return
    cuts = 0.5 * (along[order[1:]] + along[order[:-1]])
    side = np.arange(n) < first
    wrong = [
        weights[side & (along > cut)].sum() + weights[~side & (along < cut)].sum() for cut in cuts
    ]
    border = cuts[int(np.argmin(wrong))]
    assert found == pytest.approx(weights[np.abs(along - border) <= 0.5 * width].sum())
    density = np.sqrt(0.5 * weights[:first].sum() / one * 0.5 * weights[first:].sum() / other)
    assert expected == pytest.approx(density * width)
