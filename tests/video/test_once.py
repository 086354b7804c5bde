# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A file that an event names and a folder shows is one film: it is counted once, as its job said."""

import os
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tests.daemon import wait_until
from tests.video.test_prober import Looking
from veo_exporter.catalog import video as catalog
from veo_exporter.clock import SystemClock
from veo_exporter.exposition import Folds
from veo_exporter.simulate.videos import EXPECTATION
from veo_exporter.video import (
    Expectation,
    Ffprobe,
    Folder,
    FolderWatch,
    Limits,
    Origins,
    Probe,
    Prober,
    ProbeRequest,
    Verdict,
    VideoMetrics,
    VideoReport,
    parse_expectation,
)
from veo_exporter.video.backlog import GRACE_SECONDS
from veo_exporter.video.gate import identify
from veo_exporter.video.memory import ProbeMemory, Told, Turn

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
LONGER = Expectation(fps=Fraction(24), duration=Fraction(8))
"""192 frames, of which the healthy film has 149."""


class Counting:
    """A probe that says what it looked at."""

    def __init__(self) -> None:
        self.probe = Probe(ffprobe=Ffprobe(Limits()))
        self.ffprobe = self.probe.ffprobe
        self.looked: list[tuple[Path, Expectation]] = []

    def look_at(self, path: Path, expectation: Expectation) -> VideoReport:
        self.looked.append((path, expectation))
        return self.probe.look_at(path, expectation)


class Room:
    """A watched folder, workers and counters, all real."""

    def __init__(self, folder: Path, probe: object, workers: int = 2) -> None:
        self.folder = Folder(
            name="out", path=folder, quiet_seconds=0.2, expectation=parse_expectation(EXPECTATION)
        )
        self.folds = Folds()
        self.metrics = VideoMetrics(
            self.folds, Origins([self.folder.request(folder)], lambda label: None)
        )
        self.known: list[tuple[ProbeRequest, VideoReport]] = []
        self.shown: list[Path] = []
        self.prober = Prober(
            probe,  # type: ignore[arg-type]
            on_report=lambda request, report, *_: self.metrics.fold(request, report),
            on_known=lambda request, report, *_: self.known.append((request, report)),
            unprobed=lambda reason: None,
            clock=SystemClock(),
            workers=workers,
        )
        self.watch = FolderWatch(self.folder, self._show, SystemClock())

    def _show(self, request: ProbeRequest) -> None:
        self.prober.submit(request)
        self.shown.append(request.path)

    def event(self, path: Path, expectation: Expectation = LONGER) -> ProbeRequest:
        request = ProbeRequest(path=path, expectation=expectation, engine="e", parent=PARENT)
        self.prober.submit(request)
        return request

    @property
    def counted(self) -> dict[tuple[str, str], float]:
        """Files by source and verdict."""
        return {
            (labels[0], labels[-1]): value
            for family in self.folds.families(0)
            if family.spec is catalog.FILES
            for labels, value in family.rows
            if value
        }

    def idle(self) -> bool:
        return not self.prober.backlog().files


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def room(out: Path, counting: Counting) -> Iterator[Room]:
    room = Room(out, counting)
    room.prober.start()
    room.watch.start()
    assert room.watch.watching.wait(20)
    yield room
    assert room.watch.stop(10)
    assert room.prober.stop(10)


def put(film: Path, folder: Path, name: str = "film.mp4") -> Path:
    draft = folder / f".{name}.partial"
    draft.write_bytes(film.read_bytes())
    return draft.rename(folder / name)


def test_the_event_comes_while_the_folder_waits(
    films: dict[str, Path], room: Room, counting: Counting
) -> None:
    path = put(films["healthy.mp4"], room.folder.path)
    room.event(path)
    wait_until(lambda: room.shown == [path])
    # Longer than it is held back for.
    sentinel = put(films["healthy.mp4"], room.folder.path, "next.mp4")
    wait_until(lambda: ("out", "ok") in room.counted)
    assert counting.looked == [(path, LONGER), (sentinel, parse_expectation(EXPECTATION))]
    assert room.counted == {("event", "defective"): 1, ("out", "ok"): 1}
    assert room.known == []


def test_the_event_comes_after_the_folder_has_counted(
    films: dict[str, Path], room: Room, counting: Counting
) -> None:
    path = put(films["healthy.mp4"], room.folder.path)
    wait_until(lambda: room.counted == {("out", "ok"): 1})
    request = room.event(path)
    wait_until(lambda: bool(room.known))
    # The trace of its job learns what was found; nothing is probed or counted again.
    [(known, report)] = room.known
    assert known is request
    assert (report.file, report.verdict) == (path, Verdict.OK)
    assert report.media is not None
    assert (report.media.frame_count, report.duration) == (149, Fraction(149, 24))
    assert len(counting.looked) == 1
    assert room.counted == {("out", "ok"): 1}


def test_a_file_that_was_changed_is_another_one(
    films: dict[str, Path], room: Room, counting: Counting
) -> None:
    path = put(films["healthy.mp4"], room.folder.path)
    wait_until(lambda: room.counted == {("out", "ok"): 1})
    put(films["stops-at-6-seconds.mp4"], room.folder.path)
    room.event(path, parse_expectation(EXPECTATION))
    wait_until(lambda: ("event", "defective") in room.counted)
    assert room.counted == {("out", "ok"): 1, ("event", "defective"): 1}


def test_a_link_to_it_is_the_same_file(
    films: dict[str, Path], room: Room, counting: Counting, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(room.folder.path)
    path = put(films["healthy.mp4"], room.folder.path)
    wait_until(lambda: room.counted == {("out", "ok"): 1})
    room.event(tmp_path / "link" / path.name)
    wait_until(lambda: bool(room.known))
    assert room.known[0][1].file == tmp_path / "link" / path.name
    assert len(counting.looked) == 1


def test_an_event_makes_void_the_probe_that_runs_for_a_folder(
    films: dict[str, Path], out: Path
) -> None:
    looking = Looking()
    room = Room(out, looking, workers=3)
    room.prober.start()
    path = put(films["healthy.mp4"], out)
    room.prober.submit(room.folder.request(path))
    assert looking.begun.acquire(timeout=20)
    room.event(path)
    assert looking.begun.acquire(timeout=20)
    # A folder shows it once more: the event's probe stands for that too.
    room.prober.submit(room.folder.request(path))
    wait_until(room.idle)
    looking.go.set()
    wait_until(lambda: room.counted == {("event", "ok"): 1})
    assert room.prober.stop(10)
    assert room.counted == {("event", "ok"): 1}
    assert room.known == []


def test_two_events_share_the_probe_that_runs(films: dict[str, Path], out: Path) -> None:
    looking = Looking()
    room = Room(out, looking, workers=2)
    room.prober.start()
    path = put(films["healthy.mp4"], out)
    room.event(path)
    assert looking.begun.acquire(timeout=20)
    second = room.event(path)
    wait_until(room.idle)
    looking.go.set()
    wait_until(lambda: bool(room.known))
    assert room.known[0][0] is second
    assert room.prober.stop(10)
    assert room.counted == {("event", "ok"): 1}


def test_what_is_not_there_is_told_each_time(room: Room) -> None:
    path = room.folder.path / "absent.mp4"
    assert identify(path) is None
    assert identify(Path("a\0b")) is None
    room.event(path)
    room.event(path)
    wait_until(lambda: room.counted == {("event", "error"): 2})


def test_the_grace_is_short() -> None:
    # A page is scraped every few seconds: nobody sees that a file came a second later.
    assert GRACE_SECONDS <= 2


FILE = ("/out/a.mp4", 1, 2, 3, 4)
REPORT = VideoReport(file=Path("/out/a.mp4"), verdict=Verdict.OK)
TOLD = Told(REPORT, 1, 2)


def test_memory_is_bounded_and_keeps_what_is_asked_for() -> None:
    memory = ProbeMemory(most_remembered=2)
    request = ProbeRequest(path=Path("/out/a.mp4"))
    identities = [(name, 1, 2, 3, 4) for name in "abc"]
    for identity in identities[:2]:
        assert memory.begin(identity, request) == Turn(probe=True)
        assert memory.end(identity, request, TOLD) == ()
    assert memory.begin(identities[0], request) == Turn(False, TOLD)
    memory.begin(identities[2], request)
    memory.end(identities[2], request, TOLD)
    assert memory.begin(identities[0], request).told == TOLD
    assert memory.begin(identities[1], request) == Turn(probe=True)


def test_a_probe_that_failed_leaves_the_file_to_the_next() -> None:
    memory = ProbeMemory()
    request = ProbeRequest(path=Path("/out/a.mp4"))
    assert memory.begin(FILE, request).probe
    memory.give_up(FILE, request)
    assert memory.begin(FILE, request).probe


def test_many_threads_find_one_turn() -> None:
    memory = ProbeMemory()
    turns: list[Turn] = []
    start = threading.Barrier(8)

    def ask() -> None:
        request = ProbeRequest(path=Path("/out/a.mp4"), source=f"folder-{threading.get_ident()}")
        start.wait(20)
        turns.append(memory.begin(FILE, request))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(turn.probe for turn in turns) == [False] * 7 + [True]


def test_only_the_same_bytes_are_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"film")
    first = identify(path)
    assert identify(path) == first
    os.utime(path, ns=(0, 1))
    assert identify(path) != first
