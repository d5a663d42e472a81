"""The per-event path, compiled: one call observes a block of rows, one call assigns a block.

`observe` keeps the window, the centers and the outlier store (engine.md, "Center tracker"), and
stops after a row that needs the engine: something moved, was born, died, or a refit is due. A
refused row changes nothing. Rows are ``[features ..., time, weight]`` in the user's units; the
kernels measure them from the origin in place. Absent time is nan.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import (
    body_kernel,
    entry_kernel,
    floats_at,
    inlined_kernel,
    ints_at,
    kernel,
)
from streamclust.kernels.metric import CLIP, distance, distances_across, euclid, squares_across
from streamclust.kernels.reservoir import admit, uniform
from streamclust.kernels.routing import route, route_ahead
from streamclust.results import FloatArray, IntArray

# Entries of the integer array `counts`.
TICK, N_CENTERS, N_MICRO, NEXT_REFIT, ALERTS, MOVED_SLOT, DEAD_SLOT, OUTLIERS, INSIDERS = range(9)
NEXT_LOOK, LOOK_INSIDERS, LOOK_OUTLIERS, NEXT_TREE = range(9, 13)
N_COUNTS = 13
# Entries of the float array `gauges`; those after STAMP are settings.
NOW, STAMP, NOISE_SHARE, COST, DECAY, P, LATENESS, BY_EVENTS, SEED, REACH, SILENCE, MIN_WEIGHT = (
    range(12)
)
BY_TREE, FENCED, MEAN_GAP, LAST_OUTLIER, MASS, FIDELITY, INSIDE_COST, RULE_COST = range(12, 20)
WINDOW_DECAY, LOOK_COST, LOOK_SQUARES = range(20, 23)
N_GAUGES = 23
# Columns of `stats`, one row per center.
FENCE, SCALE, WEIGHT, SIZE, STEPS, GAP, LAST, RATE, STEADY, CLUSTER, PINNED = range(11)
N_STATS = 11

# Bits of counts[ALERTS].
MOVED, BORN, DIED, REFIT, LOOK, TREE = 1, 2, 4, 8, 16, 32
# Why `observe` stopped: all rows done, an alert after the row, a value or a time refused.
DONE, ALERT, BAD_VALUE, BAD_TIME = range(4)
# Arrays whose places a desk tells: address, rows and columns of each, three integers.
(
    AT_FRAME,
    AT_CENTERS,
    AT_PLACED,
    AT_STATS,
    AT_MICRO,
    AT_SLOTS,
    AT_HEAP,
    AT_RECENT,
    AT_TABLE,
    AT_SCRATCH,
    AT_COUNTS,
    AT_GAUGES,
) = range(0, 36, 3)
N_DESK = 36
# What `assign` answers instead of a slot.
NOWHERE, REFUSED = -1, -2

FEW_ROWS = 8  # so few rows are observed one by one, more with a look at all centers at once
LOOK_ROWS = 256  # rows after which the look is at where the centers are by then
LOOK_FEATURES = 16  # the first features, which the look is confined to
AHEAD = 16  # rows that are led down the tree side by side
# Rows of `scratch`, which holds nothing between calls: features of centers, then these.
SQUARES, STRAYED, LEAVES = range(LOOK_FEATURES, LOOK_FEATURES + 3)
N_SCRATCH = LOOK_FEATURES + 3
LARGEST = 1e150
STEP_FLOOR = 0.01  # the online median forgets: drift is followed
MOVE_CHECK = 16  # arrivals of a center between two looks at how far it moved
MOVE_SHARE = 0.3  # of its cluster's scale, before the tree is told
RATE_GAPS = 12.0  # the fast weight of a cluster halves in this many of its mean gaps
RATE_LEVEL = RATE_GAPS / np.log(2.0)  # the fast weight of a steady cluster, which fades by
# exp(-1 / RATE_LEVEL) in a mean gap
RATE_DEAD = 0.1 * RATE_LEVEL
GAP_LIMIT = 10.0  # a silence must not lengthen the mean gap that it is measured by
SHARE_STEP = 1.0 / 256.0
RULE_STEP = 1.0 / 1024.0
SHIFTS = 3
FIRST_REACH = float(np.sqrt(2.0))  # reaches within which the first shift gathers
FADED = 0.05  # weight below which a micro-center is dropped


@inlined_kernel
def step(
    row: FloatArray, center: FloatArray, weights: FloatArray, dist: float, length: float, p: float
) -> None:
    """Move `center` towards `row` by `length`, along the steepest descent of ||row - center||_p.

    The direction is |u|^(p-1) sign(u) in scaled coordinates u, normalised in l_p; for p = 1 the
    coordinate-wise and for p = 2 the geometric stochastic median step.
    """
    d = weights.shape[0]
    if p == 2.0:
        for j in range(d):
            center[j] += length / dist * (row[j] - center[j])
        return
    norm = 0.0
    for j in range(d):
        norm += (abs(row[j] - center[j]) * weights[j] / dist) ** ((p - 1.0) * p)
    norm = norm ** (1.0 / p)
    for j in range(d):
        if weights[j] > 0.0 and row[j] != center[j]:
            size = (abs(row[j] - center[j]) * weights[j] / dist) ** (p - 1.0) / norm
            size = min(length * size / weights[j], abs(row[j] - center[j]))
            center[j] += size if row[j] > center[j] else -size


@inlined_kernel
def nearest(
    row: FloatArray,
    weights: FloatArray,
    centers: FloatArray,
    stats: FloatArray,
    k: int,
    p: float,
    first: int,
    squares: FloatArray,
    moved: FloatArray,
) -> tuple[int, float, int, float]:
    """Return slot and distance of the nearest center, and of the nearest one whose fence holds.

    Of equal ones the lower slot. The answer does not depend on `first`, a slot below k that is
    looked at before the others: a near one saves most of their arithmetic. Nor does it depend on
    `squares`, least squares of the distances to where the centers were, and `moved`, how far each
    has moved since at the most: by the triangle inequality they spare the far ones. Both may be
    empty.
    """
    slot, best, inside, best_inside = -1, np.inf, -1, np.inf
    bounded = squares.shape[0] > 0
    for turn in range(-1, k):
        c = first if turn < 0 else turn
        if k == 0 or turn == first:
            continue
        fence = stats[c, FENCE]
        limit = max(best, min(best_inside, fence))
        if bounded:
            reach = (limit + moved[c]) * (1.0 + 1e-6)  # the margin keeps roundings from deciding
            if squares[c] > reach * reach:
                continue
        if p == 2.0:
            dist = euclid(row, centers[c], weights, limit)
        else:
            dist = distance(row, centers[c], weights, p)
        if dist < best or (dist == best and c < slot):
            slot, best = c, dist
        if dist <= fence and (dist < best_inside or (dist == best_inside and c < inside)):
            inside, best_inside = c, dist
    return slot, best, inside, best_inside


@inlined_kernel
def fade_store(micro: FloatArray, counts: IntArray, fade: float) -> None:
    """Fade the weights of the outlier store and drop what has faded away."""
    d, n = micro.shape[0] - 1, counts[N_MICRO]
    faded = 0
    for m in range(n):
        micro[d, m] *= fade
        faded += micro[d, m] < FADED
    m = 0
    while faded > 0:
        if micro[d, m] < FADED:
            n, faded = n - 1, faded - 1
            for j in range(d + 1):
                micro[j, m] = micro[j, n]
        else:
            m += 1
    counts[N_MICRO] = n


@inlined_kernel
def store_outlier(
    row: FloatArray, weights: FloatArray, micro: FloatArray, counts: IntArray, gauges: FloatArray
) -> tuple[int, float]:
    """Add a row to the outlier store; return the micro-center that it joined or opened.

    A micro-center is a column ``[coordinates ..., faded weight]``. A row joins the nearest one
    within half the reach, else opens one, in place of the lightest when the store is full. Those
    that have faded away are dropped. Also returned is the weight that `gather` finds at first
    around what was opened, infinite where it was not added up.
    """
    d, p, now = weights.shape[0], gauges[P], gauges[NOW]
    fade = np.exp(-2.0 * gauges[DECAY] * (now - gauges[LAST_OUTLIER]))
    gauges[LAST_OUTLIER] = now
    fade_store(micro, counts, fade)
    n = counts[N_MICRO]
    apart = np.empty(n)
    touched, best, around = -1, 0.5 * gauges[REACH], 0.0
    radius = FIRST_REACH * gauges[REACH]
    limit = radius
    if p == 2.0:
        squares_across(row, micro, weights, apart)
        limit = radius * radius * (1.0 + 1e-12)
    else:
        distances_across(row, micro, weights, p, apart)
    for m in range(n):
        if apart[m] <= limit:
            dist = np.sqrt(apart[m]) if p == 2.0 else apart[m]
            if dist <= radius:
                around += micro[d, m]
            if dist <= best:
                touched, best = m, dist
    weight = row[d + 1]
    if touched >= 0:
        micro[d, touched] += weight
        for j in range(d):
            micro[j, touched] += weight / micro[d, touched] * (row[j] - micro[j, touched])
        return touched, np.inf
    if n < micro.shape[1] - 1:  # the last column is scratch for a birth
        touched = n
        counts[N_MICRO] += 1
        around += weight
    else:
        touched, around = 0, np.inf
        for m in range(1, n):
            if micro[d, m] < micro[d, touched]:
                touched = m
    for j in range(d):
        micro[j, touched] = row[j]
    micro[d, touched] = weight
    return touched, around


@kernel
def gather(
    touched: int,
    around: float,
    weights: FloatArray,
    centers: FloatArray,
    stats: FloatArray,
    micro: FloatArray,
    counts: IntArray,
    gauges: FloatArray,
) -> bool:
    """Look for a new cluster around a micro-center; leave its center in the scratch column.

    `touched` and `around` are what `store_outlier` returned: where too little lies around it, there
    is none.
    Mean-shift steps with a ball of the reach find the group. It is a cluster if it is heavy enough,
    denser than its surroundings (the shell between one and two reaches holds less than half of its
    weight; uniform noise holds more) and outside every fence.
    """
    if around < gauges[MIN_WEIGHT]:
        return False
    d, p, reach = weights.shape[0], gauges[P], gauges[REACH]
    n, scratch = counts[N_MICRO], micro.shape[1] - 1
    group, apart = np.empty(d), np.empty(n)
    for j in range(d):
        group[j] = micro[j, touched]
    for shift in range(SHIFTS):
        radius = FIRST_REACH * reach if shift == 0 else reach
        total, shell = 0.0, 0.0
        mean = np.zeros(d)
        distances_across(group, micro, weights, p, apart)
        for m in range(n):
            if apart[m] <= radius:
                total += micro[d, m]
                for j in range(d):
                    mean[j] += micro[d, m] * (micro[j, m] - group[j])
            elif apart[m] <= 2.0 * reach:
                shell += micro[d, m]
        if total < gauges[MIN_WEIGHT]:
            return False
        for j in range(d):
            group[j] += mean[j] / total
            micro[j, scratch] = group[j]
    micro[d, scratch] = total
    if shell > 0.5 * total:
        return False
    none, k = apart[:0], counts[N_CENTERS]
    return nearest(group, weights, centers, stats, k, p, 0, none, none)[2] < 0


@inlined_kernel
def arrive(
    row: FloatArray,
    slot: int,
    dist: float,
    weights: FloatArray,
    centers: FloatArray,
    placed: FloatArray,
    stats: FloatArray,
    gauges: FloatArray,
    moved: FloatArray,
) -> bool:
    """Let a row arrive at its center; tell whether the center left the place the tree knows.

    How far it moves at the most is added to its entry of `moved`, which may be empty.
    """
    d = weights.shape[0]
    now, weight = gauges[NOW], row[d + 1]
    s = stats[slot]
    gap = now - s[LAST]
    s[LAST] = now
    s[WEIGHT] = s[WEIGHT] * np.exp(-gauges[DECAY] * gap) + weight
    if s[GAP] > 0.0:
        s[RATE] = s[RATE] * np.exp(-gap / (RATE_LEVEL * s[GAP])) + 1.0
        gap = min(gap, GAP_LIMIT * s[GAP])
    if s[RATE] >= 0.5 * RATE_LEVEL:
        s[STEADY] = now
    s[SIZE] += 1.0
    s[STEPS] += 1.0
    share = max(1.0 / (s[STEPS] + 1.0), STEP_FLOOR)
    s[GAP] += share * (gap - s[GAP])
    if dist > 0.0:
        length = min(1.0, share * weight) * min(s[SCALE], dist)
        step(row, centers[slot], weights, dist, length, gauges[P])
        if moved.shape[0] > 0:
            moved[slot] += length if dist < CLIP else np.inf  # a clipped feature may move further
    if int(s[STEPS]) % MOVE_CHECK == 0:
        left = distance(centers[slot], placed[slot], weights, gauges[P])
        return bool(left > MOVE_SHARE * s[SCALE])
    return False


@inlined_kernel
def judge(
    row: FloatArray,
    slot: int,
    dist: float,
    leaf: int,
    weights: FloatArray,
    centers: FloatArray,
    stats: FloatArray,
    counts: IntArray,
    gauges: FloatArray,
) -> None:
    """Keep fidelity and price of the rule, as of before the row is learned (prequential).

    Fidelity is the share of recent events within a fence whose leaf is of the cluster of their
    center; the price is the mean distance to the leaf's center over that to their own. The same
    distances, in units of the cluster's scale, are what evidence of drift is read from.
    """
    counts[INSIDERS] += 1
    share = max(1.0 / counts[INSIDERS], RULE_STEP)
    answered = dist if leaf == slot else distance(row, centers[leaf], weights, gauges[P])
    agreed = 1.0 if stats[leaf, CLUSTER] == stats[slot, CLUSTER] else 0.0
    gauges[FIDELITY] += share * (agreed - gauges[FIDELITY])
    gauges[INSIDE_COST] += share * (dist - gauges[INSIDE_COST])
    gauges[RULE_COST] += share * (answered - gauges[RULE_COST])
    if stats[slot, SCALE] > 0.0:
        relative = dist / stats[slot, SCALE]
        counts[LOOK_INSIDERS] += 1
        gauges[LOOK_COST] += relative
        gauges[LOOK_SQUARES] += relative * relative


@body_kernel
def observe(
    rows: FloatArray,
    frame: FloatArray,
    centers: FloatArray,
    placed: FloatArray,
    stats: FloatArray,
    micro: FloatArray,
    slots: FloatArray,
    heap: IntArray,
    recent: FloatArray,
    table: FloatArray,
    scratch: FloatArray,
    counts: IntArray,
    gauges: FloatArray,
) -> tuple[int, int]:
    """Observe rows; return the row at which it stopped, and why.

    Shapes: rows (n, d + 2), frame (2, d), centers and placed (capacity, d), stats (capacity,
    N_STATS), micro (d + 1, capacity), slots (window, d + 3), heap (window + 1,), recent
    (capacity, d), table as in `route`, scratch (N_SCRATCH, at least capacity and AHEAD). On ALERT
    the row has been learned; on BAD_VALUE and BAD_TIME nothing of it has.
    """
    n, d = rows.shape[0], frame.shape[1]
    origin, weights = frame[0], frame[1]
    # What changes by one with every row, or not at all, is worked out once for the whole block.
    k, one_later = counts[N_CENTERS], np.exp(-gauges[DECAY])
    place, watched = counts[TICK] % recent.shape[0], counts[TICK] % max(k, 1)
    ahead = n > FEW_ROWS and k > 0
    wide = min((k + 3) // 4 * 4, scratch.shape[1]) if ahead and gauges[P] == 2.0 else 0
    seen, leaves = min(d, LOOK_FEATURES), scratch[LEAVES, :AHEAD]
    squares, moved = scratch[SQUARES, :wide], scratch[STRAYED, :wide]
    for i in range(n):
        row = rows[i]
        if ahead and i % AHEAD == 0:
            route_ahead(rows[i:], origin, table, leaves)
        if ahead and i % LOOK_ROWS == 0:
            moved[:] = 0.0
            for c in range(min(k, wide)):
                for j in range(seen):
                    scratch[j, c] = centers[c, j]
        leaf = 0
        if k > 0:
            leaf = ~int(leaves[i % AHEAD]) if ahead else route(row, origin, table)
        for j in range(d):
            if not abs(row[j]) <= LARGEST:
                return i, BAD_VALUE
        if not 0.0 < row[d + 1] <= LARGEST:
            return i, BAD_VALUE
        if row[d] < gauges[STAMP] - gauges[LATENESS] or np.isinf(row[d]):
            return i, BAD_TIME
        if row[d] > gauges[STAMP]:
            gauges[STAMP] = row[d]
        before = gauges[NOW]
        gauges[NOW] = before + 1.0 if gauges[BY_EVENTS] else gauges[STAMP]
        counts[TICK] += 1
        counts[ALERTS] = 0
        tick, now = counts[TICK], gauges[NOW]
        gap = now - before
        fade = one_later if gap == 1.0 else np.exp(-gauges[DECAY] * gap)
        gauges[MASS] = gauges[MASS] * fade + row[d + 1]
        if tick > 1:
            gauges[MEAN_GAP] += max(1.0 / (tick - 1), SHARE_STEP) * (gap - gauges[MEAN_GAP])
        row[d] = now
        for j in range(d):
            row[j] -= origin[j]
            recent[place, j] = row[j]
        place = place + 1 if place + 1 < recent.shape[0] else 0
        watched = watched + 1 if watched + 1 < k else 0
        if gauges[WINDOW_DECAY] < np.inf:
            draw = -np.log(uniform(int(gauges[SEED]), tick))
            key = np.log(draw) - gauges[WINDOW_DECAY] * now
            if row[d + 1] != 1.0:
                key -= np.log(row[d + 1])
        else:  # a sliding window: the newest are kept
            key = -float(tick)
        admit(row, key, slots, heap)
        if k > 0 or gauges[REACH] > 0.0:
            if wide > 0:
                squares_across(row[:seen], scratch, weights[:seen], squares)
            _, near, slot, dist = nearest(
                row, weights, centers, stats, k, gauges[P], leaf, squares, moved
            )
            outside = 1.0 if slot < 0 else 0.0
            gauges[NOISE_SHARE] += SHARE_STEP * (outside - gauges[NOISE_SHARE])
            if k > 0:
                gauges[COST] += SHARE_STEP * (near - gauges[COST])
            if slot >= 0:
                judge(row, slot, dist, leaf, weights, centers, stats, counts, gauges)
                if arrive(row, slot, dist, weights, centers, placed, stats, gauges, moved):
                    counts[ALERTS] |= MOVED
                    counts[MOVED_SLOT] = slot
            else:
                counts[OUTLIERS] += 1
                counts[LOOK_OUTLIERS] += 1
                touched, around = store_outlier(row, weights, micro, counts, gauges)
                if gather(touched, around, weights, centers, stats, micro, counts, gauges):
                    counts[ALERTS] |= BORN
            if k > 0 and silent(watched, stats, gauges):
                counts[ALERTS] |= DIED
                counts[DEAD_SLOT] = watched
        if tick >= counts[NEXT_REFIT]:
            counts[ALERTS] |= REFIT
        if tick >= counts[NEXT_LOOK]:
            counts[ALERTS] |= LOOK
        if tick >= counts[NEXT_TREE]:
            counts[ALERTS] |= TREE
        if counts[ALERTS]:
            return i, ALERT
    return n, DONE


@inlined_kernel
def silent(slot: int, stats: FloatArray, gauges: FloatArray) -> bool:
    """Whether a center's fast weight has fallen to a tenth of its steady level.

    After a steady rate that is a silence of about 40 mean gaps, and stray noise within the fence
    does not end it; it is at least gauges[SILENCE] of time since the rate was last steady. A pinned
    cluster is never silent.
    """
    s = stats[slot]
    if gauges[NOW] - s[STEADY] < gauges[SILENCE] or s[GAP] <= 0.0 or s[PINNED] > 0.0:
        return False
    return bool(s[RATE] * np.exp(-(gauges[NOW] - s[LAST]) / (RATE_LEVEL * s[GAP])) < RATE_DEAD)


@inlined_kernel
def answer(
    row: FloatArray,
    slot: int,
    frame: FloatArray,
    centers: FloatArray,
    stats: FloatArray,
    counts: IntArray,
    gauges: FloatArray,
) -> int:
    """Return the slot of a row's center, NOWHERE, or REFUSED; only the row itself is changed.

    `slot` is what `route` returned. In tree mode it decides and any fence may admit the row, its
    own being tried first; else the nearest center whose fence holds.
    """
    weights, k, p = frame[1], counts[N_CENTERS], gauges[P]
    for j in range(frame.shape[1]):
        if not abs(row[j]) <= LARGEST:
            return REFUSED
        row[j] -= frame[0, j]
    if k == 0:
        return NOWHERE
    if gauges[BY_TREE]:
        if not gauges[FENCED]:
            return slot
        for turn in range(-1, k):
            c = slot if turn < 0 else turn
            fence = stats[c, FENCE]
            if p == 2.0:
                dist = euclid(row, centers[c], weights, fence)
            else:
                dist = distance(row, centers[c], weights, p)
            if dist <= fence:
                return slot
        return NOWHERE
    none = weights[:0]
    near, _, inside, _ = nearest(row, weights, centers, stats, k, p, slot, none, none)
    return inside if inside >= 0 or gauges[FENCED] else near


@entry_kernel
def observe_at(desk: int, row: int, n: int) -> int:
    """`observe` the n rows at the address `row`; return 4 * (where it stopped) + why.

    A compiled call costs about .15 us for every array among its arguments (measured), ten times
    what it takes to find one through the desk. `desk` is the address of `Desk.places`. Such arrays
    have no owner: where `observe` is part of this kernel the compiler knows it, and leaves out
    about 30 calls a row that count the users of arrays.
    """
    at = ints_at(desk, N_DESK)
    d = at[AT_FRAME + 2]
    done, why = observe(
        floats_at(row, n, d + 2),
        floats_at(at[AT_FRAME], 2, d),
        floats_at(at[AT_CENTERS], at[AT_CENTERS + 1], d),
        floats_at(at[AT_PLACED], at[AT_PLACED + 1], d),
        floats_at(at[AT_STATS], at[AT_STATS + 1], N_STATS),
        floats_at(at[AT_MICRO], d + 1, at[AT_MICRO + 2]),
        floats_at(at[AT_SLOTS], at[AT_SLOTS + 1], d + 3),
        ints_at(at[AT_HEAP], at[AT_HEAP + 1]),
        floats_at(at[AT_RECENT], at[AT_RECENT + 1], d),
        floats_at(at[AT_TABLE], at[AT_TABLE + 1], 4),
        floats_at(at[AT_SCRATCH], N_SCRATCH, at[AT_SCRATCH + 2]),
        ints_at(at[AT_COUNTS], N_COUNTS),
        floats_at(at[AT_GAUGES], 1, N_GAUGES)[0],
    )
    return 4 * done + why


@entry_kernel
def assign_at(desk: int, row: int) -> int:
    """Return the `answer` for the row at the address `row`; only the row itself is changed."""
    at = ints_at(desk, N_DESK)
    d = at[AT_FRAME + 2]
    point, frame = floats_at(row, 1, d + 2)[0], floats_at(at[AT_FRAME], 2, d)
    return answer(
        point,
        route(point, frame[0], floats_at(at[AT_TABLE], at[AT_TABLE + 1], 4)),
        frame,
        floats_at(at[AT_CENTERS], at[AT_CENTERS + 1], d),
        floats_at(at[AT_STATS], at[AT_STATS + 1], N_STATS),
        ints_at(at[AT_COUNTS], N_COUNTS),
        floats_at(at[AT_GAUGES], 1, N_GAUGES)[0],
    )


@entry_kernel
def place_at(desk: int, row: int, ratio: float, out: int) -> int:
    """`assign_at`, and tell into the two floats at `out` how the row stands among the clusters.

    First its relative distance (in units of a center's scale) to its cluster, or for noise to the
    nearest one; then how many centers of other clusters are so near that their relative distance
    times `ratio` is at most that. Nothing is told where the row is refused or there is no center.
    """
    at, told = ints_at(desk, N_DESK), floats_at(out, 1, 2)[0]
    d, k = at[AT_FRAME + 2], ints_at(at[AT_COUNTS], N_COUNTS)[N_CENTERS]
    slot = assign_at(desk, row)
    if slot == REFUSED or k == 0:
        return slot
    point, weights = floats_at(row, 1, d + 2)[0], floats_at(at[AT_FRAME], 2, d)[1]
    centers = floats_at(at[AT_CENTERS], at[AT_CENTERS + 1], d)
    stats = floats_at(at[AT_STATS], at[AT_STATS + 1], N_STATS)
    p = floats_at(at[AT_GAUGES], 1, N_GAUGES)[0, P]
    relative = np.empty(k)
    own = np.inf
    for c in range(k):
        dist = distance(point, centers[c], weights, p)
        relative[c] = dist / stats[c, SCALE] if dist > 0.0 else 0.0
        if slot < 0 or stats[c, CLUSTER] == stats[slot, CLUSTER]:
            own = min(own, relative[c])
    rivals = 0.0
    for c in range(k):
        if relative[c] * ratio <= own and slot >= 0 and stats[c, CLUSTER] != stats[slot, CLUSTER]:
            rivals += 1.0
    told[0], told[1] = own, rivals
    return slot


@entry_kernel
def assign_rows_at(desk: int, rows: int, slots: int, n: int) -> int:
    """`answer` the n rows at an address, into the slots at another; return where it stopped.

    That is the first refused row, or n.
    """
    at, found = ints_at(desk, N_DESK), ints_at(slots, n)
    d = at[AT_FRAME + 2]
    many = floats_at(rows, n, d + 2)
    frame = floats_at(at[AT_FRAME], 2, d)
    table = floats_at(at[AT_TABLE], at[AT_TABLE + 1], 4)
    centers = floats_at(at[AT_CENTERS], at[AT_CENTERS + 1], d)
    stats = floats_at(at[AT_STATS], at[AT_STATS + 1], N_STATS)
    counts, gauges = ints_at(at[AT_COUNTS], N_COUNTS), floats_at(at[AT_GAUGES], 1, N_GAUGES)[0]
    leaves = floats_at(at[AT_SCRATCH], N_SCRATCH, at[AT_SCRATCH + 2])[LEAVES, :AHEAD]
    for i in range(n):
        if i % AHEAD == 0:
            route_ahead(many[i:], frame[0], table, leaves)
        found[i] = answer(many[i], ~int(leaves[i % AHEAD]), frame, centers, stats, counts, gauges)
        if found[i] == REFUSED:
            return i
    return n
