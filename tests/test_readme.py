"""What the README shows is so: its Python runs, its options exist, its table is the model's."""

from __future__ import annotations

import re
from pathlib import Path

from streamclust.parameters import PARAMETERS
from streamclust_adapters.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text()
DOORS = (Path(__file__).parents[1] / "adapters" / "README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_its_python_runs_and_shows_what_it_says(capsys):
    for code in blocks(README, "python"):
        exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert "-1" in printed
    rules = [line for line in printed if re.match(r"\d+ \d+ .*(load|temp) ", line)]
    assert len(rules) == 2
    assert any(line.startswith("ClusterBorn(") for line in printed)
    assert printed[-2].startswith("Scores(events=1155, labelled=1155, ari=0.")
    assert printed[-1].startswith("Latency(mean=")


def test_its_parameters_are_the_models():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", README, flags=re.MULTILINE)
    assert rows == [(p.name, repr(p.default), p.accepted, p.help) for p in PARAMETERS.values()]


def test_its_options_are_the_commands():
    options = {
        option
        for command in main.commands.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "--quick"}  # the last one is of the simulations
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README + DOORS))
    assert shown <= options
