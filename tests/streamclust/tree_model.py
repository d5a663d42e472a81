"""A naive model of the threshold tree: built at once, in plain Python, from live records."""

from streamclust.growth import lowest_band
from streamclust.nodes import Node
from tests.kernels.cuts_references import first_arrival


def built_at_once(node, centers, keys, p):
    """The tree that the records at and below `node` give for `centers` (id -> position).

    Returns nested tuples (record key, [(identity, part), ...], main part).
    """
    if len(centers) == 1:
        return next(iter(centers))
    assert isinstance(node, Node), "two centers without a record"
    record, measure = node.record, node.record.measure
    assert (measure.table_of < 0).all(), "the model knows the paper's measure only"
    groups, main = {}, {}
    for id, center in centers.items():
        found = first_arrival(
            record.key,
            keys,
            measure.anchor.tolist(),
            measure.weights.tolist(),
            measure.scale,
            p,
            lowest_band(p),
            center.tolist(),
            record.stop * (1 + 1e-12),
        )
        if found is None:
            main[id] = center
        else:
            time, feature, side, band, turn = found
            identity = (int(keys[feature]), side, band, turn)
            groups.setdefault((time, identity), {})[id] = center
    below = {arrival.identity: part for arrival, part in node.spine.items()}
    parts = [
        (identity, built_at_once(below[identity], members, keys, p))
        for (_, identity), members in sorted(groups.items(), key=lambda item: item[0])
    ]
    return record.key, parts, built_at_once(node.main, main, keys, p) if main else None


def told(part):
    """A live part in the model's words."""
    if not isinstance(part, Node):
        return part
    return (
        part.record.key,
        [(arrival.identity, told(below)) for arrival, below in part.spine.items()],
        told(part.main),
    )
