# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every way of setting the chart gives manifests that Kubernetes and the exporter take."""

from pathlib import Path

import pytest
import yaml

from tests.helm.chart import (
    CHART,
    FEATURES,
    NAMESPACE,
    RELEASE,
    configuration,
    container,
    environment,
    mounts,
    pod,
    render,
    run,
)
from tests.helm.kinds import validate
from veo_exporter.cli import main

CASES = [pytest.param((), id="default")] + [
    pytest.param((file,), id=file.name.removesuffix("-values.yaml")) for file in FEATURES
]
every_feature = pytest.mark.parametrize("files", CASES)


@every_feature
def test_lints_without_a_warning(files: tuple[Path, ...]) -> None:
    values = [argument for file in files for argument in ("--values", file)]
    linted = run("helm", "lint", "--strict", CHART, *values)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@every_feature
def test_manifests_are_valid(files: tuple[Path, ...]) -> None:
    manifests = render(files=files)
    for manifest in manifests:
        validate(manifest)
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests]
    assert len(names) == len(set(names))
    assert {manifest["metadata"]["namespace"] for manifest in manifests} == {NAMESPACE}
    for manifest in manifests:
        assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE


@every_feature
def test_the_exporter_takes_its_configuration_and_arguments(
    files: tuple[Path, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifests = render(files=files)
    ((name, text),) = configuration(manifests)["data"].items()
    volume, mount = mounts(manifests)["config"]
    assert volume["configMap"]["name"] == configuration(manifests)["metadata"]["name"]
    serve, file_flag, *more = container(manifests)["args"]
    assert serve == "serve"
    assert file_flag == f"--config.file={mount['mountPath']}/{name}"
    (tmp_path / name).write_text(text)
    for variable, value in environment(manifests).items():
        monkeypatch.setenv(variable, value)

    assert main(["check", "config", f"--config.file={tmp_path / name}", *more]) == 0

    holds = yaml.safe_load(capsys.readouterr().out)
    (port,) = container(manifests)["ports"]
    assert holds["web"]["listen_address"].endswith(f":{port['containerPort']}")
    if "sysfs" in mounts(manifests):
        assert mounts(manifests)["sysfs"][1]["mountPath"] == holds["gpu"]["sysfs_root"]
    else:
        assert holds["gpu"]["sysfs_root"] == "/sys"


@every_feature
def test_no_probe_asks_about_gpus(files: tuple[Path, ...]) -> None:
    exporter = container(render(files=files))
    for probe in ("livenessProbe", "readinessProbe"):
        assert exporter[probe]["httpGet"] == {"path": "/-/healthy", "port": "metrics"}
    assert "startupProbe" not in exporter


@every_feature
def test_nothing_secret_and_nothing_granted(files: tuple[Path, ...]) -> None:
    manifests = render(files=files)
    kinds = {manifest["kind"] for manifest in manifests}
    assert kinds <= {
        *("ServiceAccount", "ConfigMap", "Service", "DaemonSet", "PodMonitor", "PrometheusRule")
    }
    assert pod(manifests)["automountServiceAccountToken"] is False
    for manifest in manifests:
        if manifest["kind"] == "ServiceAccount":
            assert manifest["automountServiceAccountToken"] is False
    requested = {**container(manifests)["resources"]["requests"]}
    assert requested.keys() == {"cpu", "memory"}, "a GPU asked for is a GPU taken from a job"


def test_what_is_on_by_default() -> None:
    kinds = sorted(manifest["kind"] for manifest in render())
    assert kinds == ["ConfigMap", "DaemonSet", "Service", "ServiceAccount"]
