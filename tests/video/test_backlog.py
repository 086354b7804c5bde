# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What waits to be probed: events first come first served, what folders show a second later."""

from pathlib import Path

from veo_exporter.video.backlog import Backlog, WaitingFiles
from veo_exporter.video.request import ProbeRequest


def named(name: str, engine: str = "") -> ProbeRequest:
    return ProbeRequest(path=Path("/out") / name, engine=engine)


def shown(name: str) -> ProbeRequest:
    return ProbeRequest(path=Path("/out") / name, source="folder")


def test_what_events_name_goes_in_turn_and_at_once() -> None:
    waiting = WaitingFiles(10)
    assert all(waiting.add(named(name), 100) for name in "abc")
    taken = [waiting.take(100) for _ in range(4)]
    assert taken == [named("a"), named("b"), named("c"), None]
    assert waiting.seconds_to_wait(100) is None


def test_what_a_folder_shows_waits_a_second_for_its_event() -> None:
    waiting = WaitingFiles(10)
    assert waiting.add(shown("a"), 100)
    assert waiting.take(100.75) is None
    assert waiting.seconds_to_wait(100.75) == 0.25
    # Nobody else waits for it.
    assert waiting.add(named("b"), 100.75)
    assert waiting.take(100.75) == named("b")
    assert waiting.take(101) == shown("a")


def test_an_event_takes_over_what_a_folder_showed() -> None:
    waiting = WaitingFiles(1)
    assert waiting.add(shown("a"), 100)
    # It adds nothing, so a full backlog takes it.
    assert waiting.add(named("a", "veo-engine"), 100.5)
    assert waiting.backlog(101) == Backlog(1, 1)
    assert waiting.take(100.5) == named("a", "veo-engine")
    assert waiting.take(200) is None


def test_a_folder_adds_nothing_to_a_path_that_waits() -> None:
    waiting = WaitingFiles(10)
    assert waiting.add(named("a"), 100)
    assert waiting.add(shown("a"), 100)
    assert waiting.add(shown("b"), 100)
    assert waiting.add(shown("b"), 100)
    assert [waiting.take(200) for _ in range(3)] == [named("a"), shown("b"), None]
    # Neither waits any more.
    assert waiting.add(shown("a"), 200)
    assert waiting.take(201) == shown("a")


def test_each_event_keeps_its_own_place() -> None:
    waiting = WaitingFiles(10)
    assert waiting.add(named("a", "one"), 100)
    assert waiting.add(named("a", "two"), 100)
    assert waiting.take(100) == named("a", "one")
    assert waiting.add(shown("a"), 100)
    assert waiting.take(200) == named("a", "two")
    assert waiting.take(200) is None


def test_it_is_bounded_and_tells_its_age() -> None:
    waiting = WaitingFiles(2)
    assert waiting.backlog(100) == Backlog(0, 0)
    assert waiting.add(named("a"), 100)
    assert waiting.add(shown("b"), 103)
    assert not waiting.add(named("c"), 104)
    assert not waiting.add(shown("c"), 104)
    assert waiting.backlog(105) == Backlog(2, 5)
    waiting.clear()
    assert waiting.backlog(105) == Backlog(0, 0)
    assert waiting.add(shown("b"), 105)
