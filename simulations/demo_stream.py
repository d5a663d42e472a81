"""Write a real stream as JSON lines: the image segments that ship inside river.

2,310 regions of outdoor photographs, 18 measured features each, and what they show (category),
which the demo ignores. River's file is in the order of its source, which is shuffled.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from river.datasets import ImageSegments


def main(path: Path) -> None:
    """Write the stream to `path`."""
    with path.open("w") as out:
        for features, category in ImageSegments():
            out.write(json.dumps({**features, "category": category}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
