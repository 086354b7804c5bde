# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Device ids to GPUs: the plugins of NVIDIA and of GKE and the dynamic driver each name them their way."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from veo_exporter.kubernetes.allocations import Allocation

UNKNOWN: Final = "unknown"
"""Stands for the UUID of a MIG device of which only the GPU is known."""

# A GPU that is shared by time or by MPS is offered many times: GPU-…::3 (NVIDIA), nvidia0/vgpu3 (GKE).
_SHARE: Final = re.compile(r"(?:::[0-9]+|/vgpu[0-9]+)$")
_GPU: Final = re.compile(r"GPU-[0-9A-Za-z-]+")
# MIG-<uuid> since driver 470; before that MIG-<UUID of the GPU>/<GPU instance>/<compute instance>.
_MIG: Final = re.compile(r"MIG-(?:(?P<gpu>GPU-[0-9A-Za-z-]+)/[0-9]+/[0-9]+|[0-9A-Za-z-]+)")
_NODE: Final = re.compile(r"nvidia(?P<minor>[0-9]{1,5})(?:/gi(?P<instance>[0-9]{1,5}))?")
_DYNAMIC: Final = re.compile(r"gpu-(?P<minor>[0-9]{1,5})(?P<part>-mig-.+)?")


@dataclass(frozen=True, slots=True)
class MigIdentity:
    """A MIG device as NVML knows it."""

    uuid: str
    gpu_instance: int


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """A GPU as NVML knows it. `minor` is the number of its device node, /dev/nvidia3."""

    index: int | None
    uuid: str
    minor: int | None
    mig: tuple[MigIdentity, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A container that holds a GPU, or a MIG device of it; `mig_uuid` is empty for a whole GPU."""

    gpu: str
    uuid: str
    mig_uuid: str
    pod: str
    namespace: str
    container: str

    @property
    def labels(self) -> tuple[str, ...]:
        """In the catalogue's order."""
        return self.gpu, self.uuid, self.mig_uuid, self.pod, self.namespace, self.container


@dataclass(frozen=True, slots=True)
class Resolution:
    """Rows in order, and the device ids for which there is no GPU."""

    rows: tuple[Row, ...]
    unresolved: tuple[str, ...]


def resolve(allocations: Iterable[Allocation], gpus: Sequence[GpuIdentity]) -> Resolution:
    """A row for each container and GPU, however many shares of the GPU the container holds."""
    place = _Places(gpus)
    rows: set[Row] = set()
    unresolved: set[str] = set()
    for held in allocations:
        found = place.of(held.device)
        if found is None:
            unresolved.add(held.device)
        else:
            rows.add(Row(*found, held.pod, held.namespace, held.container))
    return Resolution(tuple(sorted(rows)), tuple(sorted(unresolved)))


class _Places:
    """Index, UUID and MIG UUID of a device id. Empty where they are not known."""

    def __init__(self, gpus: Sequence[GpuIdentity]) -> None:
        self._by_uuid = {gpu.uuid: gpu for gpu in gpus if gpu.uuid}
        self._by_minor = {gpu.minor: gpu for gpu in gpus if gpu.uuid and gpu.minor is not None}
        self._by_mig = {mig.uuid: gpu for gpu in gpus if gpu.uuid for mig in gpu.mig}

    def of(self, device: str) -> tuple[str, str, str] | None:
        device = _SHARE.sub("", device)
        if _GPU.fullmatch(device):
            # It names itself: NVML may have lost it, or never have seen it.
            return self._named(device, "")
        if mig := _MIG.fullmatch(device):
            known = self._by_mig.get(device)
            return self._named(known.uuid if known else mig["gpu"] or "", device)
        if node := _NODE.fullmatch(device):
            return self._numbered(int(node["minor"]), node["instance"])
        if dynamic := _DYNAMIC.fullmatch(device):
            found = self._numbered(int(dynamic["minor"]), None)
            return found and (*found[:2], UNKNOWN if dynamic["part"] else "")
        return None

    def _named(self, uuid: str, mig_uuid: str) -> tuple[str, str, str]:
        known = self._by_uuid.get(uuid)
        index = "" if known is None or known.index is None else str(known.index)
        return index, uuid, mig_uuid

    def _numbered(self, minor: int, instance: str | None) -> tuple[str, str, str] | None:
        gpu = self._by_minor.get(minor)
        if gpu is None:
            return None
        if instance is None:
            return self._named(gpu.uuid, "")
        parts = [mig.uuid for mig in gpu.mig if mig.gpu_instance == int(instance)]
        # More than one: the GPU instance is cut into compute instances, which the id does not tell apart.
        return self._named(gpu.uuid, parts[0] if len(parts) == 1 else UNKNOWN)


def bounded(rows: Sequence[Row], shown: Collection[Row], most: int) -> tuple[Row, ...]:
    """At most so many rows; those shown before stay, so that none comes and goes by its name."""
    if len(rows) <= most:
        return tuple(rows)
    kept = sorted(rows, key=lambda row: row not in shown)[:most]
    return tuple(sorted(kept))
