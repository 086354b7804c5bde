# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How fast the NVLinks are: DCGM calls it a counter, and gives a rate. Pure: readings carry their time."""

from dataclasses import dataclass

from veo_exporter.catalog.gpu_links import NVLINK_RECEIVE, NVLINK_TRANSMIT
from veo_exporter.gpu.readings import Reading, Snapshot


@dataclass(frozen=True, slots=True)
class _Passed:
    """What has passed until a reading; the rate is that between it and the reading before."""

    at_monotonic_seconds: float
    total_bytes: float
    bytes_per_second: float | None


class LinkRates:
    """Bytes a second over all NVLinks of a GPU, by UUID, from one full sweep to the next."""

    def __init__(self) -> None:
        self._passed: dict[str, _Passed] = {}

    def take(self, snapshot: Snapshot) -> None:
        """Take a snapshot in; one without a newer reading changes nothing."""
        self._passed = {
            gpu.uuid: passed
            for gpu in snapshot.gpus
            for reading in gpu.readings
            if (passed := self._advance(gpu.uuid, reading)) is not None
        }

    def bytes_per_second(self, uuid: str) -> float | None:
        """None until there are two readings to compare."""
        passed = self._passed.get(uuid)
        return passed.bytes_per_second if passed else None

    def _advance(self, uuid: str, reading: Reading) -> _Passed | None:
        if NVLINK_TRANSMIT not in reading.values or NVLINK_RECEIVE not in reading.values:
            return None
        at = reading.finished_monotonic_seconds
        total = reading.values[NVLINK_TRANSMIT] + reading.values[NVLINK_RECEIVE]
        before = self._passed.get(uuid)
        if before is None:
            return _Passed(at, total, None)
        seconds = at - before.at_monotonic_seconds
        if seconds <= 0:
            return before
        # Counters start over with the driver: nothing can be told of the time between.
        rate = (total - before.total_bytes) / seconds if total >= before.total_bytes else None
        return _Passed(at, total, rate)
