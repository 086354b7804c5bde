# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Names of processes: read once, believed for a while, bounded."""

import os
import shutil
from pathlib import Path

import pytest

from tests.gpu.conftest import FakeClock
from veo_exporter.gpu import process_names
from veo_exporter.gpu.process_names import NameLimits, ProcessNames


@pytest.fixture
def dropped() -> list[str]:
    return []


@pytest.fixture
def names(tmp_path: Path, clock: FakeClock, dropped: list[str]) -> ProcessNames:
    return ProcessNames(NameLimits(proc_root=tmp_path, per_node=3), dropped.append, clock)


def start(root: Path, pid: int, name: bytes) -> None:
    (root / str(pid)).mkdir()
    (root / str(pid) / "comm").write_bytes(name + b"\n")


def test_our_own_name(clock: FakeClock, dropped: list[str]) -> None:
    names = ProcessNames(NameLimits(), dropped.append, clock)
    own = Path("/proc/self/comm").read_text().strip()
    assert names.names_of([os.getpid()]) == {os.getpid(): own}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (b"python3", "python3"),
        (b"tmux: server", "tmux: server"),
        (b"", "unknown"),
        (b"a\tb\x1bc", "a?b?c"),
        (b"\xff\xfe", "\N{REPLACEMENT CHARACTER}" * 2),
        (b"x" * 500, "x" * 64),
    ],
)
def test_a_process_may_call_itself_anything(
    names: ProcessNames, tmp_path: Path, written: bytes, name: str
) -> None:
    start(tmp_path, 10, written)
    assert names.names_of([10]) == {10: name}


def test_what_is_not_there_is_unknown(names: ProcessNames, tmp_path: Path) -> None:
    (tmp_path / "11").mkdir()
    assert names.names_of([10, 11]) == {10: "unknown", 11: "unknown"}


def test_a_name_is_read_once_and_again_after_a_while(
    names: ProcessNames, tmp_path: Path, clock: FakeClock
) -> None:
    start(tmp_path, 10, b"python3")
    names.names_of([10])
    (tmp_path / "10/comm").write_text("render\n")
    clock.now += 59
    assert names.names_of([10]) == {10: "python3"}
    clock.now += 1
    assert names.names_of([10]) == {10: "render"}


def test_a_pid_that_is_used_again_is_another_process(names: ProcessNames, tmp_path: Path) -> None:
    start(tmp_path, 10, b"python3")
    names.names_of([10])
    before = (tmp_path / "10").stat()
    while (
        not (tmp_path / "10").exists() or (tmp_path / "10").stat().st_ctime_ns == before.st_ctime_ns
    ):
        # Times of files are as coarse as the kernel's tick.
        shutil.rmtree(tmp_path / "10")
        start(tmp_path, 10, b"render")
    assert names.names_of([10]) == {10: "render"}


def test_look_ups_of_one_answer_are_bounded(names: ProcessNames, tmp_path: Path) -> None:
    count = process_names.MAX_LOOK_UPS + 10
    for pid in range(1, count + 1):
        start(tmp_path, pid, b"worker")
    pids = range(1, count + 1)
    first = list(names.names_of(pids).values())
    assert (first.count("worker"), first.count("unknown")) == (process_names.MAX_LOOK_UPS, 10)
    assert set(names.names_of(pids).values()) == {"worker"}


def test_names_of_a_node_are_bounded(
    names: ProcessNames, clock: FakeClock, dropped: list[str]
) -> None:
    assert [names.admit(name) for name in ("a", "b", "c")] == ["a", "b", "c"]
    assert [names.admit(name) for name in ("d", "a", "unknown", "d", "e")] == [
        "other",
        "a",
        "unknown",
        "other",
        "other",
    ]
    # Once for each name that found no room.
    assert dropped == ["too_many_names"] * 2
    clock.now += 599
    names.admit("b")
    assert names.admit("d") == "other"
    clock.now += 1
    # a and c were not used for ten minutes; the one that was not for longest makes room.
    assert [names.admit(name) for name in ("d", "b", "e")] == ["d", "b", "e"]
    assert names.admit("c") == "other"


def test_no_names_of_a_node(tmp_path: Path, clock: FakeClock, dropped: list[str]) -> None:
    names = ProcessNames(NameLimits(proc_root=tmp_path, per_node=0), dropped.append, clock)
    assert names.admit("a") == "other"
