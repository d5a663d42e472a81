"""The ``streamclust`` command and its small subcommands.

Exit codes: 0 done or stopped on request, 1 failure, 2 usage. What a subcommand needs is imported
when it runs, so help is immediate.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from streamclust_adapters.kafka_command import kafka
from streamclust_adapters.launch import failures, load_model
from streamclust_adapters.plot_command import plot
from streamclust_adapters.run_command import run
from streamclust_adapters.serve_command import serve
from streamclust_adapters.top_command import top


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streamclust")
def main() -> None:
    """Online clustering whose every answer is a readable rule."""


main.add_command(kafka)
main.add_command(plot)
main.add_command(run)
main.add_command(serve)
main.add_command(top)


@main.command()
@click.argument("snapshot", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Everything, exactly, as JSON.")
def inspect(snapshot: Path, as_json: bool) -> None:
    """Print the clusters and rules in SNAPSHOT, a file or a folder of them."""
    with failures():
        from streamclust_adapters import report

        model = load_model(snapshot)
        if as_json:
            click.echo(report.model_json(model, model.source))
            return
        click.echo(f"{model.tick_count:,} events learned")
        report.print_clusters(model.clusters, sys.stdout)


@main.command()
def warmup() -> None:
    """Compile everything now, so that no later start has to: for container images."""
    click.echo("compiling; this takes up to a minute", err=True)
    from streamclust.warmup import warm_up

    folder = warm_up()
    if folder is None:
        raise click.ClickException(
            "no folder for compiled code can be written, so every process compiles anew; "
            "NUMBA_CACHE_DIR=DIR names one"
        )
    click.echo(f"compiled code is kept in {folder}", err=True)
