"""Plain oracles for the clocks: every arrival up to a horizon, in order, compared one by one."""

import math

MASK = (1 << 64) - 1


def mixed(z):
    z &= MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def unit(z):
    return ((mixed(z) >> 11) + 0.5) * 2.0**-53


def arrivals(key, feature_key, side, lowest_band, highest_band, horizon):
    """All arrivals (time, mark, band, index) of one (feature, side) up to a horizon."""
    golden = 0x9E3779B97F4A7C15
    stream = mixed(mixed(key + golden) ^ feature_key)
    found = []
    for band in range(lowest_band, highest_band + 1):
        edge = math.ldexp(1.0, 4 * band)
        time, index = 0.0, 0
        while True:
            counter = ((band + 1024) * 2 + side) * 8192 + 2 * index
            chance = unit(stream + counter * golden)
            if index == 0:
                group = mixed(stream + (2**32 + (band // 4 + 256) * 2 + side) * golden)
                chance = (group // 65536 ** (band % 4) % 65536 + chance) / 65536
            time += -math.log1p(-chance) / (15 * edge)
            if time > horizon:
                break
            mark = edge * (1 + 15 * unit(stream + (counter + 1) * golden))
            found.append((time, mark, band, index))
            index += 1
    return sorted(found)


def first_arrival(key, feature_keys, anchor, weights, scale, p, lowest_band, center, stop):
    """(time, feature, side, band, index) of the earliest arrival up to `stop` that cuts.

    Under the paper's law; looks ever further ahead, for far ahead there are very many arrivals.
    """
    gaps = [w * abs(x - m) / scale for m, w, x in zip(anchor, weights, center, strict=True)]
    rate = sum(gap**p for gap in gaps)
    if rate == 0:
        return None
    horizon = 2 / rate
    while True:
        found = _first(
            key, feature_keys, anchor, weights, scale, p, lowest_band, center, min(horizon, stop)
        )
        if found is not None or horizon >= stop or horizon * rate > 1e3:
            return found
        horizon *= 4


def _first(key, feature_keys, anchor, weights, scale, p, lowest_band, center, horizon):
    best = None
    for i, (m, w, x) in enumerate(zip(anchor, weights, center, strict=True)):
        if w == 0 or x == m:
            continue
        side = 1 if x > m else 0
        top = math.ceil(math.log2(w * abs(x - m) / scale) * p / 4) + 1
        found = arrivals(key, int(feature_keys[i]), side, lowest_band, top, horizon)
        for time, mark, band, index in found:
            offset = mark ** (1 / p) * scale / w
            threshold = m + offset if side else math.nextafter(m - offset, -math.inf)
            if (x > threshold) == (side == 1) and (best is None or time < best[0]):
                best = (time, i, side, band, index)
    return best
