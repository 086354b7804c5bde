# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's own buffers of samples: what happened since they were last read."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf, isfinite
from struct import Struct
from typing import Final

from veo_exporter.catalog import MetricSpec, Series
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog.gpu_samples import GAPS
from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import UNREADABLE, Meaning, ReturnCode, meaning_of
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.probes import plausible_limits
from veo_exporter.gpu.readings import (
    Cadence,
    Device,
    Failure,
    Reading,
    SampleBatch,
    Signal,
    WhyNot,
)
from veo_exporter.units import milliwatts_to_watts, percent_to_ratio

FUNCTION: Final = "nvmlDeviceGetSamples"
MAX_ATTEMPTS: Final = 3
"""The bindings ask how many samples there are and then for so many; if one more came in between,
NVML says INSUFFICIENT_SIZE."""
FUTURE_MICROSECONDS: Final = 1_000_000
"""A sample so far ahead of our clock was taken before the wall clock was set back."""
REACH_MICROSECONDS: Final = 60_000_000
"""No buffer reaches further back (the longest have a hundred samples at 6 Hz)."""

UTILIZATION_REST_SECONDS: Final = 1.5
"""Six samples come in a second, and the buffer reaches back many: with samples of 1 s it is read at every
other one, at half the cost, and nothing is missed."""

# nvmlSamplingType_t.
_TOTAL_POWER: Final = 0
_GPU_UTILIZATION: Final = 1
_MEMORY_UTILIZATION: Final = 2
_ENCODER_UTILIZATION: Final = 3
_DECODER_UTILIZATION: Final = 4
# nvmlSample_t by nvmlValueType_t: the time, and the member of the union that holds the value.
_ROWS: Final = tuple(
    Struct(form) for form in ("=Qd", "=QI4x", "=QQ", "=QQ", "=Qq", "=Qi4x", "=QH6x")
)
_WHY_NOT: Final = {
    Meaning.UNSUPPORTED: WhyNot.NOT_SUPPORTED,
    Meaning.FORBIDDEN: WhyNot.NOT_PERMITTED,
}
_ENDS_THE_ROUND: Final = (Meaning.GPU_GONE, Meaning.REINITIALISE, Meaning.RESTART)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A kind of samples that the driver keeps, and the signal that they are of."""

    signal: MetricSpec
    kind: int
    convert: Callable[[float], float]
    rest_seconds: float = 0.0
    """So long it is left alone after it was read."""
    gaps: Series = field(init=False)
    """What is absent if the board has no such buffer."""
    limits: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gaps", GAPS[self.signal])
        object.__setattr__(self, "limits", plausible_limits(self.signal))


BUFFERS: Final[dict[Cadence, tuple[Buffer, ...]]] = {
    Cadence.FAST: (
        Buffer(catalog.UTILIZATION, _GPU_UTILIZATION, percent_to_ratio, UTILIZATION_REST_SECONDS),
        Buffer(
            catalog.MEMORY_COPY_UTILIZATION,
            _MEMORY_UTILIZATION,
            percent_to_ratio,
            UTILIZATION_REST_SECONDS,
        ),
        # Of power the driver was seen to keep two seconds and a third.
        Buffer(catalog.POWER, _TOTAL_POWER, milliwatts_to_watts),
    ),
    # Nobody pages on these: the buffer reaches back far enough to be read with the signals themselves.
    Cadence.FULL: (
        Buffer(catalog.ENCODER_UTILIZATION, _ENCODER_UTILIZATION, percent_to_ratio),
        Buffer(catalog.DECODER_UTILIZATION, _DECODER_UTILIZATION, percent_to_ratio),
    ),
    Cadence.STATIC: (),
}


def read_samples(
    line: Line, device: Device, reading: Reading, skipped: Collection[Signal], clock: Clock
) -> Reading:
    """A reading with what the driver's buffers have of the same signals, less those known to be missing."""
    if reading.code:
        return reading
    batches: dict[MetricSpec, SampleBatch] = {}
    missing: dict[Signal, WhyNot] = {}
    failures: list[Failure] = []
    implausible, code = 0, 0
    for buffer in BUFFERS[reading.cadence]:
        if buffer.gaps in skipped:
            continue
        try:
            batch, unbelievable = _read_buffer(line, device, buffer, clock)
        except NvmlError as error:
            meaning = meaning_of(error.code)
            if meaning in _WHY_NOT:
                missing[buffer.gaps] = _WHY_NOT[meaning]
                continue
            failures.append(Failure(function=error.function, code=error.code))
            if meaning in _ENDS_THE_ROUND:
                return reading._replace(
                    values={},
                    rows=(),
                    code=error.code,
                    failures=(*reading.failures, *failures),
                )
            if meaning is Meaning.GPU_ILL:
                code = error.code
            batch, unbelievable = SampleBatch(0), 0
        batches[buffer.signal] = batch
        implausible += unbelievable
    return reading._replace(
        samples=batches,
        code=code,
        missing={**reading.missing, **missing},
        failures=(*reading.failures, *failures),
        implausible=reading.implausible + implausible,
    )


def _read_buffer(
    line: Line, device: Device, buffer: Buffer, clock: Clock
) -> tuple[SampleBatch, int]:
    """What is newer than what was read last, and how many samples cannot be true."""
    seen = device.bookmarks.samples_seen_microseconds
    since = seen.get(buffer.kind, 0)
    read_at = device.bookmarks.samples_read_monotonic_seconds
    now = clock.monotonic_seconds()
    if buffer.rest_seconds and now - read_at.get(buffer.kind, -inf) < buffer.rest_seconds:
        return SampleBatch(since), 0
    if since > clock.unix_seconds() * 1e6 + FUTURE_MICROSECONDS:
        # The wall clock was set back: the driver would have nothing newer for as long.
        since = 0
    try:
        value_type, raw = _ask(line, device, buffer.kind, since)
    except NvmlError as error:
        if error.code != ReturnCode.NOT_FOUND:
            raise
        # Nothing newer.
        read_at[buffer.kind] = now
        return SampleBatch(since), 0
    read_at[buffer.kind] = now
    now_microseconds = int(clock.unix_seconds() * 1e6)
    after = max(since, now_microseconds - REACH_MICROSECONDS)
    until = now_microseconds + FUTURE_MICROSECONDS
    try:
        rows = list(_ROWS[value_type].iter_unpack(raw))
    except Exception as error:
        # A type of value that no header names, or rows that are none.
        raise NvmlError(FUNCTION, UNREADABLE, repr(error)) from error
    rows.sort()
    if rows and not after < rows[0][0] <= rows[-1][0] <= until:
        rows = rows_between(rows, after, until)
    if not rows:
        return SampleBatch(since), 0
    (low, high), convert = buffer.limits, buffer.convert
    times, numbers = zip(*rows, strict=True)
    values = tuple(map(convert, numbers))
    seen[buffer.kind] = times[-1]
    # A sum that is no number has one that is none in it: no comparison would tell.
    if low <= min(values) and max(values) <= high and isfinite(sum(values)):
        return SampleBatch(since, times, values), 0
    believed = [pair for pair in zip(times, values, strict=True) if low <= pair[1] <= high]
    times, values = zip(*believed, strict=True) if believed else ((), ())
    return SampleBatch(since, times, values), len(rows) - len(believed)


def _ask(line: Line, device: Device, kind: int, since_microseconds: int) -> tuple[int, bytes]:
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return line.call(FUNCTION, device.handle, kind, since_microseconds)  # type: ignore[no-any-return]
        except NvmlError as error:
            if error.code != ReturnCode.INSUFFICIENT_SIZE:
                raise
    return line.call(FUNCTION, device.handle, kind, since_microseconds)  # type: ignore[no-any-return]


def rows_between(
    rows: Iterable[tuple[int, float]], after_microseconds: int, until_microseconds: int
) -> list[tuple[int, float]]:
    """Samples in the order of time. NVML promises none, repeats old ones, and leaves unused rows at 0."""
    found = [row for row in rows if after_microseconds < row[0] <= until_microseconds]
    found.sort()
    return found
