# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Workers, and what waits for them."""

import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import wait_until
from veo_exporter.clock import SystemClock
from veo_exporter.video import MissingProgram, Probe, Prober, ProbeRequest, Unprobed, Verdict
from veo_exporter.video.definitions import VideoReport
from veo_exporter.video.expectation import NOTHING, Expectation
from veo_exporter.video.ffprobe import Ffprobe, Limits


class Clock:
    """Time as a test says it."""

    now = 1000.0

    def unix_seconds(self) -> float:
        return self.now

    def monotonic_seconds(self) -> float:
        return self.now


@dataclass
class Looking:
    """A probe that waits until it is let go."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ffprobe: Ffprobe = field(default_factory=lambda: Ffprobe(Limits()))
    error: Exception | None = None

    def look_at(self, path: Path, expectation: Expectation = NOTHING) -> VideoReport:
        self.begun.release()
        assert self.go.wait(20)
        if self.error and path.name == "bad.mp4":
            raise self.error
        return VideoReport(file=path, verdict=Verdict.OK)


class Office:
    """A prober, and everything that came of it."""

    def __init__(self, probe: Any, **more: Any) -> None:
        self.clock = more.pop("clock", None) or Clock()
        self.reports: list[tuple[ProbeRequest, VideoReport, int, int]] = []
        self.unprobed: list[Unprobed] = []
        self.prober = Prober(
            probe,
            on_report=lambda *said: self.reports.append(said),
            unprobed=self.unprobed.append,
            clock=self.clock,
            **more,
        )

    def submit(self, name: str) -> bool:
        return self.prober.submit(ProbeRequest(path=Path("/out") / name))


@pytest.fixture
def looking() -> Iterator[Looking]:
    looking = Looking()
    yield looking
    looking.go.set()


def test_the_backlog_is_bounded_and_its_age_is_known(looking: Looking) -> None:
    office = Office(looking, workers=1, most_waiting=2)
    office.prober.start()
    assert office.submit("first.mp4")
    assert looking.begun.acquire(timeout=20)
    assert office.prober.backlog().files == 0
    assert office.submit("second.mp4")
    office.clock.now += 5
    assert office.submit("third.mp4")
    assert not office.submit("fourth.mp4")
    assert office.unprobed == [Unprobed.BACKLOG_FULL]
    backlog = office.prober.backlog()
    assert (backlog.files, backlog.oldest_age_seconds) == (2, 5)
    looking.go.set()
    wait_until(lambda: len(office.reports) == 3)
    assert [request.path.name for request, *_ in office.reports] == [
        "first.mp4",
        "second.mp4",
        "third.mp4",
    ]
    assert office.prober.stop(10)


def test_a_fault_costs_one_report(looking: Looking) -> None:
    looking.go.set()
    looking.error = RuntimeError("a fault of ours")
    office = Office(looking, workers=1)
    office.prober.start()
    for name in ("bad.mp4", "good.mp4"):
        assert office.submit(name)
    wait_until(lambda: bool(office.reports))
    assert office.unprobed == [Unprobed.PROBE_FAILED]
    assert office.prober.stop(10)


def test_without_ffprobe_files_are_counted_and_nothing_else(looking: Looking) -> None:
    looking.go.set()
    looking.error = MissingProgram("ffprobe is not on PATH")
    office = Office(looking, workers=1)
    office.prober.start()
    assert office.submit("bad.mp4")
    wait_until(lambda: office.unprobed == [Unprobed.NO_FFPROBE])
    assert office.prober.stop(10)


def test_files_go_through_several_workers_at_once(looking: Looking) -> None:
    office = Office(looking, workers=3)
    office.prober.start()
    for number in range(3):
        assert office.submit(f"{number}.mp4")
    for _ in range(3):
        assert looking.begun.acquire(timeout=20)
    looking.go.set()
    wait_until(lambda: len(office.reports) == 3)
    assert office.prober.stop(10)


def test_a_report_has_its_times(films: dict[str, Path]) -> None:
    office = Office(Probe(ffprobe=Ffprobe(Limits())), clock=SystemClock())
    office.prober.start()
    request = ProbeRequest(
        path=films["healthy.mp4"], parent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    )
    assert office.prober.submit(request)
    wait_until(lambda: bool(office.reports))
    (given, report, started, ended) = office.reports[0]
    assert (given, report.verdict) == (request, Verdict.OK)
    assert 0 < ended - started < 60e9
    assert office.prober.stop(10)


def test_it_stops_while_an_ffprobe_hangs_and_says_nothing_of_its_file(tmp_path: Path) -> None:
    program = tmp_path / "ffprobe"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    (tmp_path / "film.mp4").write_bytes(b"film")
    ffprobe = Ffprobe(Limits(), program)
    office = Office(Probe(ffprobe=ffprobe))
    office.prober.start()
    assert office.prober.submit(ProbeRequest(path=tmp_path / "film.mp4"))
    wait_until(lambda: ffprobe.children > 0)
    assert office.prober.stop(10)
    assert office.reports == []
    assert not office.submit("late.mp4")


def test_it_may_be_stopped_before_it_was_started(looking: Looking) -> None:
    assert Office(looking).prober.stop(1)


def test_a_reload_leaves_nothing_behind_but_what_is_at_work(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"film")
    program = tmp_path / "ffprobe"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    first = Probe(ffprobe=Ffprobe(Limits(), program))
    office = Office(first, workers=1)
    office.prober.start()
    assert office.prober.submit(ProbeRequest(path=tmp_path / "film.mp4"))
    wait_until(lambda: first.ffprobe.children > 0)
    former = weakref.ref(others := Probe(ffprobe=Ffprobe(Limits(), program)).ffprobe)
    office.prober.reconfigure(Probe(ffprobe=others), most_waiting=5)
    del others
    office.prober.reconfigure(Probe(ffprobe=Ffprobe(Limits(), program)), most_waiting=5)
    gc.collect()
    assert former() is None
    # That of two reloads ago is still at work, and is ended all the same.
    assert office.prober.stop(10)
    assert first.ffprobe.children == 0
    assert office.reports == []


def test_other_settings_hold_from_the_next_file_on(looking: Looking) -> None:
    office = Office(looking, workers=1)
    office.prober.start()
    other = Looking()
    other.go.set()
    office.prober.reconfigure(other, most_waiting=5)  # type: ignore[arg-type]
    assert office.submit("film.mp4")
    wait_until(lambda: bool(office.reports))
    assert other.begun.acquire(timeout=20)
    assert office.prober.stop(10)
