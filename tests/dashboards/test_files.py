# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The committed files, against the code that writes them and the models that read them."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboards import generation
from dashboards.sdk import JSONEncoder, dashboard
from tests.dashboards.documents import Document, documents

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_MINIFIED_BYTES = 250_000
"""A ConfigMap with its annotation of what was last applied has to stay under 262,144 bytes."""


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "dashboards", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_committed_files_are_current() -> None:
    checked = run("--check")
    assert checked.returncode == 0, checked.stderr


def test_every_committed_file_is_generated() -> None:
    committed = set(generation.FOLDER.iterdir())
    assert committed == set(generation.generated_files())


def test_a_stale_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = {path: text + " " for path, text in generation.generated_files().items()}
    monkeypatch.setattr(generation, "generated_files", lambda: stale)
    assert generation.stale_files() == list(stale)


def test_generation_gives_the_same_text_each_time() -> None:
    assert generation.generated_files() == generation.generated_files()


def test_what_the_dashboards_are_made_of() -> None:
    """They take names and units from the daemon, the words of jobs from where they stand, and nothing that runs."""
    allowed = {"dashboards", "grafana_foundation_sdk", "yaml", *sys.stdlib_module_names}
    for path in sorted((ROOT / "dashboards").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                declared = name in {
                    "veo_exporter.catalog",
                    "veo_exporter.units",
                    "veo_client.vocabulary",
                }
                assert declared or name.split(".")[0] in allowed, f"{path.name}: {name}"


@pytest.mark.parametrize("document", documents(), ids=lambda each: each.name)
class TestFile:
    def test_it_is_sorted_and_readable(self, document: Document) -> None:
        text = document.path.read_text()
        again = json.dumps(document.content, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
        assert text == again, f"{document.name}: not sorted with two spaces"

    def test_it_fits_into_a_config_map(self, document: Document) -> None:
        size = len(json.dumps(document.content, separators=(",", ":")).encode())
        assert size < MAX_MINIFIED_BYTES, f"{document.name}: {size} bytes"

    def test_the_models_know_every_key(self, document: Document) -> None:
        """What they drop, Grafana does not know either: a key that is misspelt or of another version."""
        model = dashboard.Dashboard.from_json(document.content)
        read = json.loads(json.dumps(model, cls=JSONEncoder))
        assert missing_keys(document.content, read, document.name) == []

    def test_its_uid_is_the_name_that_alerts_link_to(self, document: Document) -> None:
        assert document.content["uid"] == f"veo-{document.path.stem}"

    def test_it_speaks_of_no_machine(self, document: Document) -> None:
        text = document.path.read_text()
        assert "localhost" not in text
        assert str(ROOT) not in text


def missing_keys(before: Any, after: Any, place: str) -> list[str]:
    """Where something was before and is not after."""
    if isinstance(before, dict):
        lost = [f"{place}.{key}" for key in before if key not in after]
        inner = [
            found
            for key in before
            if key in after
            for found in missing_keys(before[key], after[key], f"{place}.{key}")
        ]
        return lost + inner
    if isinstance(before, list):
        assert len(before) == len(after), place
        pairs = enumerate(zip(before, after, strict=True))
        return [
            found for index, (b, a) in pairs for found in missing_keys(b, a, f"{place}[{index}]")
        ]
    assert before == after, f"{place}: {before!r} became {after!r}"
    return []
