"""Settings of every suite."""

from __future__ import annotations

from hypothesis import settings

# Compilation makes the first example slow, and a shared machine any of them: no deadline. Examples
# are the same at every run, so that a red build can be repeated.
settings.register_profile("streamclust", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("streamclust")
