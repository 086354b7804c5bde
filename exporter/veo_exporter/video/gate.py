# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which files may be opened at all: regular ones, in places that were named beforehand."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from veo_exporter.video.definitions import ErrorKind, Failure


class Refused(Exception):
    """Carries why the file gets no figures."""

    def __init__(
        self, kind: ErrorKind, message: str, *, crashed: bool = False, cut_off: bool = False
    ) -> None:
        super().__init__(message)
        self.failure = Failure(kind, message, crashed, cut_off)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file held fast: whoever renames or replaces its name changes nothing for its holder."""

    path: Path
    descriptor: int
    size_bytes: int
    stamp: tuple[int, int]

    def changed(self) -> bool:
        """Whether it was written to since it was let in."""
        return _stamp(os.fstat(self.descriptor)) != self.stamp


Identity = tuple[str, int, int, int, int]
"""Path without links, device, inode, size and time of the last change: another film has another one."""


def identify(path: Path) -> Identity | None:
    """What tells a file from every other; None if nobody can say."""
    try:
        real = os.path.realpath(path)
        status = os.stat(real)  # noqa: PTH116, realpath gives a text
    except (OSError, ValueError):
        return None
    return real, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def admit(path: Path, roots: tuple[Path, ...] | None) -> Iterator[Entry]:
    """Hold a file fast, if it may be probed. No roots (None) means anywhere. Raises Refused."""
    if roots is not None and not path.is_absolute():
        raise Refused(ErrorKind.FORBIDDEN, "wants an absolute path")
    try:
        # A FIFO or a device is not opened by this, only looked at.
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        looping = isinstance(error, OSError) and error.errno == errno.ELOOP
        kind = ErrorKind.FORBIDDEN if looping else ErrorKind.UNREADABLE
        reason = error.strerror if isinstance(error, OSError) else "its name holds a NUL"
        raise Refused(kind, f"cannot be opened: {reason}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(
                ErrorKind.FORBIDDEN, f"is a {_kind_of(status.st_mode)}, not a regular file"
            )
        if roots is not None and not _inside(descriptor, roots):
            raise Refused(
                ErrorKind.FORBIDDEN,
                "lies outside the folders that may be read: name its folder in video.roots",
            )
        if not status.st_size:
            raise Refused(ErrorKind.EMPTY, "has no bytes")
        yield Entry(path, descriptor, status.st_size, _stamp(status))
    finally:
        os.close(descriptor)


def _inside(descriptor: int, roots: tuple[Path, ...]) -> bool:
    # The kernel's own name of what was opened: no link is left in it.
    real = Path(f"/proc/self/fd/{descriptor}").readlink()
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _kind_of(mode: int) -> str:
    for test, name in (
        (stat.S_ISDIR, "directory"),
        (stat.S_ISFIFO, "FIFO"),
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISBLK, "device"),
        (stat.S_ISCHR, "device"),
    ):
        if test(mode):
            return name
    return "special file"
