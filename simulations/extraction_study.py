"""How well a blind refit finds classes: 21 sets, 0 and 10 % noise, one default, no labels.

    python simulations/extraction_study.py FOLDER [--seeds 3] [--scale deviation|range] [--sets a,b]

FOLDER holds the reference data (``newthyroid.csv.gz`` and so on, header, label last); without the
argument the environment variable STREAMCLUST_DATA is read. Protocol: rows shuffled, uniform noise
rows in the box of the clean ones, features divided by their standard deviation (or by a guarded
range, as the engine does), adjusted Rand index on the clean rows with noise as one label; for the
sets of one class the share of pairs kept together. Columns: KMeans told the number of classes, the
default, and the default without one of its parts.

What was tried on the way, mean of the 21 sets (deviation / range), 3 seeds:

===================================================================  =============
first version: 3 hierarchies, 3 prices, best 3 refined, pieces joined  .682 / .666
 + refining and joining in turn                                        .685
 + half the price added as finer cuts                                  .685
 + a second round in coordinates whitened by the pooled covariance     .687 (1), .685 (2 rounds)
 parameters priced by the log of the cluster's weight                  .483
 inverse Wishart marginal likelihood instead of parameter counts       .640 (.681 floored anew)
 variance floor .001 instead of .01                                    .679
 + joining pieces without a valley: .9 of the thinner side, like .4    .695
   the same, .6 and .3                                                 .747 / .730
   the same, no test of like density, .9 and .7                        .684
 + fine cuts joined upwards (12 clusters)                              .757 / .748
   with 24 instead                                                     .751
 + valley against the geometric mean of both sides, half               .767 / .749
 + giving clusters up to noise                                         .764 / .743
 + half a log of the window's weight per cluster                       .774 / .751
   a whole log                                                         .775 / .752, small sets lose
   lightest cluster 5 instead of 3                                     .769 / .743, windows of 40
                                                                       points lose half
 last state above, measured anew                                       .771 / .758
 + code space chosen from features cut to their inner nine tenths,
   one system per level of the truncation, one cut polished            .779 / .765
===================================================================  =============

What was tried on that last step. First figure: prefixes of five streams (wine, iris, breast cancer,
digits, segments; 60 to 1,000 rows, 0 and 10 % noise) in the engine's scaling; second figure: nine
of the sets above (newthyroid to r15 without iris, and uneq), deviation scaling; 2 seeds.

===================================================================  =============
 principal coordinates of the plain covariance                         .536 / .779
 of the directions from the spatial median                             .590 / .767, wisconsin .79
                                                                       to .49
 of the directions from the mean; of all pairwise directions           .597, .598 / .759, .738
 of points that count at most like an M-scale's radius                 .549-.562 / .761-.773
 of features cut one inner range outside the inner one                 .582 / .786
 of features cut to the inner range, 5 % at each end (taken)           .577 / .795
   the ends counted by weight instead of distinct rows                 wisconsin .68 instead of .82
   2 % or 10 % at each end                                             both means lower
 coordinates above .7 or .4 of the mean variance instead of 1          wine better, dermatology
                                                                       .87 to .65-.68
 two systems per level instead of one                                  the same, moons and circles
                                                                       .05 to .08 lower
 without the fine cuts that jump beyond 48 clusters                    the same, a single Gaussian
                                                                       at under a sixth of the time
 polish three or two promising cuts instead of one                     the same
===================================================================  =============

After that, mean of the 21 sets (deviation / range; seeds 0-2, 10, 11), of the six sets of the COMET
table at 10 % noise (seeds 20-29), of mice_protein, orlraws10p and brain (0 and 10 %, seeds 0-2):

===================================================================  =====================
 last state above                                                      .774 / .760, .696, .325
 background told apart in all features of a wide window, wherever
   its law is likelier                                                 .766 / .756, .735, .325
   the same, and no other noise in a wide window                       .766 / .760, .769, .351
   the same, noise of the code filled from the laws instead            .764 / .755, .744, .338
 + only where it lies evenly in the box (wisconsin without noise
   .45 to .81), noise of the code as before                            .773 / .755, .728, .325
   no other noise where background was found                           .773 / .756, .743, .318
   no other noise in any wide window                                   .771 / .760, .769, .351
 + or lonelier than nearly all background, against wild values         .772 / .760, .769, .351
 + of more features than points the principal coordinates are cut
   in the choice of the code space (taken)                             the same, .772, .399
   without Ward's hierarchy of the plain points                        .773 / .769, .766, -
   fused in all features instead of the code space                     target .764, held .346
   the same, without the step of background                            target .711, held .341
===================================================================  =====================

RCC, which joins no pieces, on the same windows: .726 (three seeds), .773, .360; moons and circles
are its loss, lung_discrete and pendigits under noise its gain. What its fusion does better is open.

One Gaussian of 20 features with 10 % noise is one cluster in 20 of 20 seeds; before in 16.

The two last states on seeds 10 and 11: .751 / .736 and .766 / .753. On other data (SolarFlare and
seven make_* families, engine scaling): .700 and .699, so that the gain is that of wild values.

The valley test, on pieces held fixed, more seeds (streams / sets / seven single skewed clusters):
as it is .573 / .780 / .601. Never joining .580 / .693 / .547. A Poisson margin of 1, 1.64 or 2.33
deviations above the dip costs circles half and more and gives the streams at most .004 in the first
seeds. A constant margin of 1.5 to 3 points (a likelihood ratio of valley against none) gives wine
.01 to .03 and takes up to .4 from circles. Joining pieces of unlike density: skewed clusters .58
to .76-.81 and breast cancer .56 to .21, whose two classes are such a pair; not taken, so that a
skewed cluster still gave 3 to 6 pieces.

Told k, and the grain of the data. Prequential ARI, nearest centers: the six real streams (iris,
wine, breast cancer, phishing, digits, segments; seeds 0-2 or 0-1) / ten sets that served no choice
(newthyroid, dermatology, mice_protein, pendigits, wisconsin, lung_discrete, seeds 0-1; blobs of
unlike spreads, stretched, of unlike sizes, moons, seeds 0-2), rows shuffled.

===================================================================  ===========
told k: the shortest description of k clusters                        .511 / .657
 k-means; Gaussian mixtures: spherical, diagonal, tied, 3 seeds        .579; .582, .556, .558
 k-medians in all features, 2 seeds                                    .605 / .615
 Ward's hierarchy of the representatives cut at k, 2 seeds             .589 / .586
 the best of these by the code of spherical laws                       .580
   by the cheaper of a spherical and a diagonal law                    .600
   of diagonal laws (taken), with 0, 4 (taken), 10 random starts       .594, .610, .607 / .656
   the same, k-medians in the code space instead, 2 seeds              .594 for .606
 without background told apart before; without trimming                .606; .610
===================================================================  ===========

The same candidates on prefixes of 40 to 1,000 rows of 17 sets, chosen by one figure each: cost of
k-medians .625 / .633, diagonal code .604 / .687, spherical .609 / .679, tied .578 / .672, the
shortest of all laws .572 / .679, silhouette of the representatives .592 / .653, conductance .591 /
.641, neighbour purity .535 / .702, agreement .555 / .643; the best on offer .674 / .747.

===================================================================  ===========
unknown k, mean of the 21 sets at 0 and 10 % noise, deviation / range  .778 / .767
 + the variance of rounding by coordinate, median gap of all values    .778 / .769
   of values that several rows share (taken)                           .779 / .772
   phishing as a stream .088 to .174, wisconsin as one .659 to .761
 the mean variance in every coordinate                                 digits .54 for .59 in 3 seeds
 the number of clusters found, then told to the choice above           streams +.017, others -.002;
                                                                       four more seeds of 11 sets
                                                                       -.002
 k-medians and Ward's cuts at 2 to 6 clusters as starts of the search  shorter in 5 of 100 windows
 the unit of a feature at least its standard deviation                 .509 for .514, told .506
===================================================================  ===========

So not the search limits iris (two clusters at every length of prefix) and wine, but the code.

Skewed clusters. First figure: the 21 sets, deviation / range scaling; second: single clusters of
eight laws (normal, uniform, exponential, lognormal, two t laws, bent, Poisson) of 2, 5, 8 and 20
features; third: prefixes of ten streams in the engine's scaling; two fresh seeds each.

===================================================================  ========================
last state above                                                      .775 / .762, .804, .539
 every feature made as Gaussian as a power makes it, before all else   .720, .942, .470
   the same, by an inverse hyperbolic sine of middle halves            .682, .931, .502
 + a shape with a mode and two scales per coordinate, everywhere       .774 / .761, .953, .528
   the same, better fitted                                             .774 / .761, .949, .543,
                                                                       breast cancer .58 to .47,
                                                                       brain .49 to .28
   the same, only where the coordinates are the features (taken)       .774 / .761, .945, .539
   the same, up to 15 features being their own coordinates             .756 / .767, .945, .565,
                                                                       wisconsin .84 to .59,
                                                                       wine .91 to .45
   the same, with noise told by the code there                         .761 / .739, .945, .562
 + one cluster told by Gaussian laws from the start as well (taken)    the same; one Gaussian of 8
                                                                       features under noise is one
                                                                       in 60 of 60 seeds, before 57
 + clusters given up to noise when joining ends (taken)                .775 / .761, .945, .539;
                                                                       stretched Gaussians .976 to
                                                                       .992 and newthyroid .833 to
                                                                       .850 under noise, 15 seeds
   the same in every round of joining                                  one in 15 stretched windows
                                                                       lost, moons -.02
   the same among principal coordinates too (RCC)                      lung_discrete .66 to .36
 + every cluster its own choice of Gaussian or Student law             .774 / .757, .949, .528,
                                                                       twice the time
 + the valley looked for in one half of the points along a direction   four seeds: .770 to .772 /
   of the other half                                                   .767 to .763; digits .62 to
                                                                       .58
===================================================================  ========================

Streams of 5,000 rows, nearest centers: one lognormal cluster of 4 features .39 to .88, one
exponential of 8 .20 to .97 (the share of pairs kept together), three exponential ones of 3 features
.66 to .77, four lognormal ones of 4 .89 to .91; Gaussian and t clusters the same to three digits. A
stream of more features than 8 is answered as before; a skewed cluster there still gives 3 to 9
pieces.

What limits the six sets of the COMET table. The truth, refined, costs more than the answer:
dermatology 3,228 nats against 3,211 (the pair of classes that is one), wisconsin 1,693 against
1,640, iris 459 against 436; in lung_discrete, 80 points in 10 coordinates, partitions of .80, .63,
.44 and .35 differ by 1 to 20 nats and take turns with the noise.
A covariance shared by all clusters makes the answer longer (dermatology 3,242, wisconsin 2,229,
iris 469) and the truth shorter on iris alone (448). A second judge among near ties has little to
choose from: of all clusterings that the search meets within the price of one spherical cluster, the
best by its labels gains .005 on wisconsin, .003 on wine, 0 on dermatology, .045 on lung_discrete,
.05 on orlraws10p, .07 on prefixes of breast cancer and at most .03 on any other set.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.code import PLAIN_DIMENSIONS, Code, code_space
from streamclust.refit.comet import COMET, embed
from streamclust.refit.graph import distinct_points, neighbour_count, neighbour_graph
from streamclust.refit.hierarchy import choose, link_single, link_ward

Rows = tuple[np.ndarray, np.ndarray]
FILES = ["newthyroid", "wisconsin", "wine", "dermatology", "lung_discrete", "iris", "digits"]
FILES += ["wdbc", "r15", "pendigits", "shuttle"]
STREAMS = {"segments": "ImageSegments", "phishing": "Phishing"}
MADE = ["blobs10", "blobs50", "uneq", "stretch", "moons", "circles", "one", "unif"]
MOST = {"pendigits": 1500, "shuttle": 1500}


def from_file(folder: Path, name: str) -> Rows:
    table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1].astype(int)


def from_river(name: str) -> Rows:
    from river import datasets  # noqa: PLC0415  slow to import, and not needed for every set

    events = list(getattr(datasets, STREAMS[name])())
    classes = np.unique([str(answer) for _, answer in events], return_inverse=True)[1]
    return np.array([[float(v) for v in x.values()] for x, _ in events]), classes


def made(name: str, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    if name.startswith("blobs"):
        k, d = {"blobs10": (10, 8), "blobs50": (50, 32)}[name]
        y = rng.integers(0, k, 1000)
        return rng.uniform(-5, 5, (k, d))[y] + rng.normal(size=(1000, d)), y
    if name == "uneq":
        y = np.repeat([0, 1, 2], [400, 100, 30])
        centers = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 5.0]])
        spread = np.array([1.5, 0.6, 0.4])
        return centers[y] + spread[y, None] * rng.normal(size=(530, 2)), y
    if name == "stretch":
        y = rng.integers(0, 4, 600)
        X = rng.normal(size=(600, 2)) * [6.0, 0.6] + np.c_[np.zeros(600), 3.6 * y]
        turn = np.array([[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]])
        return X @ turn, y
    if name == "moons":
        return make_moons(600, noise=0.06, random_state=seed)
    if name == "circles":
        return make_circles(600, factor=0.4, noise=0.05, random_state=seed)
    X = rng.normal(size=(500, 5)) if name == "one" else rng.uniform(size=(500, 3))
    return X, np.zeros(500, int)


def noisy(rows: Rows, name: str, share: float, seed: int, scale: str) -> Rows:
    """A shuffled draw of the rows with uniform noise, scaled."""
    X, y = rows
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(X))[: MOST.get(name, 1000)]
    X, y = X[chosen], y[chosen]
    extra = int(share * len(X))
    X = np.concatenate((X, rng.uniform(X.min(axis=0), X.max(axis=0), (extra, X.shape[1]))))
    y = np.concatenate((y, np.full(extra, -1)))
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    unit = X.std(axis=0)
    if scale == "range":
        low, high = np.quantile(X, (0.05, 0.95), axis=0)
        reach = np.where(high > low, 2.0 * (high - low), np.inf)
        unit = np.minimum(X.max(axis=0), high + reach) - np.maximum(X.min(axis=0), low - reach)
        unit /= 4.0
    used = unit > 0.0
    return (X[:, used] - X[:, used].mean(axis=0)) / unit[used], y


def score(labels: np.ndarray, y: np.ndarray) -> float:
    clean = y >= 0
    if len(set(y[clean])) > 1:
        return adjusted_rand_score(y[clean], labels[clean])
    counts = np.unique(labels[clean], return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (clean.sum() * (clean.sum() - 1)))


def parts(X: np.ndarray, wanted: str) -> np.ndarray:
    """The pieces before joining, from all hierarchies or from one kind of them."""
    window = distinct_points(X, np.ones(len(X)))
    space, weights = code_space(window.points, window.weights), window.weights
    Z = space.points
    graph = neighbour_graph(window.points, neighbour_count(len(Z)))
    U = embed(Z, weights, graph, COMET().fusion_strength)
    single, fused, plain = (
        link_single(graph, U),
        link_ward(graph, U, weights),
        link_ward(graph, Z, weights),
    )
    kinds = {"all": [single, fused, plain], "single": [single], "ward": [plain]}
    code = Code(Z, weights, space.grain, plain=X.shape[1] <= PLAIN_DIMENSIONS)
    return choose(kinds[wanted], code).labels[window.member]


def told(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    k = len(set(y[y >= 0]))
    return KMeans(k, n_init=10, random_state=0).fit(X).labels_


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "KMeans, told k": told,
    "COMET": lambda X, y: COMET().fit(X).labels_,
    "pieces": lambda X, y: parts(X, "all"),
    "U alone": lambda X, y: parts(X, "single"),
    "Ward alone": lambda X, y: parts(X, "ward"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("STREAMCLUST_DATA"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scale", choices=("deviation", "range"), default="deviation")
    parser.add_argument("--sets", default=",".join([*FILES, *STREAMS, *MADE]))
    options = parser.parse_args()
    if options.folder is None or not Path(options.folder).is_dir():
        sys.exit("skipped: no data folder; give it as the argument or in STREAMCLUST_DATA")
    means = []
    print(f"{'set':14s}" + "".join(f"{name:>16s}" for name in METHODS))
    for name in options.sets.split(","):
        scores = []
        for seed in range(options.seeds):
            if name in STREAMS:
                rows = from_river(name)
            elif name in MADE:
                rows = made(name, seed)
            else:
                rows = from_file(Path(options.folder), name)
            for share in (0.0, 0.1):
                X, y = noisy(rows, name, share, seed, options.scale)
                scores.append([score(method(X, y), y) for method in METHODS.values()])
        means.append(np.mean(scores, axis=0))
        print(f"{name:14s}" + "".join(f"{value:16.3f}" for value in means[-1]), flush=True)
    print(f"{'mean':14s}" + "".join(f"{value:16.3f}" for value in np.mean(means, axis=0)))


if __name__ == "__main__":
    main()
