# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the mapping, and what doctor finds."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.kubernetes.kubelet import FakeKubelet, Held
from veo_exporter.app.pods import plan_of
from veo_exporter.cli.findings import Finding, Grade
from veo_exporter.cli.kubelet_finding import kubelet as look
from veo_exporter.config import Kubernetes, KubernetesEnabled, Settings, load_settings
from veo_exporter.errors import BadConfig


def settings(**values: Any) -> Settings:
    return Settings(kubernetes=Kubernetes.model_validate(values))


def test_defaults() -> None:
    section = Settings().kubernetes
    assert section.enabled is KubernetesEnabled.AUTO
    assert str(section.kubelet_socket) == "/var/lib/kubelet/pod-resources/kubelet.sock"
    assert (section.interval, section.deadline, section.keep) == (10, 5, 3600)
    assert section.resource_prefixes == ("nvidia.com/",)
    assert section.max_rows == 512
    assert plan_of(section).only_if_there


@pytest.mark.parametrize(
    ("written", "read"),
    [("auto", "auto"), ("on", "on"), ("off", "off"), ("true", "on"), ("'on'", "on")],
)
def test_on_and_off_may_be_written_as_yaml_reads_them(
    tmp_path: Path, written: str, read: str
) -> None:
    file = tmp_path / "veo.yaml"
    file.write_text(f"kubernetes:\n  enabled: {written}\n")
    assert load_settings(file, {}, {}).kubernetes.enabled == read
    by_flag = load_settings(None, {}, {("kubernetes", "enabled"): read})
    assert by_flag.kubernetes.enabled == read


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("enabled", "yes please", "'auto', 'on' or 'off'"),
        ("kubelet_socket", "kubelet.sock", "not an absolute path"),
        ("interval", "100ms", "at least 1s"),
        ("interval", "10", "not a duration"),
        ("deadline", "2m", "at most 1m"),
        ("resource_prefixes", "nvidia.com/", "write it as JSON"),
        ("resource_prefixes", '[""]', "no beginning of a resource's name"),
        ("resource_prefixes", '["nvidia"]', "no beginning of a resource's name"),
        ("max_rows", "0", "at least 1"),
    ],
)
def test_what_is_refused(name: str, value: str, says: str) -> None:
    with pytest.raises(BadConfig, match=f"VEO_KUBERNETES__{name.upper()}.*{says}"):
        load_settings(None, {f"VEO_KUBERNETES__{name.upper()}": value}, {})


def found(**values: Any) -> Finding:
    (finding,) = look(settings(**values))
    return finding


def test_doctor_when_it_is_off(tmp_path: Path) -> None:
    assert found(enabled="off").grade is Grade.GOOD


def test_doctor_without_a_kubelet(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    quiet = found(kubelet_socket=path)
    assert (quiet.grade, quiet.remedy) == (Grade.GOOD, "")
    assert str(path) in quiet.found
    asked_for = found(kubelet_socket=path, enabled="on")
    assert asked_for.grade is Grade.WARNING
    assert "pod-resources" in asked_for.remedy


def test_doctor_with_a_kubelet(tmp_path: Path) -> None:
    held = (
        Held("a", {"nvidia.com/gpu": ["GPU-1", "GPU-2"]}),
        Held("a", {"nvidia.com/gpu": ["GPU-3"]}, container="sidecar"),
        Held("a", {"nvidia.com/gpu": ["GPU-4"]}, namespace="staging"),
        Held("web"),
    )
    with FakeKubelet(tmp_path / "kubelet.sock").holds(*held) as kubelet:
        well = found(kubelet_socket=kubelet.path)
        kubelet.status = grpc.StatusCode.UNIMPLEMENTED
        ill = found(kubelet_socket=kubelet.path)
    assert well == Finding(Grade.GOOD, "kubelet", f"{kubelet.path}: 2 pods hold 4 devices")
    assert ill.grade is Grade.WARNING
    assert "UNIMPLEMENTED" in ill.found
    assert "1.20" in ill.remedy
