"""What is shipped: a wheel with the two packages and nothing else, and a source archive."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with both archives, built by the declared backend from this environment."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_wheel_holds_the_two_packages_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as members:
        names = members.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "streamclust",
        "streamclust_adapters",
    }
    assert {"streamclust/py.typed", "streamclust_adapters/py.typed"} <= set(names)
    shipped = {name for name in names if name.endswith(".py")}
    assert shipped == {
        path.relative_to(base).as_posix()
        for base, package in [(ROOT, "streamclust"), (ROOT / "adapters", "streamclust_adapters")]
        for path in (base / package).rglob("*.py")
    }
    pages = {"index.html", "login.html", "page.css", "page.js", "draw.js", "icon.svg"}
    assert {f"streamclust_adapters/web/static/{name}" for name in pages} <= set(names)


def test_the_wheel_brings_the_command_and_its_licence(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (n for n in archive.namelist() if n.endswith("/entry_points.txt"))
        told = archive.read(entry_points).decode()
        assert "streamclust = streamclust_adapters.cli:main" in told
        assert any(name.endswith("/licenses/LICENSE") for name in archive.namelist())


def test_the_source_archive_holds_what_a_build_and_the_tests_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    needed = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "streamclust/__init__.py"]
    needed += ["adapters/streamclust_adapters/cli.py", "adapters/README.md"]
    needed += ["tests/test_packaging.py", "simulations/demo_stream.py", "docs/index.md"]
    assert set(needed) <= names
    assert not any("/." in name or "__pycache__" in name or "_build" in name for name in names)
