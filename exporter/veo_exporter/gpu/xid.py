# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Xids counted once, though NVML and the kernel log may both tell of one. Pure: time is an argument."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final

from veo_exporter.catalog.xid import OTHER

PAIR_SECONDS: Final = 5.0
"""What the other road told of the same GPU and number so shortly ago is the same Xid. NVML's events
come at once, the kernel log is looked at each second; the rest is for a machine in distress."""
MAX_WAITING: Final = 1000
"""Of each road, number and GPU. In a storm beyond it some count twice."""
MAX_UNKNOWN: Final = 8
"""Numbers beyond the table that get rows of their own."""
MAX_GPUS: Final = 256
"""Addresses that get rows of their own; nobody but the kernel and NVML names them."""


class Road(Enum):
    """Who told of an Xid."""

    NVML = "nvml"
    KERNEL = "kernel_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An Xid as one road tells of it. The address is empty if NVML did not say whose it was."""

    road: Road
    pci_bus_id: str
    code: int
    at_unix_seconds: float
    at_monotonic_seconds: float


@dataclass(slots=True)
class Tally:
    """How often a GPU had an Xid, and when last."""

    count: int = 0
    last_unix_seconds: float = 0.0


class XidTallies:
    """Xids by GPU and label."""

    def __init__(self, known: Collection[int]) -> None:
        self.by_gpu: dict[str, dict[str, Tally]] = {}
        self.newest: dict[str, int] = {}
        """The last number of each GPU, by its address."""
        self.revision = 0
        self._known = frozenset(known)
        self._unknown: set[int] = set()
        self._waiting: dict[tuple[str, int, Road], deque[float]] = {}

    def take(self, sighting: Sighting) -> bool:
        """Count an Xid; False if the other road told of this same one before."""
        if self._told_before(sighting):
            return False
        address = sighting.pci_bus_id
        if address not in self.by_gpu and len(self.by_gpu) >= MAX_GPUS:
            address = ""
        labels = self.by_gpu.setdefault(address, {})
        tally = labels.setdefault(self.label_of(sighting.code), Tally())
        tally.count += 1
        self.newest[address] = sighting.code
        tally.last_unix_seconds = max(tally.last_unix_seconds, sighting.at_unix_seconds)
        self.revision += 1
        return True

    def label_of(self, code: int) -> str:
        """The number, or other for numbers beyond the bound."""
        if code not in self._known and code not in self._unknown:
            if len(self._unknown) >= MAX_UNKNOWN:
                return OTHER
            self._unknown.add(code)
        return str(code)

    def _told_before(self, sighting: Sighting) -> bool:
        now = sighting.at_monotonic_seconds
        self._forget_before(now - PAIR_SECONDS)
        address, code = sighting.pci_bus_id, sighting.code
        other = Road.KERNEL if sighting.road is Road.NVML else Road.NVML
        told = self._waiting.get((address, code, other))
        if told:
            # Each telling of one road takes away one of the other: two real ones stay two.
            told.popleft()
            return True
        key = (address, code, sighting.road)
        self._waiting.setdefault(key, deque(maxlen=MAX_WAITING)).append(now)
        return False

    def _forget_before(self, oldest_monotonic_seconds: float) -> None:
        for key, told in list(self._waiting.items()):
            while told and told[0] < oldest_monotonic_seconds:
                told.popleft()
            if not told:
                del self._waiting[key]
