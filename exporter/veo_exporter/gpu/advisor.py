# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Advice for each GPU: kept from snapshot to snapshot, and said as metrics and as JSON."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from veo_exporter.catalog import advice as catalog
from veo_exporter.catalog.gpu import MEMORY_FREE, MEMORY_USED
from veo_exporter.exposition import Family
from veo_exporter.gpu.advice import Advice, Ladder, MemoryReading, advance
from veo_exporter.gpu.readings import Cadence, GpuView, Snapshot

SCHEMA: Final = "veo.gpu.advice/1"


class Advisor:
    """Takes each snapshot; `latest` is replaced as a whole and may be read from any thread."""

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder
        self.latest: Mapping[str, Advice] = {}
        """By UUID. What is not read any more is forgotten, and begins anew when it is."""

    def take(self, snapshot: Snapshot) -> None:
        """Take a snapshot in; one without a newer reading changes nothing."""
        ladder, known = self.ladder, self.latest
        found: dict[str, Advice] = {}
        for gpu in snapshot.gpus:
            reading = memory_reading(snapshot, gpu)
            if reading is None or not gpu.uuid:
                continue
            before = known.get(gpu.uuid)
            if before is not None and before.reading == reading:
                found[gpu.uuid] = before
            else:
                found[gpu.uuid] = advance(before, reading, ladder)
        self.latest = found


def memory_reading(snapshot: Snapshot, gpu: GpuView) -> MemoryReading | None:
    """How full its memory is, unless that was too old already when the snapshot was taken."""
    for reading in gpu.readings:
        used, free = reading.values.get(MEMORY_USED), reading.values.get(MEMORY_FREE)
        if used is None or free is None:
            continue
        if snapshot.withdrawn(reading, snapshot.taken_monotonic_seconds) or not used + free:
            return None
        return MemoryReading(
            int(used),
            int(free),
            reading.finished_unix_seconds,
            reading.finished_monotonic_seconds,
        )
    return None


Standing = tuple[GpuView, Advice | None]
"""A GPU, and the advice that holds for it now."""


def standing_advice(
    snapshot: Snapshot, advices: Mapping[str, Advice], now_monotonic_seconds: float
) -> list[Standing]:
    """Every GPU; without advice where the reading behind it is too old to be shown."""
    until = now_monotonic_seconds - snapshot.stale_after_seconds[Cadence.FAST]

    def holding(gpu: GpuView) -> Advice | None:
        advice = advices.get(gpu.uuid)
        fresh = advice is not None and advice.reading.at_monotonic_seconds >= until
        return advice if fresh else None

    return [(gpu, holding(gpu)) for gpu in snapshot.gpus]


class AdviceSource:
    """The advice's side of the page."""

    def __init__(
        self, latest: Callable[[], Snapshot], advices: Callable[[], Mapping[str, Advice]]
    ) -> None:
        self._latest = latest
        self._advices = advices

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        return tuple(self._rows(now_monotonic_seconds))

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        rates = Family(catalog.RECOMMENDED_FRAME_RATE)
        pressures = Family(catalog.MEMORY_PRESSURE)
        for identity, rate, pressure in self._rows(now_monotonic_seconds):
            if rate is not None:
                rates.add(identity, rate)
            pressures.add(identity, pressure)
        return rates, pressures

    def _rows(
        self, now_monotonic_seconds: float
    ) -> Iterable[tuple[tuple[str, str], int | None, bool]]:
        snapshot = self._latest()
        for gpu, advice in standing_advice(snapshot, self._advices(), now_monotonic_seconds):
            if advice is not None:
                index = "" if gpu.index is None else str(gpu.index)
                yield (index, gpu.uuid), advice.frame_rate_hertz, advice.pressure


def advice_document(
    snapshot: Snapshot,
    advices: Mapping[str, Advice],
    ladder: Ladder,
    now_monotonic_seconds: float,
    *,
    simulated: bool,
) -> dict[str, Any]:
    """What GET /api/v1/advice answers: every GPU that is known, docs/advice.md says how."""
    return {
        "schema": SCHEMA,
        "simulated": simulated,
        "thresholds": {
            "medium_from": float(ladder.medium_from),
            "low_above": float(ladder.low_above),
            "hysteresis": float(ladder.hysteresis),
            "sweeps": ladder.sweeps,
            "sweep_seconds": ladder.sweep_seconds,
            "pressure_free_bytes": ladder.pressure_free_bytes,
        },
        "gpus": [
            _row(gpu, advice, ladder)
            for gpu, advice in standing_advice(snapshot, advices, now_monotonic_seconds)
        ],
    }


def _row(gpu: GpuView, advice: Advice | None, ladder: Ladder) -> dict[str, Any]:
    reading = advice.reading if advice else None
    return {
        "gpu": gpu.index,
        "uuid": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id,
        "state": gpu.state.value,
        "recommended_frame_rate_hertz": advice.frame_rate_hertz if advice else None,
        "since_timestamp_seconds": advice.since_unix_seconds if advice else None,
        "why": why(advice, ladder)
        if advice
        else f"its memory is not read: it is {gpu.state.value}",
        "memory_used_ratio": float(reading.used_share) if reading else None,
        "memory_used_bytes": reading.used_bytes if reading else None,
        "memory_free_bytes": reading.free_bytes if reading else None,
        "memory_pressure": advice.pressure if advice else None,
        "memory_pressure_since_timestamp_seconds": (
            advice.pressure_since_unix_seconds if advice else None
        ),
    }


def why(advice: Advice, ladder: Ladder) -> str:
    """A sentence for people; programs read the numbers beside it."""
    used = f"{_percent(advice.reading.used_share)} of memory is used"
    if advice.next_hertz is not None:
        sweep = f"sweep {advice.streak.sweeps} of {ladder.sweeps}"
        return f"{used}: {advice.next_hertz} Hz if it stays so ({sweep})"
    medium_from, low_above = ladder.medium_from, ladder.low_above
    share = advice.reading.used_share
    match advice.frame_rate_hertz:
        case 120:
            return f"{used}: below {_percent(medium_from)}"
        case 60 if share < medium_from:
            return f"{used}: 120 Hz again below {_percent(medium_from - ladder.hysteresis)}"
        case 60:
            return f"{used}: from {_percent(medium_from)} to {_percent(low_above)}"
        case _ if share <= low_above:
            return f"{used}: 60 Hz again at {_percent(low_above - ladder.hysteresis)} or less"
    return f"{used}: above {_percent(low_above)}"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.4g} %"
