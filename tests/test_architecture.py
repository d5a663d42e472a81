"""Who may import whom, read from the sources: nothing climbs, and each library has one home."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "streamclust"
DOORS = ROOT / "adapters" / "streamclust_adapters"

# A module imports only from strictly lower floors; halves are landings between two floors.
FLOORS: dict[float, str] = {
    0: "errors results",
    0.5: "kernels.sources",
    1: "parameters kernels.compiled",
    1.1: "kernels.mixing",
    1.25: "kernels.groups kernels.laws kernels.metric kernels.reservoir kernels.routing",
    1.4: "kernels.assignment",
    1.5: "kernels.*",
    1.75: "desk beside nearness robust",
    2: "nodes roster windows features scaling drift events snapshot mergeable refit.leaves",
    2.25: "measures",
    2.5: "batch boxes corrections export growth packing regions",
    2.75: "structure representatives texts frozen",
    2.8: "rebuilds routed",
    2.9: "invariants",
    3: "census tracker tree refit.base refit.graph refit.code",
    3.5: "survey refit.adam refit.background refit.fusion refit.hierarchy refit.valley",
    3.75: "glance renewal refit.partition",
    4: "refit.* identity summary router rules figures",
    4.5: "answers exchange refit.three_way",
    4.75: "refit.offered",
    4.9: "refitting",
    5: "engine",
    6: "clusterer evaluate",
    7: "warmup",
}
DOOR_FLOORS: dict[float, str] = {
    1: "ports decoding encoder options snapshots broker logs settings deadline claim inputs",
    1.25: "json_lines csv_lines records following line_sink launch changes lives",
    1.5: "codec answering messages order input_options live",
    2: "stdio testing runner lanes plot.canvas live_options attached",
    2.5: "kafka.client plot.*",
    2.75: "kafka.reading kafka.transactions spark.columns",
    2.9: "report",
    3: "kafka.connection resuming feeds web.hub web.sections",
    3.25: "spark.partitions",
    3.5: "worker scoring top web.app spark.labelling",
    3.75: "spark.query",
    4: "metrics web.server",
    4.5: "kafka_command plot_command run_command serve_command top_command",
    5: "cli",
    6: "__main__",
}
# Who may import a library; every other module of both packages may not.
HOMES = {
    "numba": {"streamclust.kernels"},
    "river": {"streamclust.clusterer", "streamclust.drift"},
    "river.metrics": {"streamclust.evaluate"},
    "river.drift": {"streamclust.clusterer", "streamclust.drift"},
    "safetensors": {"streamclust.snapshot"},
    "click": {
        "streamclust_adapters.cli",
        "streamclust_adapters.input_options",
        "streamclust_adapters.kafka_command",
        "streamclust_adapters.launch",
        "streamclust_adapters.live_options",
        "streamclust_adapters.options",
        "streamclust_adapters.plot_command",
        "streamclust_adapters.run_command",
        "streamclust_adapters.serve_command",
        "streamclust_adapters.settings",
        "streamclust_adapters.top_command",
    },
    "matplotlib": {"streamclust_adapters.plot"},
    "rich": {"streamclust_adapters.report", "streamclust_adapters.top"},
    "msgspec": {"streamclust_adapters"},
    "confluent_kafka": {"streamclust_adapters.kafka"},
    "pyspark": {"streamclust_adapters.spark"},
    "pyarrow": {"streamclust_adapters.spark"},
    "prometheus_client": {"streamclust_adapters.metrics"},
    "starlette": {"streamclust_adapters.web.app"},
    "uvicorn": {"streamclust_adapters.web.server"},
}
NOT_FACES = [path for path in sorted(CORE.rglob("*.py")) if path.name != "__init__.py"]
DOOR_FILES = [path for path in sorted(DOORS.rglob("*.py")) if path.name != "__init__.py"]


def name_of(path: Path) -> str:
    base = DOORS.parent if path.is_relative_to(DOORS) else ROOT
    return ".".join(path.relative_to(base).with_suffix("").parts)


def is_module(name: str) -> bool:
    path = Path(*name.split("."))
    return any((base / path).with_suffix(".py").is_file() for base in (ROOT, DOORS.parent))


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a module stands"
            module = node.module or ""
            for alias in node.names:
                full = f"{module}.{alias.name}"
                yield full if is_module(full) else module


def floor_of(name: str, table: dict[float, str]) -> float:
    """The floor of a module, by its own name before its folder's."""
    for wanted in (name, name.rpartition(".")[0] + ".*"):
        for floor, names in table.items():
            if wanted in names.split():
                return floor
    pytest.fail(f"{name} stands on no floor; give it one in this test's table")


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("path", NOT_FACES, ids=name_of)
def test_the_library_imports_only_from_lower_floors(path):
    name = name_of(path).removeprefix("streamclust.")
    for imported in imports_of(path):
        assert not within(imported, "streamclust_adapters"), f"{name} knows a door"
        assert imported != "streamclust", f"{name} imports the face"
        if within(imported, "streamclust"):
            below = imported.removeprefix("streamclust.")
            assert floor_of(below, FLOORS) < floor_of(name, FLOORS), f"{name} imports {below}"


@pytest.mark.parametrize("path", DOOR_FILES, ids=name_of)
def test_doors_import_ports_and_not_each_other(path):
    name = name_of(path).removeprefix("streamclust_adapters.")
    for imported in imports_of(path):
        if within(imported, "streamclust_adapters"):
            below = imported.removeprefix("streamclust_adapters.")
            assert floor_of(below, DOOR_FLOORS) < floor_of(name, DOOR_FLOORS)


@pytest.mark.parametrize("path", [CORE / "__init__.py", DOORS / "__init__.py"], ids=name_of)
def test_a_face_imports_only_the_public_face_of_the_model(path):
    ours = {name for name in imports_of(path) if within(name, "streamclust")}
    assert ours <= {"streamclust.clusterer", "streamclust.evaluate", "streamclust.windows"}


@pytest.mark.parametrize("path", NOT_FACES + DOOR_FILES, ids=name_of)
def test_each_library_has_its_home(path):
    name = name_of(path)
    for imported in imports_of(path):
        home = max((known for known in HOMES if within(imported, known)), key=len, default=None)
        if home is not None:
            assert any(within(name, allowed) for allowed in HOMES[home]), f"{name}: {imported}"


def test_only_declared_dependencies_are_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [one for group in project["optional-dependencies"].values() for one in group]
    declared = {
        requirement.split(">")[0].split("[")[0].replace("-", "_")
        for requirement in project["dependencies"] + optional
    }
    own = {"streamclust", "streamclust_adapters"}
    for path in NOT_FACES + DOOR_FILES:
        foreign = {name.split(".")[0] for name in imports_of(path)} - sys.stdlib_module_names - own
        assert foreign <= declared, path


def test_the_folder_of_the_doors_is_no_package():
    assert not (DOORS.parent / "__init__.py").exists()
