# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The processes on a GPU: how many there are, their memory and their share of it, by name."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from veo_exporter.catalog import gpu_processes as catalog
from veo_exporter.catalog.gpu_processes import OTHER, UNKNOWN
from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import Meaning, ReturnCode, meaning_of
from veo_exporter.gpu.findings import Finding, Survey
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.process_names import TOO_MANY_NAMES, ProcessNames
from veo_exporter.gpu.readings import Device
from veo_exporter.units import percent_to_ratio

BEYOND_TOP: Final = "beyond_top"
NAMES_DROPPED: Final = (BEYOND_TOP, TOO_MANY_NAMES)
MAX_TRIES: Final = 3
"""A process that starts between the call for their number and the call for them makes the second fail."""
FIRST_REACH_MICROSECONDS: Final = 10_000_000
"""The first answer would tell of all that the driver remembers, dead processes included."""
FUTURE_MICROSECONDS: Final = 1_000_000
"""A row so far ahead of our clock was written before the wall clock was set back."""
MAX_PERCENT: Final = 100

_COMPUTE: Final = "nvmlDeviceGetComputeRunningProcesses"
_FURTHER: Final = (
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
_NEWER: Final = "nvmlDeviceGetProcessesUtilizationInfo"
_OLDER: Final = "nvmlDeviceGetProcessUtilization"
_PERCENTS: Final = tuple(
    zip(catalog.PARTS, ("smUtil", "encUtil", "decUtil", "jpgUtil", "ofaUtil"), strict=True)
)
"""Parts of the GPU by the fields of the answer; the older one lacks the last two."""
_ALWAYS_SHOWN: Final = catalog.PARTS[0]


class Use(NamedTuple):
    """What the processes of a name have of a GPU; the memory is None unless it is known of all."""

    processes: int
    memory_bytes: int | None


class ProcessSurveys:
    """Asks GPUs for their processes."""

    def __init__(self, names: ProcessNames, clock: Clock) -> None:
        self._names = names
        self._clock = clock

    @property
    def surveys(self) -> tuple[Survey, ...]:
        """In the order in which they are to be asked."""
        return (
            Survey((catalog.PROCESSES, catalog.PROCESS_MEMORY_USED), self.ask_processes),
            Survey((catalog.PROCESS_UTILIZATION,), self.ask_utilization),
        )

    def ask_processes(self, line: Line, device: Device) -> list[Finding]:
        """Number and memory of each name."""
        notes = device.bookmarks.processes
        notes.names = {}
        running, failures = _running(line, device)
        memory = memory_by_pid(running)
        names = line.wait_for("read_process_names", lambda: self._names.names_of(memory))
        shown = self._shown(uses_by_name(memory, names))
        folded = frozenset(name for name, under in shown.items() if under == OTHER != name)
        for _ in folded - notes.folded:
            self._names.drop(BEYOND_TOP)
        notes.folded = folded
        notes.names = {pid: shown[name] for pid, name in names.items()}
        findings: list[Finding] = [(catalog.PROCESSES, (), error) for error in failures]
        for name, use in uses_by_name(memory, notes.names).items():
            findings.append((catalog.PROCESSES, (name,), use.processes))
            if use.memory_bytes is not None:
                findings.append((catalog.PROCESS_MEMORY_USED, (name,), use.memory_bytes))
        return findings

    def _shown(self, uses: Mapping[str, Use]) -> dict[str, str]:
        """Under what each name is shown: those with the most memory under their own."""
        known = (name for name in uses if name != UNKNOWN)
        ranked = sorted(known, key=lambda name: (-(uses[name].memory_bytes or 0), name))
        top = ranked[: self._names.limits.per_gpu]
        shown = {name: self._names.admit(name) if name in top else OTHER for name in ranked}
        return {**shown, UNKNOWN: UNKNOWN}

    def ask_utilization(self, line: Line, device: Device) -> list[Finding]:
        """How busy each name kept which part of the GPU, of the processes that were told of last."""
        notes = device.bookmarks.processes
        if not notes.names:
            return []
        rows = self._newer_rows(line, device)
        busy: dict[tuple[str, str], float] = dict.fromkeys(
            ((name, _ALWAYS_SHOWN) for name in notes.names.values()), 0.0
        )
        # What was used once keeps its row, also where a name comes back.
        shown = set(notes.names.values())
        busy |= dict.fromkeys((key for key in notes.parts if key[0] in shown), 0.0)
        for pid, row in rows.items():
            name = notes.names.get(pid)
            # What the others did with the rest is what is left of the whole GPU's.
            for part, field in (
                () if name is None else _PERCENTS[:1] if name == OTHER else _PERCENTS
            ):
                ratio = percent_to_ratio(getattr(row, field, 0))
                key = (str(name), part)
                if ratio or key in busy:
                    # Their periods differ, so that a sum may come to more than there is.
                    busy[key] = min(busy.get(key, 0.0) + ratio, 1.0)
        notes.parts = set(busy)
        return [
            (catalog.PROCESS_UTILIZATION, (name, part), ratio)
            for (name, part), ratio in busy.items()
        ]

    def _newer_rows(self, line: Line, device: Device) -> dict[int, Any]:
        """The newest row of each process, of those that were not read before."""
        bookmarks = device.bookmarks
        now = int(self._clock.unix_seconds() * 1e6)
        since = bookmarks.processes_seen_microseconds
        if not since or since > now + FUTURE_MICROSECONDS:
            since = now - FIRST_REACH_MICROSECONDS
        rows = newest_by_pid(_utilization(line, device, since), since, now + FUTURE_MICROSECONDS)
        bookmarks.processes_seen_microseconds = max(
            (row.timeStamp for row in rows.values()), default=since
        )
        return rows


def _running(line: Line, device: Device) -> tuple[list[Any], list[NvmlError]]:
    """All lists of processes, one of which may be in several; and why further lists could not be had,
    which costs those and no other."""
    running = _listed(line, _COMPUTE, device)
    failures = []
    for function in _FURTHER:
        try:
            running += _listed(line, function, device)
        except NvmlError as error:
            # Boards without graphics, drivers without MPS.
            if meaning_of(error.code) not in (Meaning.UNSUPPORTED, Meaning.FORBIDDEN):
                failures.append(error)
    return running, failures


def _listed(line: Line, function: str, device: Device) -> list[Any]:
    for _ in range(MAX_TRIES - 1):
        try:
            return list(line.call(function, device.handle))
        except NvmlError as error:
            if error.code != ReturnCode.INSUFFICIENT_SIZE:
                raise
    return list(line.call(function, device.handle))


def memory_by_pid(running: Iterable[Any]) -> dict[int, int | None]:
    """Memory of each process: of its entries in several lists the largest, and the sum over the GPU
    instances that it uses. None where the driver does not tell."""
    entries: dict[tuple[int, int], int | None] = {}
    for one in running:
        key = (one.pid, getattr(one, "gpuInstanceId", 0))
        sizes = [size for size in (entries.get(key), one.usedGpuMemory) if size is not None]
        entries[key] = max(sizes, default=None)
    memory: dict[int, int | None] = {}
    for (pid, _instance), size in entries.items():
        before = memory.get(pid, 0)
        memory[pid] = None if size is None or before is None else before + size
    return memory


def uses_by_name(memory: Mapping[int, int | None], names: Mapping[int, str]) -> dict[str, Use]:
    """What all processes of each name have together."""
    uses: dict[str, Use] = {}
    for pid, size in memory.items():
        count, before = uses.get(names[pid], Use(0, 0))
        total = None if size is None or before is None else before + size
        uses[names[pid]] = Use(count + 1, total)
    return uses


def _utilization(line: Line, device: Device, since_microseconds: int) -> list[Any]:
    notes = device.bookmarks.processes
    if not notes.newer_question_unsupported:
        try:
            return _tried(line, _NEWER, device, since_microseconds)
        except NvmlError as error:
            # From driver 550 on, and not on all boards even then.
            if meaning_of(error.code) is not Meaning.UNSUPPORTED:
                raise
            notes.newer_question_unsupported = True
    return _tried(line, _OLDER, device, since_microseconds)


def _tried(line: Line, function: str, device: Device, since_microseconds: int) -> list[Any]:
    for tries in range(1, MAX_TRIES + 1):
        try:
            return list(line.call(function, device.handle, since_microseconds))
        except NvmlError as error:
            # The bindings raise SUCCESS if the answer is that there are none.
            if error.code in (ReturnCode.NOT_FOUND, ReturnCode.SUCCESS):
                return []
            if error.code != ReturnCode.INSUFFICIENT_SIZE or tries == MAX_TRIES:
                raise
    raise AssertionError("unreachable")


def newest_by_pid(
    rows: Iterable[Any], after_microseconds: int, until_microseconds: int
) -> dict[int, Any]:
    """The newest believable row of each process. Drivers repeat old rows, and leave garbage in those
    that they did not fill."""
    newest: dict[int, Any] = {}
    for row in rows:
        percents = [getattr(row, field, 0) for _, field in _PERCENTS]
        believable = (
            row.pid
            and after_microseconds < row.timeStamp <= until_microseconds
            and max(percents) <= MAX_PERCENT
        )
        known = newest.get(row.pid)
        if believable and (known is None or known.timeStamp < row.timeStamp):
            newest[row.pid] = row
    return newest
