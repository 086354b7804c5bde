# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where the kernel's log can be read: its device, a pipe, journald, or syslog's files.

Nothing here waits: what is there is taken, up to a bound.
"""

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from veo_exporter.logs.follower import Follower
from veo_exporter.logs.kernel_lines import KernelRecord, read_kernel_line, read_kmsg
from veo_exporter.logs.lines import Blemish, LineSplitter

# The kernel gives one record a read, and EINVAL if the buffer does not hold it.
RECORD_BYTES: Final = 16_384
MAX_LINE_BYTES: Final = 16_384
MAX_RECORDS: Final = 5_000
MAX_READ_BYTES: Final = 1 << 20
CHUNK_BYTES: Final = 1 << 16
END_PATIENCE_SECONDS: Final = 0.2
_KMSG_DEVICE: Final = os.makedev(1, 11)


@dataclass(slots=True)
class Taken:
    """What one look brought."""

    records: list[KernelRecord] = field(default_factory=list)
    lines: int = 0
    overrun: int = 0
    """Records that the kernel overwrote before they were read."""
    cut: int = 0
    ended: str = ""
    """Why this source gives no more, if so."""


class KernelSource(Protocol):
    """One place where the log is read."""

    name: str
    quick: bool
    """Whether `take` touches no disk."""

    def take(self, now_monotonic_seconds: float) -> Taken:
        """What is new."""
        ...

    def close(self) -> None: ...


class NotTheKernelLog(OSError):
    """A device that only stands in its place, as /dev/null does in some containers."""


class DeviceSource:
    """/dev/kmsg. Begins at its end, so that what happened before is not told again."""

    quick = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        self._sequence: int | None = None
        try:
            if os.fstat(self._descriptor).st_rdev != _KMSG_DEVICE:
                raise NotTheKernelLog(errno.ENXIO, "a device, but not the kernel's log")
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            os.close(self._descriptor)
            raise

    def take(self, now_monotonic_seconds: float) -> Taken:
        return take_records(lambda: os.read(self._descriptor, RECORD_BYTES), self)

    def lost_before(self, sequence: int | None) -> int:
        """How many records are missing between the last one and this one."""
        before, self._sequence = self._sequence, sequence
        return 0 if before is None or sequence is None else max(0, sequence - before - 1)

    def close(self) -> None:
        os.close(self._descriptor)


class Counting(Protocol):
    """Knows the last record's number."""

    def lost_before(self, sequence: int | None) -> int: ...


def take_records(read: Callable[[], bytes], counting: Counting) -> Taken:
    """Read records until there are none, or too many for one look."""
    taken = Taken()
    overran = False
    while taken.lines < MAX_RECORDS:
        try:
            raw = read()
        except BlockingIOError:
            break
        except OSError as error:
            if error.errno == errno.EPIPE:
                # What we would have read next is gone; the next read begins at what is left.
                overran = True
                continue
            taken.ended = error.strerror or str(error)
            break
        if not raw:
            taken.ended = "the device ends"
            break
        taken.lines += 1
        record = read_kmsg(raw)
        gap = counting.lost_before(_sequence_of(raw))
        if overran:
            taken.overrun += max(gap, 1)
            overran = False
        if record is not None:
            taken.records.append(record)
    taken.overrun += overran
    return taken


def _sequence_of(raw: bytes) -> int | None:
    # Also of records that are not the kernel's own: the numbers run through all of them.
    written = raw.split(b",", 2)[1:2]
    return int(written[0]) if written and written[0].isdigit() and len(written[0]) <= 20 else None


class PipeSource:
    """A pipe whose lines come as they are written: a FIFO, or what journalctl says."""

    quick = True

    def __init__(self, descriptor: int, name: str, *, ends: bool) -> None:
        self.name = name
        self._descriptor = descriptor
        self._ends = ends
        self._splitter = LineSplitter(MAX_LINE_BYTES)

    @classmethod
    def of_fifo(cls, path: Path) -> "PipeSource":
        """Raises OSError. A FIFO without a writer is one that nobody writes to yet."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        return cls(os.open(path, flags), str(path), ends=False)

    def take(self, now_monotonic_seconds: float) -> Taken:
        taken = Taken()
        cut, total = self._splitter.blemishes[Blemish.CUT], 0
        while total < MAX_READ_BYTES:
            try:
                chunk = os.read(self._descriptor, CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                taken.ended = error.strerror or str(error)
                break
            if not chunk:
                taken.ended = "the pipe ends" if self._ends else ""
                break
            total += len(chunk)
            _add_lines(taken, self._splitter.feed(chunk))
        taken.cut = self._splitter.blemishes[Blemish.CUT] - cut
        return taken

    def close(self) -> None:
        os.close(self._descriptor)


class JournalSource:
    """journald, by its own program: its files are its own affair."""

    quick = True

    def __init__(self, program: str) -> None:
        self.name = "journald"
        self._process = subprocess.Popen(  # noqa: S603, found on PATH, and the arguments are fixed
            [program, "--dmesg", "--follow", "--lines=0", "--output=json", "--no-pager", "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C is for us; it is ended when we end.
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101, a pipe was asked for
        descriptor = os.dup(self._process.stdout.fileno())
        self._process.stdout.close()
        os.set_blocking(descriptor, False)
        self._pipe = PipeSource(descriptor, self.name, ends=True)

    def take(self, now_monotonic_seconds: float) -> Taken:
        return self._pipe.take(now_monotonic_seconds)

    def close(self) -> None:
        self._pipe.close()
        self._process.terminate()
        try:
            self._process.wait(END_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class FileSource:
    """A file that syslog writes, followed across its rotation."""

    quick = False

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        # Now and not at the first look: it says whether we may, and nothing written since is missed.
        with path.open("rb"):
            pass
        self._follower = Follower(
            [self.name], max_files=1, max_line_bytes=MAX_LINE_BYTES, max_read_bytes=MAX_READ_BYTES
        )
        self._follower.look(0.0)

    def take(self, now_monotonic_seconds: float) -> Taken:
        gathered = self._follower.look(now_monotonic_seconds)
        taken = Taken(cut=gathered.dropped["log_line", "cut"])
        _add_lines(taken, [line.text for line in gathered.lines])
        return taken

    def close(self) -> None:
        self._follower.close()


def _add_lines(taken: Taken, lines: list[str]) -> None:
    taken.lines += len(lines)
    taken.records += [record for line in lines if (record := read_kernel_line(line)) is not None]


def open_path(path: Path) -> KernelSource:
    """The source that a path is. Raises OSError."""
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode):
        return DeviceSource(path)
    if stat.S_ISFIFO(mode):
        return PipeSource.of_fifo(path)
    if stat.S_ISREG(mode):
        return FileSource(path)
    raise NotTheKernelLog(errno.EINVAL, "neither a device nor a pipe nor a file")
