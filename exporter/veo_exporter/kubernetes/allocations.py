# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who has which devices, read from the kubelet's answer to List of the pod-resources API, version 1.

The numbers are those of the fields that are read; the API keeps them for ever.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from veo_exporter.kubernetes.wire import Span, blocks, text

LIST_METHOD: Final = "/v1.PodResourcesLister/List"

_ANSWER_POD: Final = 1
_POD_NAME: Final = 1
_POD_NAMESPACE: Final = 2
_POD_CONTAINER: Final = 3
_CONTAINER_NAME: Final = 1
_CONTAINER_DEVICES: Final = 2
_CONTAINER_DYNAMIC: Final = 5
_DEVICES_RESOURCE: Final = 1
_DEVICES_ID: Final = 2
_DYNAMIC_CLAIM_RESOURCE: Final = 4
_CLAIM_RESOURCE_DRIVER: Final = 2
_CLAIM_RESOURCE_DEVICE: Final = 4

DRA_DRIVER: Final = "gpu.nvidia.com"
"""NVIDIA's driver for Dynamic Resource Allocation; its devices are named and not numbered by plugins."""


@dataclass(frozen=True, slots=True, order=True)
class Allocation:
    """A device that a container holds. `device` is as its plugin or driver wrote it."""

    namespace: str
    pod: str
    container: str
    device: str


def read_allocations(answer: bytes, resource_prefixes: Sequence[str]) -> frozenset[Allocation]:
    """All devices of these resources, and of NVIDIA's dynamic driver. Raises KubeletFault."""
    # Most pods of most nodes have no GPU: they are told by a search for these bytes, and not read.
    marks = [prefix.encode() for prefix in (*resource_prefixes, DRA_DRIVER)]
    return frozenset(
        allocation
        for number, (start, end) in blocks(answer, (0, len(answer)))
        if number == _ANSWER_POD and any(answer.find(mark, start, end) >= 0 for mark in marks)
        for allocation in _of_pod(answer, (start, end), tuple(resource_prefixes))
    )


def _of_pod(data: bytes, span: Span, prefixes: tuple[str, ...]) -> Iterator[Allocation]:
    name = namespace = ""
    containers: list[Span] = []
    for number, inner in blocks(data, span):
        if number == _POD_NAME:
            name = text(data, inner)
        elif number == _POD_NAMESPACE:
            namespace = text(data, inner)
        elif number == _POD_CONTAINER:
            containers.append(inner)
    for inner in containers:
        container, devices = _of_container(data, inner, prefixes)
        for device in devices:
            yield Allocation(namespace, name, container, device)


def _of_container(data: bytes, span: Span, prefixes: tuple[str, ...]) -> tuple[str, list[str]]:
    name = ""
    devices: list[str] = []
    for number, inner in blocks(data, span):
        if number == _CONTAINER_NAME:
            name = text(data, inner)
        elif number == _CONTAINER_DEVICES:
            devices += _of_plugin(data, inner, prefixes)
        elif number == _CONTAINER_DYNAMIC:
            devices += _of_claim(data, inner)
    return name, devices


def _of_plugin(data: bytes, span: Span, prefixes: tuple[str, ...]) -> list[str]:
    resource = ""
    devices = []
    for number, inner in blocks(data, span):
        if number == _DEVICES_RESOURCE:
            resource = text(data, inner)
        elif number == _DEVICES_ID:
            devices.append(text(data, inner))
    return devices if resource.startswith(prefixes) else []


def _of_claim(data: bytes, span: Span) -> Iterator[str]:
    for number, inner in blocks(data, span):
        if number != _DYNAMIC_CLAIM_RESOURCE:
            continue
        fields = {
            field: text(data, place)
            for field, place in blocks(data, inner)
            if field in (_CLAIM_RESOURCE_DRIVER, _CLAIM_RESOURCE_DEVICE)
        }
        if fields.get(_CLAIM_RESOURCE_DRIVER) == DRA_DRIVER:
            yield fields.get(_CLAIM_RESOURCE_DEVICE, "")
