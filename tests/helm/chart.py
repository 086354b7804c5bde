# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The chart as Helm itself renders it; no cluster is asked."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "helm/veo-exporter"
FEATURES = sorted((CHART / "ci").glob("*-values.yaml"))
RELEASE = "veo"
NAMESPACE = "monitoring"

EVERYTHING: dict[str, Any] = {
    "podMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboards": {"enabled": True},
}

Manifest = dict[str, Any]


def tool(name: str) -> str:
    """The path of a program that the project builds, or that PATH has."""
    ours = ROOT / ".tools/bin" / name
    path = str(ours) if ours.exists() else shutil.which(name)
    if path is None:
        pytest.fail(f"{name} is neither in .tools/bin nor on PATH: run `make tools`", pytrace=False)
    return path


def run(
    name: str, *arguments: object, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool(name), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def template(
    values: Manifest | None = None, *, chart: Path = CHART, files: tuple[Path, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """`helm template` with files of values, and with values over them."""
    written = yaml.safe_dump(values or {})
    # Copies of the chart are changed between two renderings; the chart itself is not.
    return (_template_once if chart == CHART else _template)(written, chart, files)


def _template(
    values: str, chart: Path, files: tuple[Path, ...]
) -> subprocess.CompletedProcess[str]:
    arguments = [argument for file in files for argument in ("--values", file)]
    return run(
        "helm",
        *("template", RELEASE, chart, "--namespace", NAMESPACE, *arguments, "--values", "-"),
        stdin=values,
    )


_template_once = cache(_template)


def render(
    values: Manifest | None = None, *, chart: Path = CHART, files: tuple[Path, ...] = ()
) -> list[Manifest]:
    """The manifests of a release."""
    rendered = template(values, chart=chart, files=files)
    assert rendered.returncode == 0, rendered.stderr
    return [document for document in yaml.safe_load_all(rendered.stdout) if document]


def refusal(values: Manifest, *, chart: Path = CHART) -> str:
    """What Helm says to values that it refuses."""
    rendered = template(values, chart=chart)
    assert rendered.returncode != 0, "Helm has taken these values"
    return rendered.stderr


def only(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def pod(manifests: list[Manifest]) -> Manifest:
    spec = only(manifests, "DaemonSet")["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def container(manifests: list[Manifest]) -> Manifest:
    (only_one,) = pod(manifests)["containers"]
    assert isinstance(only_one, dict)
    return only_one


def environment(manifests: list[Manifest]) -> dict[str, str]:
    """The container's variables that are written out."""
    return {row["name"]: row["value"] for row in container(manifests)["env"] if "value" in row}


def mounts(manifests: list[Manifest]) -> dict[str, tuple[Manifest, Manifest]]:
    """Volumes by name, each with how the container mounts it."""
    mounted = {mount["name"]: mount for mount in container(manifests)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(manifests)["volumes"]}
    assert mounted.keys() == volumes.keys()
    return {name: (volumes[name], mounted[name]) for name in volumes}


def copy_chart(folder: Path) -> Path:
    """The chart in a folder of its own, as a package would have it."""
    return Path(shutil.copytree(CHART, folder / "veo-exporter"))


def configuration(manifests: list[Manifest]) -> Manifest:
    (found,) = (
        manifest
        for manifest in manifests
        if manifest["kind"] == "ConfigMap" and "veo-exporter.yaml" in manifest["data"]
    )
    return found


def pod_labels(manifests: list[Manifest]) -> dict[str, str]:
    labels = only(manifests, "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    assert isinstance(labels, dict)
    return labels
