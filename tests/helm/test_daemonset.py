# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the pods may do, where they go and how they get at the GPUs."""

from pathlib import Path
from typing import Any

import pytest

from tests.helm.chart import (
    CHART,
    configuration,
    container,
    environment,
    mounts,
    only,
    pod,
    render,
)
from veo_exporter.config import load_settings


def test_the_default_has_no_privilege() -> None:
    manifests = render()
    assert container(manifests)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        # For the kubelet's socket alone: see test_kubelet.
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
    }
    context = pod(manifests)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 65534
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod(manifests).keys()
    assert pod(manifests)["enableServiceLinks"] is False
    assert "hostPort" not in container(manifests)["ports"][0]
    paths = set()
    for volume, mount in mounts(manifests).values():
        assert mount["readOnly"] is True
        paths.add(volume.get("hostPath", {"path": None})["path"])
    assert paths == {None, "/sys", "/var/lib/kubelet/pod-resources"}


def test_memory_is_bounded_and_cpu_is_not() -> None:
    resources = container(render())["resources"]
    assert resources["limits"] == {"memory": resources["requests"]["memory"]}


def test_goes_where_any_gpu_label_is() -> None:
    spec = pod(render())
    affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = affinity["nodeSelectorTerms"]
    assert all(len(term["matchExpressions"]) == 1 for term in terms), "a second one would be an AND"
    keys = {term["matchExpressions"][0]["key"] for term in terms}
    assert {"nvidia.com/gpu.present", "cloud.google.com/gke-accelerator"} <= keys
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def test_own_node_affinity_takes_the_place_of_the_labels() -> None:
    own = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
    spec = pod(render({"affinity": {"nodeAffinity": own}}))
    assert spec["affinity"] == {"nodeAffinity": own}


def test_without_labels_it_goes_everywhere() -> None:
    assert "affinity" not in pod(render({"gpuNodes": []}))


@pytest.mark.parametrize(
    ("values", "runtime_class", "variables"),
    [
        ({}, "nvidia", {"NVIDIA_VISIBLE_DEVICES": "all"}),
        (
            {"deviceAccess": "cdi", "runtimeClassName": "nvidia-cdi"},
            "nvidia-cdi",
            {"NVIDIA_VISIBLE_DEVICES": "nvidia.com/gpu=all"},
        ),
        (
            {"deviceAccess": "volumeMounts", "runtimeClassName": ""},
            None,
            {"NVIDIA_VISIBLE_DEVICES": "/var/run/nvidia-container-devices"},
        ),
        ({"deviceAccess": "hostPath"}, None, {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}),
    ],
)
def test_device_access(
    values: dict[str, Any], runtime_class: str | None, variables: dict[str, str]
) -> None:
    manifests = render(values)
    assert pod(manifests).get("runtimeClassName") == runtime_class
    by_runtime = values.get("deviceAccess") != "hostPath"
    assert environment(manifests) == {
        **variables,
        **({"NVIDIA_DRIVER_CAPABILITIES": "utility"} if by_runtime else {}),
    }
    privileged = container(manifests)["securityContext"].get("privileged", False)
    assert privileged is not by_runtime, "only device nodes that no runtime gave need it"


def test_privileged_does_not_contradict_itself() -> None:
    context = container(render({"deviceAccess": "hostPath"}))["securityContext"]
    assert "allowPrivilegeEscalation" not in context, "the API server refuses the two together"
    assert context["readOnlyRootFilesystem"] is True


def test_volume_mounts_name_all_gpus() -> None:
    volume, mount = mounts(render({"deviceAccess": "volumeMounts"}))["all-gpus"]
    assert volume["hostPath"] == {"path": "/dev/null", "type": "CharDevice"}
    assert mount["mountPath"] == "/var/run/nvidia-container-devices/all"


def test_a_restricted_namespace_would_take_it() -> None:
    manifests = render(files=(CHART / "ci/restricted-values.yaml",))
    assert {key for volume, _ in mounts(manifests).values() for key in volume} == {
        "name",
        "configMap",
    }


def test_a_changed_configuration_replaces_the_pods() -> None:
    def checksum(values: dict[str, Any]) -> str:
        meta = only(render(values), "DaemonSet")["spec"]["template"]["metadata"]
        return str(meta["annotations"]["checksum/config"])

    assert checksum({}) == checksum({"podAnnotations": {"checksum/config": "mine"}})
    assert checksum({}) != checksum({"config": {"gpu": {"window": "1m"}}})


def test_configuration_is_taken_as_it_is(tmp_path: Path) -> None:
    config = {"gpu": {"expected_count": 1000, "window": "1m30s"}, "web": {"listen_address": ":1"}}
    file = tmp_path / "veo-exporter.yaml"
    file.write_text(configuration(render({"config": config}))["data"]["veo-exporter.yaml"])
    settings = load_settings(file, {}, {})
    assert settings.gpu.expected_count == 1000
    assert settings.gpu.window == 90
    assert settings.web.listen_address == ":1"


def test_a_digest_wins_over_the_tag() -> None:
    digest = "sha256:" + "0" * 64
    image = {"repository": "a/b", "tag": "1.2.3", "digest": digest}
    assert container(render({"image": image}))["image"] == f"a/b@{digest}"
    assert container(render({"image": {"tag": "1.2.3"}}))["image"] == "veo-exporter:1.2.3"
