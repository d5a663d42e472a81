"""How the documentation is built: Sphinx, numpydoc, MyST and the pydata theme.

The tables of parameters and of changes are made here from the library's own, so that no page can
differ from what the code accepts. Nothing is fetched over a network.
"""

from __future__ import annotations

from dataclasses import fields
from importlib.metadata import version as version_of

from streamclust.events import KINDS, Change
from streamclust.parameters import PARAMETERS

project = "streamclust"
version = release = version_of(project)
copyright = "the streamclust authors"

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser"]
exclude_patterns = ["_build"]
default_role = "literal"  # what stands between single backticks in docstrings is code
nitpicky = False

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
autodoc_preserve_defaults = True
autodoc_mock_imports = ["pyspark", "pyarrow"]  # they are large, and nothing of them is shown
numpydoc_show_class_members = False

myst_enable_extensions = ["substitution"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {version}"
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parameter_table() -> str:
    """Return every parameter: name, default, what is accepted, what a user sees."""
    rows = [[f"`{p.name}`", f"`{p.default!r}`", p.accepted, p.help] for p in PARAMETERS.values()]
    return table(["name", "default", "accepted", "what you see"], rows)


def change_table() -> str:
    """Return every kind of change: its name, what happened, its own fields."""
    common = {one.name for one in fields(Change)}
    rows = []
    for kind in KINDS.values():
        told = (kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        own = ", ".join(f"`{one.name}`" for one in fields(kind) if one.name not in common)
        rows.append([f"`{kind.__name__}`", told, own])
    return table(["change", "what happened", "its fields"], rows)


myst_substitutions = {"parameters": parameter_table(), "changes": change_table()}
