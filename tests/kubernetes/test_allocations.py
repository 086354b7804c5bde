# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The kubelet's answer, written by protobuf and read by us."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.kubelet import Held, Response, answer_of
from veo_exporter.kubernetes import Allocation, Cause, KubeletFault
from veo_exporter.kubernetes.allocations import read_allocations

NVIDIA = ("nvidia.com/",)


def read(*containers: Held, prefixes: tuple[str, ...] = NVIDIA) -> list[Allocation]:
    return sorted(read_allocations(answer_of(*containers), prefixes))


def test_nobody_holds_anything() -> None:
    assert read_allocations(b"", NVIDIA) == frozenset()
    assert read(Held("web"), Held("db")) == []


def test_who_holds_what() -> None:
    assert read(
        Held("render-0", {"nvidia.com/gpu": ["GPU-1", "GPU-2"]}),
        Held("render-0", {"nvidia.com/mig-1g.10gb": ["MIG-7"]}, container="upscale"),
        Held("web", {"rdma/hca": ["mlx5_0"]}),
        Held("render-0", {"nvidia.com/gpu": ["GPU-3"]}, namespace="staging"),
    ) == [
        Allocation("staging", "render-0", "main", "GPU-3"),
        Allocation("video", "render-0", "main", "GPU-1"),
        Allocation("video", "render-0", "main", "GPU-2"),
        Allocation("video", "render-0", "upscale", "MIG-7"),
    ]


def test_resources_of_others_are_left_alone() -> None:
    held = Held("a", {"amd.com/gpu": ["0"], "nvidia.com/gpu": ["GPU-1"], "x.nvidia.com/y": ["2"]})
    assert read(held) == [Allocation("video", "a", "main", "GPU-1")]
    assert read(held, prefixes=("amd.com/",)) == [Allocation("video", "a", "main", "0")]
    assert read(held, prefixes=("nvidia.com/gpu.",)) == []
    assert read(held, prefixes=()) == []


def test_a_pod_that_is_only_called_so_holds_nothing() -> None:
    assert read(Held("nvidia.com/gpu", {"cpu/x": ["nvidia.com/gpu"]})) == []


def test_claims_of_the_dynamic_driver() -> None:
    held = Held("a", claims={"gpu.nvidia.com": ["gpu-0", "gpu-3"], "nic.example.com": ["nic-0"]})
    assert read(held) == [
        Allocation("video", "a", "main", "gpu-0"),
        Allocation("video", "a", "main", "gpu-3"),
    ]


def test_ten_thousand_pods() -> None:
    holders = [Held(f"render-{n}", {"nvidia.com/gpu": [f"GPU-{n}"]}) for n in range(8)]
    idle = [Held(f"web-{n}", {"cpu/x": ["1"]}) for n in range(10_000)]
    assert [held.device for held in read(*idle[:5000], *holders, *idle[5000:])] == [
        f"GPU-{n}" for n in range(8)
    ]


words = st.text(max_size=8)
containers = st.builds(
    Held,
    pod=words,
    namespace=words,
    container=words,
    devices=st.dictionaries(
        st.sampled_from(["nvidia.com/gpu", "nvidia.com/", "amd.com/gpu", ""]),
        st.lists(words, max_size=3),
        max_size=3,
    ),
    claims=st.dictionaries(
        st.sampled_from(["gpu.nvidia.com", "other"]), st.lists(words, max_size=3), max_size=2
    ),
)


def expected(answer: bytes) -> set[Allocation]:
    """The same, as protobuf reads it."""
    response: Any = Response.FromString(answer)
    found = set()
    for pod in response.pod_resources:
        for container in pod.containers:
            devices = [
                device
                for row in container.devices
                if row.resource_name.startswith("nvidia.com/")
                for device in row.device_ids
            ] + [
                row.device_name
                for claim in container.dynamic_resources
                for row in claim.claim_resources
                if row.driver_name == "gpu.nvidia.com"
            ]
            found |= {Allocation(pod.namespace, pod.name, container.name, name) for name in devices}
    return found


@given(st.lists(containers, max_size=4))
def test_reads_what_protobuf_reads(held: list[Held]) -> None:
    answer = answer_of(*held)
    assert read_allocations(answer, NVIDIA) == expected(answer)


@given(st.lists(containers, min_size=1, max_size=3), st.binary(max_size=40), st.data())
def test_garbage_is_a_fault_and_nothing_else(
    held: list[Held], garbage: bytes, data: st.DataObject
) -> None:
    answer = answer_of(*held)
    place = data.draw(st.integers(0, len(answer)))
    for broken in (garbage, answer[:place], answer[:place] + garbage + answer[place:]):
        causes = []
        try:
            read_allocations(broken, NVIDIA)
        except KubeletFault as fault:
            causes.append(fault.cause)
        assert causes in ([], [Cause.GARBLED])


HELD = answer_of(Held("pod", {"nvidia.com/gpu": ["GPU-1"]}))


@pytest.mark.parametrize(
    ("garbage", "says"),
    [
        (b"\x0a", "ends within a number"),
        (b"\x0a\x05abc", "ends within a field"),
        (b"\x09\x00\x00", "ends within a field"),
        (b"\x0d\x00\x00", "ends within a field"),
        (b"\x02\x00", "without a number"),
        (b"\x0b", "wire type 3"),
        (b"\x0f", "wire type 7"),
        (b"\x08" + b"\xff" * 11, "more than 64 bits"),
        (HELD.replace(b"GPU-1", b"GPU-\xff"), "not UTF-8"),
        (b"<html>no kubelet at all</html>", "wire type"),
    ],
)
def test_what_garbage_is_said_to_be(garbage: bytes, says: str) -> None:
    with pytest.raises(KubeletFault, match=says):
        read_allocations(garbage, NVIDIA)


def test_fields_of_later_versions_are_stepped_over() -> None:
    # Number 99: a number, eight bytes, four bytes, a text.
    news = b"\x98\x06\x96\x01" + b"\x99\x06" + bytes(8) + b"\x9d\x06" + bytes(4) + b"\x9a\x06\x02hi"
    assert read_allocations(news + HELD + news, NVIDIA) == {
        Allocation("video", "pod", "main", "GPU-1")
    }


def test_an_answer_cut_anywhere_is_not_read_as_another() -> None:
    """Each cut gives a fault or fewer pods, and never a pod that is not there."""
    answer = answer_of(*(Held(f"pod-{n}", {"nvidia.com/gpu": [f"GPU-{n}"]}) for n in range(3)))
    whole = read_allocations(answer, NVIDIA)
    counts = []
    for place in range(len(answer) + 1):
        try:
            found = read_allocations(answer[:place], NVIDIA)
        except KubeletFault:
            continue
        assert found <= whole
        counts.append(len(found))
    assert counts == [0, 1, 2, 3]
    assert all(after >= before for before, after in pairwise(counts))
