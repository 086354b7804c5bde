# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The kernel log read from every kind of place, by the real system calls."""

import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from veo_exporter.logs import kernel_sources
from veo_exporter.logs.kernel import KernelLog, KernelNews
from veo_exporter.logs.kernel_messages import OomKill, OomScope, XidMessage
from veo_exporter.logs.kernel_places import KMSG, Opening, Places, open_kernel_log
from veo_exporter.logs.kernel_sources import DeviceSource, PipeSource, Taken, take_records

PATIENCE_SECONDS = 60.0
XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
KILL = "Memory cgroup out of memory: Killed process 7 (a) total-vm:1kB, anon-rss:1kB"


class Clock:
    """The wall clock is a million seconds ahead."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic_seconds(self) -> float:
        return self.now

    def unix_seconds(self) -> float:
        return self.now + 1e6


def places(folder: Path, path: Path | None = None) -> Places:
    """A machine whose folders are all in one."""
    return Places(
        path=path,
        kmsg=folder / "kmsg",
        journals=(folder / "journal",),
        syslog_files=(folder / "kern.log", folder / "messages"),
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[[Places], KernelLog]


@pytest.fixture
def make(clock: Clock) -> Iterator[Make]:
    made: list[KernelLog] = []

    def make_log(where: Places) -> KernelLog:
        log = KernelLog(
            lambda: open_kernel_log(where), clock, wanted=True, boot_seconds=lambda: 100.0
        )
        made.append(log)
        return log

    yield make_log
    for log in made:
        log.close()


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(line + "\n" for line in lines)


def codes(news: KernelNews) -> list[int]:
    return [told.message.code for told in news.told if isinstance(told.message, XidMessage)]


def test_a_file_is_read_from_its_end_on(tmp_path: Path, make: Make, clock: Clock) -> None:
    path = tmp_path / "kern.log"
    append(path, f"Nov 30 20:27:44 n1 kernel: {XID}")
    log = make(places(tmp_path))
    assert log.look().told == []
    assert log.up
    append(path, f"Nov 30 20:27:45 n1 kernel: [  9.0] {XID}", "Nov 30 20:27:45 n1 kernel: usb 1-1")
    append(path, f"Nov 30 20:27:46 n1 kernel: {KILL}", f"Nov 30 20:27:46 n1 app: {XID}")
    news = log.look()
    assert [type(told.message) for told in news.told] == [XidMessage, OomKill]
    assert [told.at_unix_seconds for told in news.told] == [clock.unix_seconds()] * 2
    assert news.lines == {"xid": 1, "oom_kill": 1, "other": 2}
    assert not news.dropped


def test_a_file_is_followed_across_its_rotation(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "messages"
    append(path, "old")
    log = make(places(tmp_path))
    log.look()
    path.rename(tmp_path / "messages.1")
    append(path, XID)
    assert codes(log.look()) == [79]


def test_a_line_that_is_too_long_is_cut_and_counted(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "kern.log"
    path.touch()
    log = make(places(tmp_path))
    log.look()
    append(path, XID + "x" * kernel_sources.MAX_LINE_BYTES)
    news = log.look()
    assert codes(news) == [79]
    assert news.dropped == {("kernel_log_line", "cut"): 1}


def test_a_fifo_gives_lines_as_they_come_and_outlives_its_writers(
    tmp_path: Path, make: Make
) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    log = make(places(tmp_path, path))
    assert log.look().told == [], "nobody writes yet"
    for _ in range(2):
        with path.open("w") as writer:
            writer.write(f"4,7,99000000,-;{XID}\n4,8,99000000,-;NVRM: Xid (PCI:0000:3b")
            writer.flush()
            assert codes(log.look()) == [79]
            writer.write(":00): 48, x\n")
        assert codes(log.look()) == [48]
        assert log.up


def test_the_kernels_own_time_is_told_if_it_can_be_true(
    tmp_path: Path, make: Make, clock: Clock
) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    log = make(places(tmp_path, path))
    log.look()
    with path.open("w") as writer:
        # The kernel's clock stands at 100 s: a second ago, in the future, and long ago.
        for number, microseconds in enumerate((99_000_000, 101_000_000, 1_000_000)):
            writer.write(f"4,{number},{microseconds},-;{XID}\n")
        writer.flush()
        told = log.look().told
    now = clock.unix_seconds()
    assert [one.at_unix_seconds for one in told] == [now - 1, now, now]


def test_a_kill_knows_its_control_group_from_the_line_before(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "kern.log"
    path.touch()
    log = make(places(tmp_path))
    log.look()
    append(
        path,
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
        "oom_memcg=/pod,task_memcg=/pod/c,task=a,pid=7,uid=0",
        KILL,
    )
    [told] = log.look().told
    assert told.message == OomKill(
        pid=7, process="a", scope=OomScope.MEMORY_CGROUP, cgroup="/pod/c"
    )


def test_without_any_place_one_line_says_so_and_it_is_tried_again(
    tmp_path: Path, make: Make, clock: Clock
) -> None:
    log = make(places(tmp_path))
    with capture_logs() as logs:
        for _ in range(5):
            assert log.look() == KernelNews()
            clock.now += 31
    [line] = logs
    assert line["event"] == "the kernel log is not read"
    assert line["fault"] == f"{tmp_path}/kmsg: No such file or directory"
    assert "CAP_SYSLOG" in line["remedy"]
    assert not log.up
    assert not log.was_up
    (tmp_path / "kern.log").touch()
    log.look()
    assert log.up


def test_it_is_not_tried_at_each_look(clock: Clock) -> None:
    attempts = 0

    def open_log() -> Opening:
        nonlocal attempts
        attempts += 1
        return Opening(None, "no")

    log = KernelLog(open_log, clock, wanted=False)
    assert not log.quick
    for _ in range(60):
        log.look()
        clock.now += 0.5
    # 30 seconds: at the beginning, and once more only at their end.
    assert attempts == 1
    assert not log.quick
    log.look()
    assert attempts == 2


def test_a_device_that_only_stands_in_its_place_is_not_the_log(tmp_path: Path) -> None:
    opening = open_kernel_log(places(tmp_path, Path("/dev/null")))
    assert opening.source is None
    assert opening.fault == "/dev/null: a device, but not the kernel's log"
    assert open_kernel_log(places(tmp_path, tmp_path)).fault == (
        f"{tmp_path}: neither a device nor a pipe nor a file"
    )


def test_the_next_place_is_taken_where_the_first_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "kmsg").symlink_to("/dev/null")
    (tmp_path / "messages").touch()
    source = open_kernel_log(places(tmp_path)).source
    assert source is not None
    assert source.name == f"{tmp_path}/messages"
    source.close()


def test_the_real_device_is_read_from_its_end_or_says_why_not() -> None:
    opening = open_kernel_log(Places(path=KMSG))
    if opening.source is None:
        # As an unprivileged user, or in a container without it.
        assert opening.fault.startswith("/dev/kmsg: ")
        return
    assert isinstance(opening.source, DeviceSource)
    assert opening.source.take(0.0).ended == ""
    opening.source.close()


class Numbers:
    """Knows the last record's number, as the device does."""

    lost_before = DeviceSource.lost_before

    def __init__(self) -> None:
        self._sequence: int | None = None


def take(*answers: bytes | OSError) -> Taken:
    """What is taken of a device that answers so, and then has no more."""
    script = iter([*answers, BlockingIOError()])

    def read() -> bytes:
        answer = next(script)
        if isinstance(answer, OSError):
            raise answer
        return answer

    return take_records(read, Numbers())


OVERRUN = OSError(errno.EPIPE, "Broken pipe")


def test_what_the_kernel_overwrote_is_counted_by_the_records_numbers() -> None:
    taken = take(b"4,10,1,-;a\n", OVERRUN, b"4,15,1,-;b\n", b"4,16,1,-;c\n")
    assert [record.text for record in taken.records] == ["a", "b", "c"]
    # 11, 12, 13 and 14.
    assert taken.overrun == 4
    assert taken.ended == ""


def test_an_overrun_whose_size_is_not_known_is_one() -> None:
    assert take(OVERRUN, b"4,15,1,-;b\n").overrun == 1
    assert take(OVERRUN).overrun == 1


def test_records_of_programs_are_lines_but_no_messages_and_no_gap() -> None:
    taken = take(b"4,10,1,-;a\n", b"12,11,1,-;" + XID.encode() + b"\n", OVERRUN, b"4,12,1,-;b\n")
    assert [record.text for record in taken.records] == ["a", "b"]
    assert (taken.lines, taken.overrun) == (3, 1)


def test_a_device_that_fails_ends_with_its_reason() -> None:
    assert take(OSError(errno.EIO, "Input/output error")).ended == "Input/output error"
    assert take(b"").ended == "the device ends"


def test_one_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_sources, "MAX_RECORDS", 3)
    assert take(*[b"4,1,1,-;a\n"] * 5).lines == 3


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with journald, whose program says what a test writes into a FIFO, and its arguments."""
    (tmp_path / "journal/0123").mkdir(parents=True)
    (tmp_path / "journal/0123/system.journal").touch()
    os.mkfifo(tmp_path / "said")
    program = tmp_path / "bin/journalctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\nexec cat {tmp_path}/said\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.005)


def test_journald_is_read_through_its_program(journal: Path, make: Make, clock: Clock) -> None:
    log = make(places(journal))
    log.look()
    found: list[int] = []
    with capture_logs() as logs:
        with (journal / "said").open("w") as writer:
            writer.write('{"_TRANSPORT":"kernel","MESSAGE":"' + XID + '"}\n')
            writer.flush()

            def has_told() -> bool:
                found.extend(codes(log.look()))
                return bool(found)

            until(has_told)
        assert found == [79]
        arguments = (journal / "asked").read_text().split()
        assert arguments == [
            "--dmesg",
            "--follow",
            "--lines=0",
            "--output=json",
            "--no-pager",
            "--quiet",
        ]

        def has_ended() -> bool:
            log.look()
            return not log.up

        until(has_ended)
    assert [(line["place"], line["fault"]) for line in logs] == [("journald", "the pipe ends")]
    # And begun again, half a minute later.
    clock.now += 31
    log.look()
    assert log.up


def test_a_journal_that_may_not_be_read_is_named(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = os.access
    # Root may read everything, and tests may run as root.
    monkeypatch.setattr(
        os, "access", lambda path, mode: not str(path).endswith(".journal") and may(path, mode)
    )
    opening = open_kernel_log(places(journal))
    assert opening.source is None
    assert opening.fault.endswith("; journald: its files may not be read")


def test_a_pipe_that_fails_ends_with_its_reason() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    pipe = PipeSource(reading, "pipe", ends=True)
    assert pipe.take(0.0).ended == "the pipe ends"
    pipe.close()
    assert pipe.take(0.0).ended == "Bad file descriptor"
