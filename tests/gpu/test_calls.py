# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What calls cost, by function."""

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from tests.gpu.conftest import FakeClock, ScriptedError, wait_until
from tests.gpu.running import ALL_OK, Start
from veo_exporter.catalog import gpu_life as catalog
from veo_exporter.exposition import Family
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.life import LifeSource
from veo_exporter.gpu.nvml import Line, NvmlError, Tally
from veo_exporter.gpu.pause import NOT_PAUSED, Pause, PauseStatus
from veo_exporter.gpu.readings import State


def line_on(clock: FakeClock) -> Line:
    """Its one function takes two seconds; a negative argument fails after half a second."""

    def ask(argument: int) -> int:
        if argument < 0:
            clock.now += 0.5
            raise ScriptedError(3)
        clock.now += 2
        return argument

    return Line(SimpleNamespace(NVMLError=ScriptedError, nvmlAsk=ask), clock)


def shown(totals: CallTotals) -> dict[str, tuple[int, float]]:
    return {name: (tally.calls, tally.seconds) for name, tally in totals.totals().items()}


def test_calls_and_seconds_are_counted_whatever_is_answered(clock: FakeClock) -> None:
    totals, line = CallTotals(), line_on(clock)
    totals.watch(line)
    line.call("nvmlAsk", 1)
    line.call("nvmlAsk", 1)
    with suppress(NvmlError):
        line.call("nvmlAsk", -1)
    # What the library lacks is not called.
    with suppress(NvmlError):
        line.call("nvmlNewerThanThis")
    assert shown(totals) == {"nvmlAsk": (3, 4.5)}


def test_what_a_line_counted_outlives_it(clock: FakeClock) -> None:
    totals, one, two = CallTotals(), line_on(clock), line_on(clock)
    for line in (one, two):
        totals.watch(line)
        line.call("nvmlAsk", 1)
    totals.retire(one)
    totals.retire(one)
    assert shown(totals) == {"nvmlAsk": (2, 4.0)}
    two.call("nvmlAsk", 1)
    assert shown(totals) == {"nvmlAsk": (3, 6.0)}


def test_a_retired_line_is_let_go(clock: FakeClock) -> None:
    totals, line = CallTotals(), line_on(clock)
    totals.watch(line)
    totals.retire(line)
    line.call("nvmlAsk", 1)
    assert shown(totals) == {}


def test_threads_that_were_left_behind_are_counted_once(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")
    running.wait_for({"GPU-2": State.HUNG})
    running.nvml.release("GPU-2", "nvmlDeviceGetPowerUsage")
    running.wait_for(ALL_OK)
    assert running.sampler.stop(5)
    totals = running.sampler.calls.totals()
    for function in ("nvmlInit", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetHandleByIndex"):
        assert totals[function].calls == running.nvml.count_calls(function), function


def rows(source: LifeSource) -> dict[str, Any]:
    families: list[Family] = list(source.families(0.0))
    return {family.spec.name: family.rows for family in families}


def test_metrics() -> None:
    status = NOT_PAUSED
    source = LifeSource(lambda: status, lambda: {"nvmlB": Tally(2, 0.5), "nvmlA": Tally(1, 0.25)})
    assert rows(source) == {
        catalog.PAUSED.name: [((), 0)],
        catalog.PAUSE_EXPIRY.name: [((), 0)],
        catalog.NVML_CALLS.name: [(("nvmlA",), 1), (("nvmlB",), 2)],
        catalog.NVML_CALL_SECONDS.name: [(("nvmlA",), 0.25), (("nvmlB",), 0.5)],
    }
    before = source.revision(0.9)
    assert source.revision(0.95) == before
    status = PauseStatus(pause=Pause(1e9, 60.0))
    # A pause is on the page at once.
    assert source.revision(0.95) != before
    assert rows(source)[catalog.PAUSED.name] == [((), 1)]
    assert rows(source)[catalog.PAUSE_EXPIRY.name] == [((), 1e9)]


def test_a_pause_of_a_running_sampler_is_told(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.sampler.pause(3600, 10)
    source = LifeSource(lambda: running.sampler.pauses.status, running.sampler.calls.totals)
    assert rows(source)[catalog.PAUSED.name] == [((), 1)]
    running.sampler.resume()
    wait_until(lambda: rows(source)[catalog.PAUSED.name] == [((), 0)])
