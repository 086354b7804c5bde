# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Real files that are written, renamed, truncated and deleted while they are followed."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veo_exporter.logs import Follower
from veo_exporter.logs.follower import LINGER_SECONDS, PART_SECONDS


class Folder:
    """A folder of logs and who follows them."""

    def __init__(self, path: Path, patterns: str = "a.log", **limits: Any) -> None:
        self.path = path
        self.now = 0.0
        self.restarts: Counter[str] = Counter()
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.faults: dict[str, str] = {}
        self.places: list[str] = []
        self.spoilt: list[str] = []
        self.follower = Follower([f"{path}/{name}" for name in patterns.split()], **limits)

    def write(self, name: str, text: str | bytes) -> None:
        with (self.path / name).open("ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def look(self, seconds: float = 0.5) -> list[str]:
        self.now += seconds
        gathered = self.follower.look(self.now)
        self.restarts += gathered.restarts
        self.dropped += gathered.dropped
        self.faults |= gathered.faults
        self.spoilt += gathered.spoilt
        self.places += [line.place for line in gathered.lines]
        return [line.text for line in gathered.lines]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """One log with a line that was there before."""
    folder = Folder(tmp_path)
    folder.write("a.log", "old\n")
    assert folder.look() == []
    return folder


def test_what_is_written_is_read_once(folder: Folder) -> None:
    folder.write("a.log", "one\ntw")
    assert folder.look() == ["one"]
    folder.write("a.log", "o\nthree\n")
    assert folder.look() == ["two", "three"]
    assert folder.look() == []
    assert len(set(folder.places)) == 3


def test_a_log_that_appears_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.look() == []
    folder.write("a.log", "one\n")
    assert folder.look() == ["one"]
    assert folder.restarts == {}


def test_a_line_without_an_end_is_taken_after_a_while(folder: Folder) -> None:
    folder.write("a.log", "RENDER_ABORT fra")
    assert folder.look() == []
    assert folder.look(PART_SECONDS) == ["RENDER_ABORT fra"]
    assert folder.look(PART_SECONDS) == []


def test_renamed_and_made_anew(folder: Folder) -> None:
    folder.write("a.log", "one\n")
    (folder.path / "a.log").rename(folder.path / "a.log.1")
    # The writer was not told yet: it goes on in the old file, while the new one stands there.
    folder.write("a.log.1", "two\n")
    folder.write("a.log", "three\n")
    assert folder.look() == ["one", "two", "three"]
    folder.write("a.log.1", "four\nfi")
    folder.write("a.log", "six\n")
    assert folder.look() == ["four", "six"]
    # After that the old one is let go, with what it held.
    assert folder.look(PART_SECONDS) == ["fi"]
    assert folder.look(LINGER_SECONDS) == []
    assert open_logs(folder) == {"a.log"}
    assert folder.restarts == {"replaced": 1}


def open_logs(folder: Folder) -> set[str]:
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    paths = [link.readlink() for link in links]
    return {path.name for path in paths if path.is_relative_to(folder.path)}


def test_a_rotated_log_that_the_pattern_meets_is_not_read_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "a.log*")
    folder.write("a.log", "one\n")
    folder.look()
    (tmp_path / "a.log").rename(tmp_path / "a.log.1")
    folder.write("a.log", "two\n")
    assert folder.look() == ["two"]
    for _ in range(3):
        assert folder.look(LINGER_SECONDS) == []
    folder.write("a.log.1", "three\n")
    assert folder.look() == ["three"]


@pytest.mark.parametrize(
    "content", ["new\n", "four four\n", "a much longer line than before\n" * 9]
)
def test_copied_and_truncated(folder: Folder, content: str) -> None:
    folder.write("a.log", "one\n")
    assert folder.look() == ["one"]
    shutil.copy(folder.path / "a.log", folder.path / "a.log.1")
    os.truncate(folder.path / "a.log", 0)
    # Before the next look the log is as long as it was, or longer: its length tells nothing.
    folder.write("a.log", content)
    assert folder.look() == content.splitlines()
    assert sum(folder.restarts.values()) == 1


def test_truncated_with_the_same_beginning(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    header = "engine started, the same words each time\n" * 100
    folder.write("a.log", header + "one\n")
    folder.look()
    os.truncate(tmp_path / "a.log", 0)
    folder.write("a.log", header + "two two\nthree\n")
    assert folder.look()[-2:] == ["two two", "three"]
    assert folder.restarts == {"rewritten": 1}


def test_a_hole_of_zeros_is_no_line(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with (tmp_path / "a.log").open("wb", buffering=0) as writer:
        writer.write(b"x" * 200_000 + b"\n")
        folder.look()
        os.truncate(tmp_path / "a.log", 0)
        # Not opened for appending, it goes on at its old place.
        writer.write(b"one\n")
    assert folder.look() == ["one"]
    assert folder.dropped == {}


def test_deleted_and_made_anew(folder: Folder) -> None:
    folder.write("a.log", "one\n")
    (folder.path / "a.log").unlink()
    assert folder.look() == ["one"]
    assert folder.look() == []
    folder.write("a.log", "two\n")
    assert folder.look() == ["two"]
    # Gone for good: nothing is held open any more.
    (folder.path / "a.log").unlink()
    folder.look(LINGER_SECONDS)
    folder.look(LINGER_SECONDS)
    assert open_logs(folder) == set()


def test_deleted_and_made_anew_under_the_same_inode(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for number in range(5):
        folder.write("a.log", f"line {number}\n")
        assert folder.look() == ([f"line {number}"] if number else [])
        (tmp_path / "a.log").unlink()
        # Long enough to be let go, so that the inode is given away again.
        folder.look(LINGER_SECONDS)
        folder.look(LINGER_SECONDS)
    assert len(set(folder.places)) == 4


def test_several_files_each_for_itself(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "a.log b*.log")
    for name in ("a.log", "b1.log", "b2.log", "c.log"):
        folder.write(name, "old\n")
    folder.look()
    for name in ("a.log", "b1.log", "b2.log", "c.log"):
        folder.write(name, f"{name}\n")
    assert folder.look() == ["a.log", "b1.log", "b2.log"]


def test_bad_lines_cost_themselves_only(folder: Folder) -> None:
    folder.write("a.log", b"one\n" + b"x" * (1 << 20) + b"\ntwo\0\0\ncaf\xc3\nthree\n")
    lines = folder.look()
    assert [line[:5] for line in lines] == ["one", "xxxxx", "two", "caf�", "three"]
    assert len(lines[1]) == 65_536
    assert folder.dropped == {
        ("log_line", "cut"): 1,
        ("log_line", "nul"): 1,
        ("log_line", "encoding"): 1,
    }


def test_a_line_that_lost_something_is_told_once_for_each_file_and_reason(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "*.log", from_beginning=True, max_line_bytes=256)
    for name in ("a.log", "b.log"):
        folder.write(name, b"x\0y\nx\0y\n" * 3 + b"caf\xc3\n")
    assert folder.look() == [*["x y"] * 6, "caf\ufffd"] * 2
    folder.write("a.log", b"x\0y\ncaf\xc3\n" + b"x" * 300 + b"\n")
    folder.look()
    assert folder.dropped == {
        ("log_line", "nul"): 13,
        ("log_line", "encoding"): 3,
        ("log_line", "cut"): 1,
    }
    told = [sentence.removeprefix(f"{tmp_path}/")[:27] for sentence in folder.spoilt]
    assert sorted(told) == [
        "a.log: a line holds NULs, a",
        "a.log: a line is not in UTF",
        "a.log: a line of more than ",
        "b.log: a line holds NULs, a",
        "b.log: a line is not in UTF",
    ]
    assert "a line of more than 256 bytes was cut" in " ".join(folder.spoilt)


def test_a_look_reads_a_bounded_amount(tmp_path: Path) -> None:
    folder = Folder(tmp_path, max_read_bytes=100, from_beginning=True)
    folder.write("a.log", "123456789\n" * 25)
    assert [len(folder.look()) for _ in range(4)] == [10, 10, 5, 0]


def test_what_is_no_file_is_named_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    folder = Folder(tmp_path, "pipe folder a.log")
    folder.write("a.log", "")
    for _ in range(3):
        folder.look()
    folder.write("a.log", "one\n")
    assert folder.look() == ["one"]
    assert folder.dropped == {("log_file", "not_a_file"): 2}
    assert folder.faults == {
        f"{tmp_path}/{name}": f"{tmp_path}/{name}: {tmp_path}/{name} is no regular file"
        for name in ("pipe", "folder")
    }


def test_more_files_than_allowed_are_named_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "*.log", max_files=2)
    for number in range(4):
        folder.write(f"{number}.log", "")
    folder.look()
    folder.look()
    for number in range(4):
        folder.write(f"{number}.log", f"{number}\n")
    assert folder.look() == ["0", "1"]
    assert folder.dropped == {("log_file", "too_many"): 2}


def test_the_next_run_goes_on_where_this_one_was(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a.log", "old\n")
    folder.look()
    folder.write("a.log", "one\nhal")
    assert folder.look() == ["one"]
    positions = folder.follower.positions()
    folder.follower.close()
    folder.write("a.log", "f\ntwo\n")
    later = Folder(tmp_path, positions=positions)
    assert later.look() == ["half", "two"]
    later.follower.close()
    # Another file under the same name is none that was read before.
    (tmp_path / "a.log").write_text("x\n")
    assert Folder(tmp_path, positions=positions).look() == []


@pytest.fixture
def loop(tmp_path: Path) -> str:
    """A link to itself, in the way of whoever follows it; root, too."""
    (tmp_path / "loop").symlink_to("loop")
    return "loop"


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("loop", "Too many levels of symbolic links"),
        ("loop/a.log", "Too many levels of symbolic links"),
        ("loop/*.log", "Too many levels of symbolic links"),
        ("loop/[ab]/?.log", "Too many levels of symbolic links"),
        ("x" * 256, "File name too long"),
        ("x" * 256 + "/*", "File name too long"),
        ("nul\0.log", "embedded null byte"),
        ("nul\0/*.log", "embedded null byte"),
    ],
)
def test_a_path_that_cannot_be_reached_is_told_once_and_costs_no_other(
    tmp_path: Path, loop: str, pattern: str, sentence: str
) -> None:
    folder = Folder(tmp_path)
    folder.follower = Follower([f"{tmp_path}/{pattern}", f"{tmp_path}/a.log"])
    folder.write("a.log", "old\n")
    for _ in range(3):
        assert folder.look() == []
    folder.write("a.log", "one\n")
    assert folder.look() == ["one"]
    assert folder.dropped == {("log_file", "unreadable"): 1}
    path = f"{tmp_path}/{pattern}"
    assert folder.faults == {path: f"{path}: {sentence}"}


def test_a_file_that_a_pattern_finds_and_nobody_reaches_is_told(tmp_path: Path, loop: str) -> None:
    folder = Folder(tmp_path, "*")
    folder.write("a.log", "")
    folder.look()
    folder.write("a.log", "one\n")
    assert folder.look() == ["one"]
    assert folder.faults == {
        f"{tmp_path}/loop": f"{tmp_path}/loop: Too many levels of symbolic links"
    }


def test_what_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "none.log none/a.log none/*.log a.log/b.log a.log/*")
    folder.write("a.log", "")
    assert folder.look() == []
    assert folder.faults == {}


def test_reading_may_fail_and_is_tried_again(tmp_path: Path) -> None:
    # The memory of a process is a file that opens, and whose first page cannot be read.
    folder = Folder(tmp_path)
    folder.follower = Follower([f"{tmp_path}/a.log", "/proc/self/mem"], from_beginning=True)
    for number in range(3):
        folder.write("a.log", f"{number}\n")
        assert folder.look() == [f"{number}"]
    assert folder.dropped == {("log_file", "unreadable"): 1}
    assert folder.faults == {"/proc/self/mem": "/proc/self/mem: Input/output error"}
    assert folder.restarts == {}


def test_a_look_brings_a_bounded_number_of_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path, max_lines=10, from_beginning=True)
    folder.write("a.log", "".join(f"{number}\n" for number in range(25)))
    looks = [folder.look() for _ in range(4)]
    assert [len(lines) for lines in looks] == [10, 10, 5, 0]
    assert [line for lines in looks for line in lines] == [str(number) for number in range(25)]


def test_empty_lines_are_bounded_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path, max_lines=10, from_beginning=True)
    folder.write("a.log", "\n" * 25 + "end\n")
    # 26 ends of lines: ten, ten and six.
    assert [folder.look() for _ in range(4)] == [[], [], ["end"], []]


def test_what_quiet_files_leave_is_for_the_others(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "*.log", max_lines=10, from_beginning=True)
    for name, lines in (("a", 1), ("b", 20), ("c", 0), ("d", 3)):
        folder.write(f"{name}.log", f"{name}\n" * lines)
    # Two lines for each at first: a takes one, b and d two; of the five left d takes one and b two,
    # and b the last two.
    assert Counter(folder.look()) == {"a": 1, "b": 6, "d": 3}
    assert Counter(folder.look()) == {"b": 10}
    assert Counter(folder.look()) == {"b": 4}


def test_a_renamed_file_is_read_to_its_end_before_the_one_that_took_its_name(
    tmp_path: Path,
) -> None:
    folder = Folder(tmp_path, max_lines=4, from_beginning=True)
    folder.look()
    folder.write("a.log", "1\n")
    assert folder.look() == ["1"]
    folder.write("a.log", "2\n3\n4\n5\n6\n")
    (tmp_path / "a.log").rename(tmp_path / "a.log.1")
    folder.write("a.log", "7\n8\n")
    assert [folder.look() for _ in range(3)] == [["2", "3", "4", "5"], ["6", "7", "8"], []]


def test_a_look_says_whether_there_is_more(tmp_path: Path) -> None:
    follower = Follower([f"{tmp_path}/a.log"], max_lines=2, from_beginning=True)
    (tmp_path / "a.log").write_text("1\n2\n3\n")
    assert [follower.look(now).more for now in range(3)] == [True, False, False]


ACTS = st.lists(
    st.sampled_from(["write", "write", "look", "rename", "delete", "truncate"]), max_size=20
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(acts=ACTS)
def test_every_line_is_read_once_if_looked_at_before_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str]
) -> None:
    folder = Folder(tmp_path_factory.mktemp("logs"), from_beginning=True)
    expected: list[str] = []
    found: list[str] = []
    for number, act in enumerate([*acts, "look"]):
        log = folder.path / "a.log"
        match act:
            case "write":
                expected.append(f"line {number}")
                folder.write("a.log", f"line {number}\n")
            case "look":
                found += folder.look()
            case _ if not log.exists():
                continue
            case "rename":
                found += folder.look()
                log.rename(folder.path / f"a.log.{number}")
            case "delete":
                found += folder.look()
                log.unlink()
            case "truncate":
                found += folder.look()
                os.truncate(log, 0)
    folder.follower.close()
    assert found == expected
