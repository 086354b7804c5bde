# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Real folders."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog.testing

from tests.daemon import wait_until
from veo_exporter.clock import Clock, SystemClock
from veo_exporter.video.request import ProbeRequest
from veo_exporter.video.watch import Folder, FolderWatch


class HandClock:
    """Goes when it is told to, and counts how often it was looked at."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.looks = 0

    def monotonic_seconds(self) -> float:
        self.looks += 1
        return self.now

    def unix_seconds(self) -> float:
        return self.monotonic_seconds() + 1e9


@contextmanager
def watched(
    path: Path, quiet_seconds: float = 0.3, clock: Clock | None = None, **more: object
) -> Iterator[tuple[list[str], FolderWatch]]:
    """Names of the files that were handed on."""
    told: list[str] = []

    def submit(request: ProbeRequest) -> None:
        assert request.source == "out"
        told.append(str(request.path.relative_to(path)))

    folder = Folder(name="out", path=path, quiet_seconds=quiet_seconds, **more)  # type: ignore[arg-type]
    watch = FolderWatch(folder, submit, clock or SystemClock())
    watch.start()
    try:
        if path.exists():
            assert watch.watching.wait(20)
        yield told, watch
    finally:
        assert watch.stop(10)


def test_a_file_renamed_into_place_does_not_wait(tmp_path: Path) -> None:
    with watched(tmp_path, quiet_seconds=3600) as (told, watch):
        draft = tmp_path / ".film.mp4.partial"
        draft.write_bytes(b"film")
        wait_until(lambda: draft in watch.unsettled)
        draft.rename(tmp_path / "film.mp4")
        wait_until(lambda: told == ["film.mp4"])


def test_a_file_that_grows_is_told_once_it_is_quiet(tmp_path: Path) -> None:
    clock = HandClock()

    def wait_for_a_look() -> None:
        # The second one from now on begins and ends after this.
        looks = clock.looks
        wait_until(lambda: clock.looks > looks + 1)

    with watched(tmp_path, quiet_seconds=1, clock=clock) as (told, watch):
        with (tmp_path / "film.mp4").open("wb") as film:
            # Twice as long as it would have to be quiet.
            for _ in range(5):
                film.write(b"frame")
                film.flush()
                wait_for_a_look()
                assert watch.unsettled == (tmp_path / "film.mp4",)
                clock.now += 0.5
                assert told == []
        wait_for_a_look()
        assert told == []
        clock.now += 0.5
        wait_until(lambda: told == ["film.mp4"])


def test_what_is_there_at_the_start_is_old_and_other_files_are_no_films(tmp_path: Path) -> None:
    (tmp_path / "old.mp4").write_bytes(b"film")
    with watched(tmp_path) as (told, _):
        (tmp_path / "log.txt").write_bytes(b"text")
        (tmp_path / "link.mp4").symlink_to("old.mp4")
        (tmp_path / "film.MP4").write_bytes(b"film")
        wait_until(lambda: told == ["film.MP4"])


def test_folders_that_appear_are_looked_into(tmp_path: Path) -> None:
    origin = tmp_path / "elsewhere"
    (origin / "deep").mkdir(parents=True)
    (origin / "deep/film.mp4").write_bytes(b"film")
    (tmp_path / "out").mkdir()
    with watched(tmp_path / "out") as (told, _):
        origin.rename(tmp_path / "out/job-1")
        wait_until(lambda: told == ["job-1/deep/film.mp4"])
        (tmp_path / "out/job-1/deep/second.mp4").write_bytes(b"film")
        wait_until(lambda: told[1:] == ["job-1/deep/second.mp4"])


def test_a_folder_may_come_later_and_be_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with watched(out) as (told, _):
        out.mkdir()
        (out / "first.mp4").write_bytes(b"film")
        wait_until(lambda: told == ["first.mp4"])
        out.rename(tmp_path / "former")
        out.mkdir()
        (out / "second.mp4").write_bytes(b"film")
        wait_until(lambda: told[1:] == ["second.mp4"])


def test_a_name_that_is_no_utf8_is_taken_without_a_word(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logged, watched(tmp_path) as (told, _):
        odd = os.fsdecode(b"fil\xff\xe9m.mp4")
        (tmp_path / odd).write_bytes(b"film")
        wait_until(lambda: told == [odd])
        (tmp_path / "film.mp4").write_bytes(b"film")
        wait_until(lambda: told == [odd, "film.mp4"])
    assert logged == []


def test_a_request_carries_what_is_known_of_the_folder() -> None:
    folder = Folder(name="out", path=Path("/out"), engine="veo", variant="b", profile="1080p24-6s")
    request = folder.request(Path("/out/film.mp4"))
    assert (request.source, request.engine, request.variant, request.profile) == (
        "out",
        "veo",
        "b",
        "1080p24-6s",
    )
