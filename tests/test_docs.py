"""What the documentation shows is so: its Python runs, its options exist, no page is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamclust import errors
from streamclust.events import KINDS
from streamclust_adapters.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    page.relative_to(DOCS).as_posix(): page.read_text()
    for page in sorted(DOCS.rglob("*.md"))
    if "_build" not in page.parts
}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def sequence(text: str) -> list[tuple[str, str]]:
    """Every block in order, with its language."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(PAGES[page], "python")])
def test_its_python_runs_and_prints_what_stands_below(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}  # the blocks of a page follow one another
    for language, code in sequence(PAGES[page]):
        if language == "python":
            capsys.readouterr()
            exec(compile(code, page, "exec"), names)
        elif language == "text":
            assert capsys.readouterr().out == code


def test_its_options_are_the_commands():
    options = {
        option
        for command in main.commands.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    elsewhere = {"--quick", "--data", "--group"}  # of the simulations, and of pip
    for page, text in PAGES.items():
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= options | elsewhere, page


def test_every_page_is_in_a_list():
    for folder in (DOCS, DOCS / "reference"):
        index = (folder / "index.md").read_text()
        listed = " ".join(blocks(index, r"\{toctree\}")).split()
        others = {page.stem for page in folder.glob("*.md")} - {"index"}
        assert others <= set(listed)


def test_every_change_is_in_the_reference():
    listed = PAGES["reference/events.md"]
    assert all(re.search(rf"\b{name}\b", listed) for name in KINDS)


def test_the_failures_that_are_named_exist():
    named = re.findall(r"^\| `(\w+)`", PAGES["trouble.md"].partition("## Refused")[2], re.MULTILINE)
    assert named
    assert all(hasattr(errors, name) for name in named)
