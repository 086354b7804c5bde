# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What was read from GPUs: the types that travel from the driver to the page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from veo_exporter.catalog import MetricSpec, Series
from veo_exporter.catalog.gpu import THROTTLE_SECONDS
from veo_exporter.catalog.gpu_board import VGPU_LICENSE_ACTIVE
from veo_exporter.gpu.nvml import Handle

OUTDATED_AFTER_SECONDS: Final = 15.0
"""A snapshot follows another each second; this long without one, and the sampler itself is ill."""


class Cadence(Enum):
    """How often a group of signals is read; the value is the group's name in labels."""

    FAST = "gpu_fast"
    FULL = "gpu_full"
    STATIC = "gpu_static"

    # Enum's own is a Python function, and what is kept of a GPU is kept by cadence.
    __hash__ = object.__hash__


class Raw(Enum):
    """Signals that are no metric themselves; the value is the metric that is made of them."""

    CLOCK_EVENT_REASONS = THROTTLE_SECONDS.name
    VGPU_LICENSE = VGPU_LICENSE_ACTIVE.name

    # As above: readings are keyed by signals.
    __hash__ = object.__hash__


Signal = MetricSpec | Series | Raw
"""What is asked for: a metric, one of its series, or what a metric is made of."""

Row = tuple[MetricSpec, tuple[str, ...], float]
"""A metric, its labels after gpu and uuid, and its value: for what is not known beforehand, such as
processes."""


def signal_name(signal: Signal) -> str:
    """The name of the metric that is absent when this signal is."""
    if isinstance(signal, Raw):
        return signal.value
    return str(signal) if isinstance(signal, Series) else signal.name


class State(Enum):
    """What condition a GPU is in. The set is closed: alerts and dashboards lean on it."""

    OK = "ok"
    LOST = "lost"
    HUNG = "hung"
    RESET_REQUIRED = "reset_required"
    HIDDEN = "hidden"
    UNKNOWN = "unknown"


class WhyNot(Enum):
    """Why a signal is absent for as long as nothing changes."""

    NOT_SUPPORTED = "not_supported"
    NOT_PERMITTED = "not_permitted"


class GpuInstance(NamedTuple):
    """A part of a GPU that is divided, with memory and engines of its own."""

    id: int
    mig_uuid: str
    """Of its first compute instance: unlike the id, it is never used again."""


@dataclass(slots=True)
class ProcessNotes:
    """What was last told of a GPU's processes."""

    names: dict[int, str] = field(default_factory=dict)
    """The name under which each is shown, by pid."""
    folded: frozenset[str] = frozenset()
    """Names that are shown as others."""
    parts: set[tuple[str, str]] = field(default_factory=set)
    """Names with the parts of the GPU that they were seen to use."""
    newer_question_unsupported: bool = False


@dataclass(slots=True)
class Bookmarks:
    """Up to where a GPU's own buffers have been read in this session, by the thread that reads it."""

    samples_seen_microseconds: dict[int, int] = field(default_factory=dict)
    """The driver's time of the newest sample read, by type of sample."""
    samples_read_monotonic_seconds: dict[int, float] = field(default_factory=dict)
    """When it was read last, by type of sample."""
    processes_seen_microseconds: int = 0
    """The driver's time of the newest sample of the utilization of processes."""
    processes: ProcessNotes = field(default_factory=ProcessNotes)
    gpu_instances: tuple[GpuInstance, ...] = ()
    """What the GPU was divided into (MIG) when that was last asked."""
    questions: dict[Cadence, Any] = field(default_factory=dict)
    """What is asked of it, as the reader worked it out."""
    missing: dict[Cadence, Mapping[Signal, WhyNot]] = field(default_factory=dict)
    """What the last reading of everything found to be missing."""
    sources: dict[tuple[Signal, ...], int] = field(default_factory=dict)
    """Of signals with several sources, which of them is believed in this session."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as one session with the driver knows it."""

    index: int
    uuid: str
    pci_bus_id: str
    handle: Handle = field(compare=False)
    bookmarks: Bookmarks = field(default_factory=Bookmarks, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call that did not give a value, unsupported ones aside."""

    function: str
    code: int


class SampleBatch(NamedTuple):
    """What the driver's buffer had of one signal: all that is newer than what was read before."""

    since_microseconds: int
    """The driver's time of the newest sample read before; 0 if none was in this session."""
    times_microseconds: tuple[int, ...] = ()
    """By the driver's clock, the wall clock; in order."""
    values: tuple[float, ...] = ()


class Reading(NamedTuple):
    """One GPU's group of signals: the values, how it went, and when.

    A signal that failed is not in `values`; its failure is in `failures`, or in `missing` if it
    will not be asked for again until the next static sweep.
    """

    cadence: Cadence
    finished_unix_seconds: float
    finished_monotonic_seconds: float
    values: Mapping[Signal, float]
    texts: Mapping[str, str]
    failures: tuple[Failure, ...]
    missing: Mapping[Signal, WhyNot]
    implausible: int
    code: int
    """The return code that decides the GPU's state; 0 if nothing speaks against it."""
    rows: tuple[Row, ...] = ()
    """What is not known beforehand."""
    samples: Mapping[MetricSpec, SampleBatch] | None = None
    """Of signals that the driver keeps a buffer of; None if no buffer was asked for."""

    @property
    def succeeded(self) -> bool:
        return self.code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A signal over its trailing window; the mean is weighted by time."""

    minimum: float
    mean: float
    peak: float


class Spread(NamedTuple):
    """For how long a signal had which values."""

    seconds: tuple[float, ...]
    """By the buckets of its histogram; the last is for what is above all bounds."""
    integral: float
    """The sum of each value by its seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What all samples of a GPU came to since the start."""

    seconds: Mapping[MetricSpec, float] = field(default_factory=dict)
    """The integral over time, by signal."""
    spreads: Mapping[MetricSpec, Spread] = field(default_factory=dict)
    """By signal."""
    throttle_busy_seconds: Mapping[str, float] = field(default_factory=dict)
    gaps: Mapping[MetricSpec, int] = field(default_factory=dict)
    """Of signals that the driver keeps a buffer of."""


class Summed(NamedTuple):
    """What the samples of a GPU come to at one time."""

    windows: dict[MetricSpec, Statistics]
    """The trailing windows of the signals that are shown."""
    throttle_seconds: dict[str, float]
    sampled: Sampled


def nothing_summed() -> Summed:
    """Of a GPU that was never read."""
    return Summed({}, {}, Sampled())


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueCall:
    """A call that is over its deadline and has not returned."""

    function: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuView:
    """Everything known of one GPU at the time of a snapshot. `index` is None and `uuid` empty
    where only the PCI bus knows of it."""

    index: int | None
    uuid: str
    pci_bus_id: str
    state: State
    code: int | None
    texts: Mapping[str, str]
    readings: tuple[Reading, ...]
    missing: Mapping[str, WhyNot]
    """By the name of what is absent."""
    errors: Mapping[tuple[str, int], int]
    implausible_readings: int
    overdue_call: OverdueCall | None
    summed: Callable[[], Summed] = field(default=nothing_summed, compare=False)
    """Sums up when it is called first, and gives the same ever after: most snapshots nobody looks at."""

    @property
    def windows(self) -> Mapping[MetricSpec, Statistics]:
        return self.summed().windows

    @property
    def throttle_seconds(self) -> Mapping[str, float]:
        return self.summed().throttle_seconds

    @property
    def sampled(self) -> Sampled:
        return self.summed().sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsElsewhere:
    """What became of calls that are not the sampler's."""

    errors: Mapping[tuple[str, int], int] = field(default_factory=dict)
    overdue: tuple[OverdueCall, ...] = ()
    """At most one of each function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The driver, as far as a session with it could be opened."""

    fault: str
    """Empty while a session is open; else what is wrong and what helps."""
    paused: bool = False
    """By request."""
    why_restart: str = ""
    """Why only a restart of this process helps, if it looks so."""
    texts: Mapping[str, str] = field(default_factory=dict)
    visible: int | None = 0
    """None when the count is too old to be believed."""
    overdue_call: OverdueCall | None = None
    errors: Mapping[tuple[str, int], int] = field(default_factory=dict)
    elsewhere: CallsElsewhere = field(default_factory=CallsElsewhere)
    """Of functions that are called nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The node's GPUs at one time. Readings carry their own time: see `withdrawn`."""

    sequence: int
    taken_monotonic_seconds: float
    driver: Driver
    expected: int | None
    gpus: tuple[GpuView, ...]
    last_success_unix_seconds: Mapping[Cadence, float]
    stale_after_seconds: Mapping[Cadence, float]

    def outdated(self, now_monotonic_seconds: float) -> bool:
        """Whether nobody has published for so long that not even states are to be believed."""
        return now_monotonic_seconds - self.taken_monotonic_seconds > OUTDATED_AFTER_SECONDS

    def withdrawn(self, reading: Reading, now_monotonic_seconds: float) -> bool:
        """Whether a reading is too old to be shown."""
        return now_monotonic_seconds > self.withdrawn_after(reading)

    def withdrawn_after(self, reading: Reading) -> float:
        """The last monotonic time at which a reading may be shown."""
        return reading.finished_monotonic_seconds + self.stale_after_seconds[reading.cadence]

    def current_values(self, gpu: GpuView, now_monotonic_seconds: float) -> Mapping[Signal, float]:
        """A GPU's values that may be shown."""
        return {
            signal: value
            for reading in gpu.readings
            if not self.withdrawn(reading, now_monotonic_seconds)
            for signal, value in reading.values.items()
        }
