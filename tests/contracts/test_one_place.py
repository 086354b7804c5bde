# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in one place, and nowhere else."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import veo_client
import veo_exporter
from veo_exporter.catalog import CATALOG
from veo_exporter.config import environment_name, flag_name, setting_places

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "exporter/veo_exporter"
DECLARED = {name for spec in CATALOG for name in spec.series_names} | {
    spec.name for spec in CATALOG
}
METRIC = re.compile(r"\bveo_(?:gpus?|node|jobs?|queue|video|exporter)_[a-z0-9_]*[a-z0-9]\b")
# Names of the package and its files, which have the shape of a metric's name.
NOT_METRICS = {"veo_exporter_"}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def test_metric_names_are_written_in_the_catalogue_alone() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "catalog"):
            continue
        tree = ast.parse(path.read_text())
        docstrings = {
            node.body[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            # A sentence for people may name a metric; a name by itself is a second declaration.
            if not isinstance(node, ast.Constant) or node in docstrings:
                continue
            if node.value in DECLARED:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}")
    assert found == []


@pytest.mark.parametrize("path", tracked("*.md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_metric_that_a_page_names_exists(path: Path) -> None:
    named = set(METRIC.findall(path.read_text()))
    unknown = {
        name for name in named if name not in DECLARED and not (ROOT / "exporter" / name).exists()
    }
    assert unknown == set()


def test_every_metric_and_setting_is_documented() -> None:
    metrics = (ROOT / "docs/metrics.md").read_text()
    assert [spec.name for spec in CATALOG if f"`{spec.name}`" not in metrics] == []
    settings = (ROOT / "docs/configuration.md").read_text()
    names = [
        name for place in setting_places() for name in (environment_name(place), flag_name(place))
    ]
    assert [name for name in names if f"`{name}`" not in settings] == []


def test_generated_files_are_current() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tools.generate", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"veo-client=={veo_client.__version__}" in project["dependencies"]
    assert veo_client.__version__ == veo_exporter.__version__
    newest = re.search(
        r"^## (?:\[?)([0-9][^\s\]]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest is not None
    assert newest[1] == veo_exporter.__version__


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    reasons = (ROOT / "docs/dependencies.md").read_text()
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = [re.split(r"[<>=~!\[ ]", line)[0] for line in wanted]
    assert [name for name in names if f"`{name}`" not in reasons] == []


@pytest.mark.parametrize("lock", tracked("*.lock"), ids=lambda path: str(path.relative_to(ROOT)))
def test_locks_carry_hashes_and_no_addresses(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    pins = re.findall(r"^[a-zA-Z0-9._-]+==", text, re.MULTILINE)
    assert len(pins) > 5
    assert text.count("--hash=sha256:") >= len(pins)


@pytest.mark.parametrize(
    "path",
    tracked("*.py", "*.sh", "*.c", "*.h", "*.inc", "Makefile", ".ci/run", "*.toml", "*.yaml"),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_source_names_its_licence(path: Path) -> None:
    head = path.read_text()[:400]
    assert "SPDX-License-Identifier: Apache-2.0" in head
    assert "SPDX-FileCopyrightText: The veo-exporter authors" in head
