# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A snapshot of GPUs as metric families."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final

from veo_exporter.catalog import CATALOG, MetricSpec, Series
from veo_exporter.catalog import exporter as exporter_catalog
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.exposition import Family, Labels
from veo_exporter.gpu.codes import code_name
from veo_exporter.gpu.readings import (
    Cadence,
    GpuView,
    OverdueCall,
    Raw,
    Reading,
    Signal,
    Snapshot,
    State,
    Summed,
    WhyNot,
)
from veo_exporter.gpu.sample_families import add_samples
from veo_exporter.gpu.vgpu_license import VgpuLicense

STATES: Final = tuple(State)


def _index(gpu: GpuView) -> str:
    return "" if gpu.index is None else str(gpu.index)


class GpuSource:
    """The GPUs' side of the page: reads the newest snapshot, and leaves out what is too old."""

    def __init__(
        self,
        latest: Callable[[], Snapshot],
        also_missing: Callable[[], Sequence[tuple[str, MetricSpec, WhyNot]]] = tuple,
    ) -> None:
        self._latest = latest
        # By UUID, what is absent that no probe asks for.
        self._also_missing = also_missing
        # The rows of each reading that was shown last. Of the three groups one is new at each page; the
        # same rows once more are also what the writer knows again.
        self._shown: Mapping[tuple[tuple[str, str], Cadence], tuple[Reading, Rows]] = {}
        self._withdrawals: tuple[Snapshot | None, list[float]] = (None, [])

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        snapshot = self._latest()
        return (
            snapshot.sequence,
            # How many readings were withdrawn since; looked up, for every scrape comes here.
            bisect_left(self._withdrawals_of(snapshot), now_monotonic_seconds),
            snapshot.outdated(now_monotonic_seconds),
            *self._also_missing(),
        )

    def _withdrawals_of(self, snapshot: Snapshot) -> list[float]:
        known, times = self._withdrawals
        if known is not snapshot:
            times = sorted(
                snapshot.withdrawn_after(reading)
                for gpu in snapshot.gpus
                for reading in gpu.readings
            )
            self._withdrawals = snapshot, times
        return times

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        snapshot = self._latest()
        families: dict[MetricSpec, Family] = {}

        def family(spec: MetricSpec) -> Family:
            found = families.get(spec)
            if found is None:
                found = families[spec] = Family(spec)
            return found

        outdated = snapshot.outdated(now_monotonic_seconds)
        _add_node(family, snapshot, outdated=outdated)
        also_missing = self._also_missing()
        kept: dict[tuple[tuple[str, str], Cadence], tuple[Reading, Rows]] = {}
        for gpu in snapshot.gpus:
            _add_presence(family, gpu, State.UNKNOWN if outdated else gpu.state)
            identity = (_index(gpu), gpu.uuid)
            for reading in gpu.readings:
                if snapshot.withdrawn(reading, now_monotonic_seconds):
                    continue
                key = (identity, reading.cadence)
                shown = self._shown.get(key)
                if shown is None or shown[0] is not reading:
                    shown = reading, _rows_of(reading, identity)
                kept[key] = shown
                for spec, rows in shown[1].items():
                    family(spec).rows.extend(rows)
                _add_sums(family, identity, gpu.summed(), reading.values)
            for uuid, spec, why in also_missing:
                if uuid == gpu.uuid:
                    family(catalog.CAPABILITY_MISSING).add(
                        (_index(gpu), uuid, spec.name, why.value), 1
                    )
        self._shown = kept
        return [families[spec] for spec in CATALOG if spec in families]


FamilyOf = Callable[[MetricSpec], Family]


def _add_node(family: FamilyOf, snapshot: Snapshot, *, outdated: bool) -> None:
    if snapshot.expected is not None:
        family(catalog.GPUS_EXPECTED).add((), snapshot.expected)
    if snapshot.driver.visible is not None and not outdated:
        family(catalog.GPUS_VISIBLE).add((), snapshot.driver.visible)
    usable = 0 if outdated else sum(gpu.state is State.OK for gpu in snapshot.gpus)
    family(catalog.GPUS_USABLE).add((), usable)
    if snapshot.driver.texts:
        names = catalog.DRIVER_INFO.label_names
        family(catalog.DRIVER_INFO).add(tuple(snapshot.driver.texts[name] for name in names), 1)
    for cadence, at in snapshot.last_success_unix_seconds.items():
        if at:
            family(exporter_catalog.LAST_SUCCESS).add((cadence.value,), at)
    _add_calls(family, ("", ""), snapshot.driver.errors, snapshot.driver.overdue_call)
    _add_calls(family, ("", ""), snapshot.driver.elsewhere.errors, None)
    for call in snapshot.driver.elsewhere.overdue:
        family(catalog.CALL_IN_FLIGHT_SECONDS).add(("", "", call.function), call.seconds)


def _add_presence(family: FamilyOf, gpu: GpuView, holds: State) -> None:
    presence = (_index(gpu), gpu.uuid, gpu.pci_bus_id)
    for state in STATES:
        family(catalog.GPU_STATE).add((*presence, state.value), holds is state)
    if gpu.code is not None:
        family(catalog.GPU_NVML_RETURN_CODE).add(presence, gpu.code)
    if gpu.texts:
        # A GPU that is gone is still the board it was, and on-call wants its name.
        texts = (gpu.texts.get(name, "") for name in catalog.GPU_INFO.label_names[3:])
        family(catalog.GPU_INFO).add((*presence, *texts), 1)
    identity = presence[:2]
    what = tuple(gpu.texts.get(name, "") for name in board.BOARD_INFO.label_names[2:])
    if any(what):
        family(board.BOARD_INFO).add((*identity, *what), 1)
    if gpu.uuid:
        family(catalog.IMPLAUSIBLE_READINGS).add(identity, gpu.implausible_readings)
    for name, why in gpu.missing.items():
        family(catalog.CAPABILITY_MISSING).add((*identity, name, why.value), 1)
    _add_calls(family, identity, gpu.errors, gpu.overdue_call)


def _add_calls(
    family: FamilyOf,
    identity: tuple[str, str],
    errors: Mapping[tuple[str, int], int],
    overdue: OverdueCall | None,
) -> None:
    for (function, code), count in errors.items():
        family(catalog.NVML_ERRORS).add((*identity, function, code_name(code)), count)
    if overdue is not None:
        family(catalog.CALL_IN_FLIGHT_SECONDS).add((*identity, overdue.function), overdue.seconds)


Rows = Mapping[MetricSpec, list[tuple[Labels, float]]]


def _rows_of(reading: Reading, identity: tuple[str, str]) -> Rows:
    """What stands in a reading itself."""
    rows: dict[MetricSpec, list[tuple[Labels, float]]] = {}
    for signal, value in reading.values.items():
        if isinstance(signal, MetricSpec):
            rows[signal] = [(identity, value)]
        elif isinstance(signal, Series):
            rows.setdefault(signal.spec, []).append(((*identity, *signal.labels), value))
        elif signal is Raw.VGPU_LICENSE and value != VgpuLicense.NOT_NEEDED:
            active = float(value == VgpuLicense.ACTIVE)
            rows[board.VGPU_LICENSE_ACTIVE] = [(identity, active)]
    for spec, labels, value in reading.rows:
        rows.setdefault(spec, []).append(((*identity, *labels), value))
    return rows


def _add_sums(
    family: FamilyOf, identity: tuple[str, str], summed: Summed, shown: Mapping[Signal, float]
) -> None:
    for signal, statistics in summed.windows.items():
        if signal in shown:
            names = catalog.WINDOWS[signal]
            family(names.minimum).add(identity, statistics.minimum)
            family(names.mean).add(identity, statistics.mean)
            family(names.peak).add(identity, statistics.peak)
    if Raw.CLOCK_EVENT_REASONS in shown:
        for reason, seconds in summed.throttle_seconds.items():
            family(catalog.THROTTLE_SECONDS).add((*identity, reason), seconds)
    add_samples(family, identity, summed.sampled, shown)
