# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's buffers, asked of the fake library through the real bindings."""

import ctypes
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fake_nvml import FakeLibrary, FakeNode, FakeSample, FakeSamples
from tests.gpu.conftest import FakeClock, ScriptedError, ScriptedNvml, reading_of
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog.gpu_samples import GAPS
from veo_exporter.clock import SystemClock
from veo_exporter.gpu.bindings import Bindings
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.readings import (
    Cadence,
    Device,
    Failure,
    Reading,
    SampleBatch,
    Signal,
    WhyNot,
)
from veo_exporter.gpu.samples import (
    BUFFERS,
    FUTURE_MICROSECONDS,
    MAX_ATTEMPTS,
    read_samples,
    rows_between,
)
from veo_exporter.gpu.session import find_gpu, open_session

UTILIZATION_KIND = 1


class HurriedClock(SystemClock):
    """The wall clock as it is, and time that passes when it is told to."""

    ahead_seconds = 0.0

    def monotonic_seconds(self) -> float:
        return time.monotonic() + self.ahead_seconds


@dataclass
class Asked:
    """A GPU of the fake library, and what is known of its buffers. Two seconds pass between readings."""

    node: FakeNode
    library: FakeLibrary
    line: Line
    device: Device
    clock: "HurriedClock"

    def read(self, cadence: Cadence = Cadence.FAST, skipped: tuple[Signal, ...] = ()) -> Reading:
        self.clock.ahead_seconds += 2
        return read_samples(self.line, self.device, reading_of(cadence), skipped, self.clock)

    def rows(self, signal: MetricSpec = catalog.UTILIZATION) -> tuple[tuple[int, float], ...]:
        samples = self.read().samples
        assert samples is not None
        return rows_of(samples[signal])

    def give(self, *samples: FakeSample | FakeSamples) -> None:
        self.node.gpus[0].set(samples=list(samples))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    node = FakeNode(tmp_path / "scenario", gpus=1)
    library = node.attach()
    line = Line(Bindings(pynvml), SystemClock())
    assert open_session(line).code == 0
    device = find_gpu(line, 0).device
    assert device is not None
    library_count = FakeLibrary(node.library_directory)
    yield Asked(node, library_count, line, device, HurriedClock())
    library.reset()


def rows_of(batch: SampleBatch) -> tuple[tuple[int, float], ...]:
    return tuple(zip(batch.times_microseconds, batch.values, strict=True))


def now_microseconds() -> int:
    return time.time_ns() // 1000


def test_every_buffer_of_a_board_that_has_them(asked: Asked) -> None:
    for cadence in (Cadence.FAST, Cadence.FULL):
        reading = asked.read(cadence)
        assert reading.samples is not None
        assert set(reading.samples) == {buffer.signal for buffer in BUFFERS[cadence]}
        assert all(batch.values for batch in reading.samples.values())
        assert (reading.missing, reading.failures, reading.code) == ({}, (), 0)
    assert asked.read(Cadence.STATIC).samples == {}


def test_values_are_in_base_units(asked: Asked) -> None:
    at = now_microseconds() - 1000
    asked.give(FakeSample(0, at, 612_500), FakeSample(1, at, 95), FakeSample(2, at, 85))
    samples = asked.read().samples
    assert samples is not None
    assert rows_of(samples[catalog.POWER]) == ((at, 612.5),)
    assert rows_of(samples[catalog.UTILIZATION]) == ((at, 0.95),)
    assert rows_of(samples[catalog.MEMORY_COPY_UTILIZATION]) == ((at, 0.85),)


def test_only_what_is_newer_comes_the_next_time(asked: Asked) -> None:
    at = now_microseconds() - 100_000
    asked.give(FakeSample(1, at, 10), FakeSample(1, at + 1000, 20))
    assert [value for _, value in asked.rows()] == [0.1, 0.2]
    assert asked.rows() == ()
    asked.give(FakeSample(1, at + 1000, 20), FakeSample(1, at + 2000, 30))
    samples = asked.read().samples
    assert samples is not None
    assert samples[catalog.UTILIZATION] == (at + 1000, (at + 2000,), (0.3,))


def test_the_buffer_of_utilization_is_left_alone_for_a_moment(asked: Asked) -> None:
    at = now_microseconds() - 100_000
    asked.give(FakeSample(1, at, 10), FakeSample(0, at, 400_000))
    asked.read()
    asked.give(
        *(FakeSample(1, at + later, 20) for later in (0, 1000)),
        *(FakeSample(0, at + later, 500_000) for later in (0, 1000)),
    )
    asked.clock.ahead_seconds -= 1.0
    # A second later: of power there is more each time.
    samples = asked.read().samples
    assert samples is not None
    assert samples[catalog.UTILIZATION] == (at, (), ())
    assert rows_of(samples[catalog.POWER]) == ((at + 1000, 500.0),)
    # And one more second later.
    asked.clock.ahead_seconds -= 1.0
    assert asked.rows() == ((at + 1000, 0.2),)


def test_disorder_repeats_and_unused_rows(asked: Asked) -> None:
    at = now_microseconds() - 100_000
    asked.give(FakeSample(1, at, 10))
    asked.rows()
    # It gives all it has, whatever was seen.
    asked.node.gpus[0].set(ignore_last_seen=1)
    asked.give(
        FakeSample(1, at + 3000, 40),
        FakeSample(1, 0, 99),
        FakeSample(1, at, 10),
        FakeSample(1, at + 1000, 20),
        FakeSample(1, at + 2000, 30),
        FakeSample(1, at - 5000, 5),
    )
    assert asked.rows() == ((at + 1000, 0.2), (at + 2000, 0.3), (at + 3000, 0.4))


@pytest.mark.parametrize(
    "value_type", ["double", "uint", "ulong", "ulonglong", "longlong", "int", "ushort"]
)
def test_the_type_of_value_is_that_of_the_answer(asked: Asked, value_type: Any) -> None:
    at = now_microseconds() - 1000
    asked.give(FakeSample(1, at, 50, value_type))
    assert asked.rows() == ((at, 0.5),)


def test_a_board_without_a_buffer_is_asked_once(asked: Asked) -> None:
    at = now_microseconds() - 1000
    asked.give(FakeSample(1, at, 50))
    reading = asked.read()
    missing = {
        GAPS[signal]: WhyNot.NOT_SUPPORTED
        for signal in (catalog.MEMORY_COPY_UTILIZATION, catalog.POWER)
    }
    assert reading.missing == missing
    assert reading.samples is not None
    assert set(reading.samples) == {catalog.UTILIZATION}
    before = asked.library.calls("nvmlDeviceGetSamples")
    assert asked.read(skipped=tuple(missing)).missing == {}
    assert asked.library.calls("nvmlDeviceGetSamples") == before + 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0])
def test_a_number_that_is_none_costs_itself(asked: Asked, number: float) -> None:
    at = now_microseconds() - 10_000
    asked.give(FakeSample(1, at, 50, "double"), FakeSample(1, at + 1000, number, "double"))
    reading = asked.read()
    assert reading.samples is not None
    assert rows_of(reading.samples[catalog.UTILIZATION]) == ((at, 0.5),)
    assert reading.implausible == 1


def test_what_cannot_be_true_is_counted(asked: Asked) -> None:
    at = now_microseconds() - 10_000
    asked.give(FakeSample(1, at, 101), FakeSample(1, at + 1000, 100))
    reading = asked.read()
    assert reading.samples is not None
    assert rows_of(reading.samples[catalog.UTILIZATION]) == ((at + 1000, 1.0),)
    assert reading.implausible == 1


def test_a_buffer_that_grows_faster_than_it_is_read_is_a_failure(asked: Asked) -> None:
    # A sample each two microseconds: there is always one more by the second of the two calls.
    asked.give(FakeSamples(1, [50], 2, 1_000_000))
    asked.device.bookmarks.samples_seen_microseconds[UTILIZATION_KIND] = now_microseconds()
    before = asked.library.calls("nvmlDeviceGetSamples")
    reading = asked.read(skipped=(GAPS[catalog.MEMORY_COPY_UTILIZATION], GAPS[catalog.POWER]))
    assert reading.failures == (Failure(function="nvmlDeviceGetSamples", code=7),)
    assert asked.library.calls("nvmlDeviceGetSamples") == before + 2 * MAX_ATTEMPTS
    assert reading.samples is not None
    # Nothing is made up in its place; the next reading has it all.
    assert rows_of(reading.samples[catalog.UTILIZATION]) == ()
    assert reading.code == 0


def test_a_race_is_run_again(nvml: ScriptedNvml, clock: FakeClock, first: Device) -> None:
    at = int((clock.unix_seconds() - 0.1) * 1e6)
    asked = []

    def answer(_handle: object, kind: int, _since: int) -> tuple[int, bytes]:
        asked.append(kind)
        if asked.count(kind) < MAX_ATTEMPTS:
            raise ScriptedError(7)
        row = pynvml.c_nvmlSample_t()
        row.timeStamp, row.sampleValue.uiVal = at, 50
        return 1, bytes(row)

    library = SimpleNamespace(NVMLError=ScriptedError, nvmlDeviceGetSamples=answer)
    reading = read_samples(Line(library, clock), first, reading_of(), (), clock)
    assert reading.samples is not None
    assert rows_of(reading.samples[catalog.UTILIZATION]) == ((at, 0.5),)
    assert reading.failures == ()


@pytest.mark.parametrize("answer", [(99, bytes(16)), (1, bytes(15))])
def test_an_answer_that_makes_no_sense_costs_one_batch(
    clock: FakeClock, first: Device, answer: object
) -> None:
    library = SimpleNamespace(NVMLError=ScriptedError, nvmlDeviceGetSamples=lambda *_: answer)
    reading = read_samples(Line(library, clock), first, reading_of(), (), clock)
    assert {failure.code for failure in reading.failures} == {-1}
    assert reading.code == 0


@pytest.mark.parametrize("code", [15, 16, 1])
def test_a_gpu_that_goes_meanwhile_has_no_values(asked: Asked, code: int) -> None:
    asked.node.gpus[0].fail("nvmlDeviceGetSamples", code)
    reading = read_samples(
        asked.line,
        asked.device,
        reading_of(values={catalog.POWER: 1.0}),
        (),
        SystemClock(),
    )
    assert (reading.code, reading.values) == (code, {})
    assert asked.library.calls("nvmlDeviceGetSamples") == 1


def test_a_reading_that_failed_is_not_followed_up(asked: Asked) -> None:
    reading = reading_of(code=15)
    assert read_samples(asked.line, asked.device, reading, (), SystemClock()) is reading
    assert asked.library.calls("nvmlDeviceGetSamples") == 0


def test_a_wall_clock_that_was_set_back(asked: Asked) -> None:
    now = now_microseconds()
    asked.device.bookmarks.samples_seen_microseconds[UTILIZATION_KIND] = now + 3_600_000_000
    # One of before that step and one of after it.
    asked.give(FakeSample(1, now + 3_599_000_000, 90), FakeSample(1, now, 10))
    samples = asked.read().samples
    assert samples is not None
    assert samples[catalog.UTILIZATION] == (0, (now,), (0.1,))
    assert asked.device.bookmarks.samples_seen_microseconds[UTILIZATION_KIND] == now


def test_the_structures_are_those_of_the_bindings() -> None:
    # A row has the driver's time first; our getters read the union's members by name.
    members = {name for name, _ in pynvml.c_nvmlValue_t._fields_}
    assert {"dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal"} <= members
    assert ctypes.sizeof(pynvml.c_nvmlSample_t) == 16


TIMES = st.integers(0, 50)


@given(
    st.lists(st.tuples(TIMES, st.floats(0, 100))),
    TIMES,
    TIMES.map(lambda ahead: ahead + FUTURE_MICROSECONDS),
)
def test_rows_are_in_order_and_new(rows: list[tuple[int, float]], after: int, until: int) -> None:
    found = rows_between(rows, after, until)
    assert sorted(found) == found
    assert all(after < at <= until for at, _ in found)
    assert len(found) == sum(after < at <= until for at, _ in rows)
