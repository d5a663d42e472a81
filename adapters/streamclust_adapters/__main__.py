"""``python -m streamclust_adapters``: the ``streamclust`` command without its script."""

from streamclust_adapters.cli import main

main(prog_name="streamclust")
