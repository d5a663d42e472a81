"""Pictures of a model and of its changes; each function returns a matplotlib ``Figure``."""

from streamclust_adapters.plot.course import noise
from streamclust_adapters.plot.intervals import intervals
from streamclust_adapters.plot.lineage import timeline
from streamclust_adapters.plot.outline import tree
from streamclust_adapters.plot.scatter import projection

__all__ = ["intervals", "noise", "projection", "timeline", "tree"]
