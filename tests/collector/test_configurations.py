# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every shipped configuration, checked by the Collector itself."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.collecting import CONFIGURATIONS
from tools.programs import tool

FILES = sorted(CONFIGURATIONS.glob("*.yaml"))
KUBERNETES = {"K8S_POD_NAME": "veo-0", "K8S_NAMESPACE": "video", "VEO_GATEWAY": "gateway:4317"}


def validate(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("otelcol"), "validate", f"--config={path}"],
        env={**os.environ, **KUBERNETES},
        capture_output=True,
        text=True,
        timeout=60,
    )


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_there_are_configurations() -> None:
    assert {path.name for path in FILES} == {"agent.yaml", "demo.yaml"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_collector_accepts_it(path: Path) -> None:
    answer = validate(path)
    assert answer.returncode == 0, answer.stderr
    # An old name of a component is an alias, and warns.
    assert "deprecat" not in answer.stderr + answer.stdout


def test_the_collector_would_refuse_a_mistake(tmp_path: Path) -> None:
    broken = content(CONFIGURATIONS / "demo.yaml")
    broken["service"]["pipelines"]["traces"]["exporters"].append("prometheus")
    path = tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump(broken))
    answer = validate(path)
    assert answer.returncode != 0
    assert "telemetry type is not supported" in answer.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_memory_is_limited_before_anything_else(path: Path) -> None:
    pipelines = content(path)["service"]["pipelines"]
    for pipeline in pipelines.values():
        if "otlp" in pipeline["receivers"]:
            assert pipeline["processors"][0] == "memory_limiter"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_stands_there_unused(path: Path) -> None:
    whole = content(path)
    service = whole["service"]
    used = set(service["extensions"])
    for pipeline in service["pipelines"].values():
        used |= {name for part in pipeline.values() for name in part}
    parts = ("extensions", "receivers", "processors", "connectors", "exporters")
    assert {name for part in parts for name in whole.get(part, {})} == used


def test_the_readme_says_which_were_run() -> None:
    readme = (CONFIGURATIONS / "README.md").read_text()
    assert all(f"`{path.name}`" in readme for path in FILES)
