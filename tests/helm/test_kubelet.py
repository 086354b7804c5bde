# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The kubelet's socket: its folder, its user, and how to do without."""

from pathlib import Path

from tests.helm.chart import CHART, configuration, container, mounts, only, pod, refusal, render
from veo_exporter.config import Kubernetes, load_settings

OFF = {"kubelet": {"podResources": False}}


def test_the_folder_is_mounted_where_the_exporter_looks() -> None:
    volume, mount = mounts(render())["pod-resources"]
    # The folder and not the socket: a restarted kubelet makes a new socket.
    assert volume["hostPath"] == {
        "path": "/var/lib/kubelet/pod-resources",
        "type": "DirectoryOrCreate",
    }
    assert Path(mount["mountPath"]) == Kubernetes().kubelet_socket.parent
    assert mount["readOnly"] is True


def test_another_folder_and_another_place(tmp_path: Path) -> None:
    manifests = render(files=(CHART / "ci/kubelet-values.yaml",))
    volume, mount = mounts(manifests)["pod-resources"]
    assert volume["hostPath"]["path"] == "/var/snap/microk8s/common/var/lib/kubelet/pod-resources"
    file = tmp_path / "veo-exporter.yaml"
    file.write_text(configuration(manifests)["data"]["veo-exporter.yaml"])
    section = load_settings(file, {}, {}).kubernetes
    assert mount["mountPath"] == str(section.kubelet_socket.parent) == "/host/pod-resources"
    assert section.enabled == "on"


def test_a_bare_on_is_taken(tmp_path: Path) -> None:
    # Helm reads YAML 1.1, in which on and off are truth values.
    for value, read in ((True, "on"), (False, "off")):
        manifests = render({"config": {"kubernetes": {"enabled": value}}})
        file = tmp_path / f"{read}.yaml"
        file.write_text(configuration(manifests)["data"]["veo-exporter.yaml"])
        assert load_settings(file, {}, {}).kubernetes.enabled == read


def test_it_runs_as_root_for_the_socket_alone() -> None:
    context = container(render())["securityContext"]
    assert context["runAsUser"] == 0
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["allowPrivilegeEscalation"] is False
    without = render(OFF)
    assert "runAsUser" not in container(without)["securityContext"]
    assert pod(without)["securityContext"]["runAsUser"] == 65534
    assert pod(without)["securityContext"]["runAsNonRoot"] is True
    assert "pod-resources" not in mounts(without)


def test_a_user_that_is_named_is_kept() -> None:
    context = container(render({"securityContext": {"runAsUser": 1000}}))["securityContext"]
    assert context["runAsUser"] == 1000
    assert context["readOnlyRootFilesystem"] is True


def test_a_privileged_container_runs_as_root_for_it_too() -> None:
    context = container(render({"deviceAccess": "hostPath"}))["securityContext"]
    assert (context["privileged"], context["runAsUser"]) == (True, 0)


def test_values_of_an_older_release_change_nobodys_user() -> None:
    manifests = render({"kubelet": None})
    assert "runAsUser" not in container(manifests)["securityContext"]
    assert "pod-resources" not in mounts(manifests)


def test_what_is_no_folder_is_refused() -> None:
    assert "/kubelet/folder" in refusal({"kubelet": {"folder": "var/lib/kubelet"}})
    assert "/kubelet/podResources" in refusal({"kubelet": {"podResources": "yes"}})


def test_the_operators_own_pod_takes_no_rows_name() -> None:
    monitor = only(render({"podMonitor": {"enabled": True}}), "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
