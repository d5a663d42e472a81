"""Writing a routing table for people and other programs: nested dicts, text, Mermaid, DOT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamclust.nodes import RoutingTable

Names = Sequence[Any] | None


def nested(table: RoutingTable, names: Names = None) -> dict[str, Any]:
    """The table as nested dicts.

    An inner node is ``{"feature", "threshold", "left", "right"}``, left meaning
    ``x[feature] <= threshold``; a leaf is ``{"center": id}``. Without centers the dict is empty.

    Parameters
    ----------
    table : RoutingTable
    names : sequence, optional
        Names of the features; without it their positions.
    """

    def told(node: int) -> dict[str, Any]:
        if node < 0:
            return {"center": int(table.owner[~node])}
        return {
            "feature": _name(int(table.feature[node]), names),
            "threshold": float(table.threshold[node]),
            "left": told(int(table.child[node, 0])),
            "right": told(int(table.child[node, 1])),
        }

    return told(_root(table)) if table.owner.size else {}


def text(table: RoutingTable, names: Names = None) -> str:
    """The table as indented lines, one condition or answer each."""
    lines: list[str] = []

    def write(node: int, indent: str) -> None:
        if node < 0:
            lines.append(f"{indent}-> {int(table.owner[~node])}")
            return
        for side, op in enumerate(("<=", ">")):
            lines.append(f"{indent}{_condition(table, node, op, names)}")
            write(int(table.child[node, side]), indent + "    ")

    if table.owner.size:
        write(_root(table), "")
    return "\n".join(lines)


def mermaid(table: RoutingTable, names: Names = None) -> str:
    """The table as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    _walk(
        table,
        names,
        lambda node, label: lines.append(f'    {node}{{"{_escaped(label, "#quot;")}"}}'),
        lambda leaf, id: lines.append(f'    {leaf}(["{id}"])'),
        lambda a, b, answer: lines.append(f"    {a} -- {answer} --> {b}"),
    )
    return "\n".join(lines)


def dot(table: RoutingTable, names: Names = None) -> str:
    """The table as a Graphviz digraph."""
    lines = ["digraph tree {", "    node [shape=box];"]
    _walk(
        table,
        names,
        lambda node, label: lines.append(
            f'    {node} [label="{_escaped(label, chr(92) + chr(34))}"];'
        ),
        lambda leaf, id: lines.append(f'    {leaf} [label="{id}", shape=ellipse];'),
        lambda a, b, answer: lines.append(f'    {a} -> {b} [label="{answer}"];'),
    )
    return "\n".join([*lines, "}"])


def _walk(
    table: RoutingTable,
    names: Names,
    inner: Callable[[str, str], None],
    leaf: Callable[[str, int], None],
    edge: Callable[[str, str, str], None],
) -> None:
    for node in range(table.feature.size):
        inner(f"n{node}", _condition(table, node, "<=", names))
    for at, id in enumerate(table.owner.tolist()):
        leaf(f"l{at}", id)
    for node in range(table.feature.size):
        for below, answer in zip(table.child[node].tolist(), ("yes", "no"), strict=True):
            edge(f"n{node}", f"n{below}" if below >= 0 else f"l{~below}", answer)


def _root(table: RoutingTable) -> int:
    return 0 if table.feature.size else -1


def _name(feature: int, names: Names) -> Any:
    return feature if names is None else names[feature]


def _condition(table: RoutingTable, node: int, op: str, names: Names) -> str:
    name = _name(int(table.feature[node]), names)
    return f"{name if names is not None else f'x{name}'} {op} {float(table.threshold[node])!r}"


def _escaped(label: str, quote: str) -> str:
    return label.replace('"', quote)
