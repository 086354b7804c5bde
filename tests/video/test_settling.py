# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""When a file is finished, told without files."""

from pathlib import Path

from veo_exporter.video.settling import MOST_REMEMBERED, Look, Settling

FILM = Path("/out/film.mp4")
DRAFT = Path("/out/.film.mp4.partial")


def look(inode: int = 1, size: int = 100, at: int = 0) -> Look:
    return Look((8, inode), size, at)


def settling() -> Settling:
    return Settling(2.0, lambda path: path.suffix == ".mp4")


def test_a_file_is_finished_when_it_is_quiet() -> None:
    files = settling()
    files.change({FILM: look(size=1)}, 0)
    assert files.settle(1.9) == []
    files.change({FILM: look(size=2)}, 1.9)
    assert files.settle(3.8) == []
    assert files.settle(3.9) == [FILM]
    assert files.settle(100) == []


def test_looking_again_is_no_change() -> None:
    files = settling()
    files.change({FILM: look()}, 0)
    files.change({FILM: look()}, 1.9)
    assert files.settle(2) == [FILM]


def test_a_file_renamed_into_place_is_finished_at_once() -> None:
    files = settling()
    files.change({DRAFT: look(size=50)}, 0)
    files.change({DRAFT: None, FILM: look(size=100)}, 0.1)
    assert files.settle(0.1) == [FILM]


def test_a_draft_that_had_gone_quiet_counts_as_well() -> None:
    files = settling()
    files.change({DRAFT: look()}, 0)
    assert files.settle(5) == []
    files.change({DRAFT: None}, 60)
    files.change({FILM: look()}, 60.5)
    assert files.settle(60.5) == [FILM]


def test_an_inode_used_again_is_no_rename() -> None:
    files = settling()
    files.change({DRAFT: look(inode=7, size=1000)}, 0)
    files.change({DRAFT: None, FILM: look(inode=7, size=10)}, 0.1)
    assert files.settle(0.1) == []
    files.change({FILM: look(inode=7, size=5000)}, 0.2)
    assert files.settle(2.1) == []
    assert files.settle(2.2) == [FILM]


def test_a_film_that_was_told_is_not_told_again_under_another_name() -> None:
    files = settling()
    files.change({FILM: look()}, 0)
    assert files.settle(2) == [FILM]
    files.change({FILM: None, Path("/out/archived.mp4"): look()}, 60)
    assert files.settle(70) == []


def test_a_film_written_anew_is_told_again() -> None:
    files = settling()
    files.change({FILM: look()}, 0)
    assert files.settle(2) == [FILM]
    files.change({FILM: look(inode=2)}, 60)
    assert files.settle(62) == [FILM]


def test_what_was_there_before_is_not_told() -> None:
    files = settling()
    files.remember(FILM, look())
    files.change({FILM: look()}, 0)
    assert files.settle(10) == []


def test_other_files_and_those_that_go_are_not_told() -> None:
    files = settling()
    files.change({Path("/out/log.txt"): look(inode=3), FILM: look()}, 0)
    files.change({FILM: None}, 1)
    assert files.settle(10) == []


def test_memory_is_bounded() -> None:
    files = settling()
    for number in range(MOST_REMEMBERED + 5):
        files.change({Path(f"/out/{number}.mp4"): look(inode=number)}, 0)
        if number == 4:
            break
    many = {Path(f"/out/{number}.mp4"): look(inode=number) for number in range(MOST_REMEMBERED + 5)}
    files.change(many, 0)
    assert len(files.waiting) == MOST_REMEMBERED
    assert len(files.settle(10)) == MOST_REMEMBERED
