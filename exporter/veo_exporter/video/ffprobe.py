# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""ffprobe as a child that is trusted with nothing: limited, watched, and ended when it is late."""

import math
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from veo_exporter.errors import VeoError
from veo_exporter.video.definitions import ErrorKind
from veo_exporter.video.gate import Entry, Refused
from veo_exporter.video.packets import ENTRIES

LEAST_PATIENCE_SECONDS: Final = 5.0
SLOWEST_BYTES_PER_SECOND: Final = 20e6
"""A disk that is slower than this is not waited for."""
REAP_SECONDS: Final = 1.0
MOST_ERROR_BYTES: Final = 16 * 1024
OPEN_FILES: Final = 64
_PIECE_BYTES: Final = 64 * 1024
_GATHER_SECONDS: Final = 0.005
"""ffprobe writes each line by itself; waking for each would cost half as much as its own work."""
MOST_TOLD_CHARS: Final = 200
"""Of a complaint, in the message of a refusal."""
_ADDRESS: Final = re.compile(r" @ 0x[0-9a-f]+")
_WRITER: Final = re.compile(r"^\[[^\]]*\] ")
_CUT_OFF: Final = ("partial file", "ended prematurely", "truncat", "moov atom not found")
"""An MP4 that was not rewritten for streaming has its index, the moov atom, at its end."""


class MissingProgram(VeoError):
    """A program that probing needs is not there; the message says how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may use."""

    deadline_seconds: float = 60.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 64 << 20
    niceness: int = 10
    formats: tuple[str, ...] = (
        "mov",
        "mp4",
        "m4a",
        "3gp",
        "3g2",
        "mj2",
        "matroska",
        "webm",
        "mpegts",
    )

    def patience_seconds(self, size_bytes: int) -> float:
        """How long a file of this size may take; CPU time is held to the same."""
        fair = max(LEAST_PATIENCE_SECONDS, size_bytes / SLOWEST_BYTES_PER_SECOND)
        return min(self.deadline_seconds, fair)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a child left: its complaints, a line each."""

    complaints: tuple[str, ...]


def find_program(name: str, package: str) -> str:
    """Its path. Raises MissingProgram."""
    if found := shutil.which(name):
        return found
    raise MissingProgram(f"{name} is not on PATH: apt-get install {package}")


class Ffprobe:
    """Starts children; may be called from several threads."""

    def __init__(self, limits: Limits, program: Path | None = None) -> None:
        self.limits = limits
        self._program = program
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._aborted = False

    def run(self, entry: Entry, take: Callable[[bytes], None], *, thorough: bool = False) -> Ended:
        """Hand the child's output over as it comes. Raises Refused and MissingProgram.

        Not thorough, it looks at no frame, which halves the time; a few headers then stay unknown.
        """
        patience = self.limits.patience_seconds(entry.size_bytes)
        child = self._start(self._command(entry, patience, thorough=thorough), entry.descriptor)
        try:
            errors = _drain(child, take, patience, self.limits.output_bytes)
        finally:
            self._end(child)
        complaints = _complaints(errors, entry)
        if child.returncode:
            raise _refusal(child.returncode, complaints, patience)
        return Ended(complaints)

    @property
    def children(self) -> int:
        """How many run now."""
        return len(self._children)

    def abort(self) -> None:
        """End all children, and start no more."""
        with self._lock:
            self._aborted = True
            for child in self._children:
                _kill(child)

    def _command(self, entry: Entry, patience_seconds: float, *, thorough: bool) -> list[str]:
        program = str(self._program) if self._program else find_program("ffprobe", "ffmpeg")
        cpu_seconds = _at_most(resource.RLIMIT_CPU, math.ceil(patience_seconds))
        return [
            # Limits are in force before the first byte is read, and without a fork of our own memory.
            find_program("prlimit", "util-linux"),
            f"--as={_at_most(resource.RLIMIT_AS, self.limits.memory_bytes)}",
            # The first limit ends it by a signal of its own, which tells why.
            f"--cpu={cpu_seconds}:{_at_most(resource.RLIMIT_CPU, cpu_seconds + 1)}",
            f"--nofile={_at_most(resource.RLIMIT_NOFILE, OPEN_FILES)}",
            "--fsize=0",
            "--core=0",
            program,
            *("-v", "error", "-protocol_whitelist", "file"),
            # A list of protocols alone lets a playlist open every file on the disk.
            *("-format_whitelist", ",".join(self.limits.formats)),
            *(() if thorough else ("-nofind_stream_info",)),
            *("-select_streams", "v", "-of", "compact", "-show_entries", ENTRIES),
            # By descriptor: nobody can put another file in its place, and no name means anything.
            *("-i", f"file:/proc/self/fd/{entry.descriptor}"),
        ]

    def _start(self, command: list[str], descriptor: int) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._aborted:
                raise Refused(ErrorKind.TIMEOUT, "the exporter is ending")
            try:
                child = subprocess.Popen(  # noqa: S603, no shell, and no argument is the file's name
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(descriptor,),
                    start_new_session=True,
                    cwd="/",
                    env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                )
            except OSError as error:
                raise MissingProgram(f"{command[0]} cannot be started: {error.strerror}") from None
            self._children.add(child)
        try:
            os.setpriority(os.PRIO_PROCESS, child.pid, self.limits.niceness)
        except OSError:
            # It has ended already, or we may not; the limits hold either way.
            pass
        return child

    def _end(self, child: "subprocess.Popen[bytes]") -> None:
        _kill(child)
        with self._lock:
            self._children.discard(child)
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()
        try:
            child.wait(REAP_SECONDS)
        except subprocess.TimeoutExpired:
            # Stuck in the kernel (a dead network mount). Python reaps it when it starts the next.
            child.returncode = -signal.SIGKILL


def _at_most(which: int, wanted: int) -> int:
    """A limit may be lowered by anyone, and raised by nobody."""
    hard = resource.getrlimit(which)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _kill(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _drain(
    child: "subprocess.Popen[bytes]",
    take: Callable[[bytes], None],
    patience_seconds: float,
    most_bytes: int,
) -> bytes:
    """Read both pipes to their end; gives what came by the second."""
    assert child.stdout is not None  # noqa: S101, it is a pipe
    assert child.stderr is not None  # noqa: S101, it is a pipe
    deadline = time.monotonic() + patience_seconds
    output, errors = child.stdout.fileno(), child.stderr.fileno()
    total, complaints = 0, b""
    with selectors.DefaultSelector() as selector:
        for pipe in (output, errors):
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                raise Refused(ErrorKind.TIMEOUT, f"took longer than {patience_seconds:g} s")
            time.sleep(_GATHER_SECONDS)
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE_BYTES)
                if not piece:
                    selector.unregister(key.fd)
                elif key.fd == errors:
                    complaints = (complaints + piece)[:MOST_ERROR_BYTES]
                else:
                    total += len(piece)
                    if total > most_bytes:
                        raise Refused(
                            ErrorKind.UNREADABLE,
                            f"ffprobe wrote more than {most_bytes} bytes about it: "
                            "raise video.output_limit_mebibytes if such files are meant",
                        )
                    take(piece)
    try:
        # Its pipes are closed; it may still be at work.
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Refused(ErrorKind.TIMEOUT, f"took longer than {patience_seconds:g} s") from None
    return complaints


def _complaints(errors: bytes, entry: Entry) -> tuple[str, ...]:
    text = errors.decode("utf-8", "replace").replace(
        f"file:/proc/self/fd/{entry.descriptor}", entry.path.name
    )
    lines = (_ADDRESS.sub("", line).strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))[:10]


def is_cut_off(complaints: Iterable[str]) -> bool:
    """Whether ffprobe misses the end of a file."""
    return any(sign in line.lower() for line in complaints for sign in _CUT_OFF)


def _refusal(status: int, complaints: tuple[str, ...], patience_seconds: float) -> Refused:
    if any("not on whitelist" in line for line in complaints):
        return Refused(ErrorKind.FORBIDDEN, f"is of a format that is not probed: {complaints[0]}")
    if status == -signal.SIGXCPU:
        return Refused(ErrorKind.TIMEOUT, f"took more than {patience_seconds:g} s of CPU")
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        return Refused(ErrorKind.UNREADABLE, f"ffprobe crashed on it ({name})", crashed=True)
    # The first one tells what is wrong with the file, the last one what became of it.
    told = dict.fromkeys(_WRITER.sub("", line) for line in (complaints[:1] + complaints[-1:]))
    message = ": ".join(line[:MOST_TOLD_CHARS] for line in told)
    return Refused(
        ErrorKind.UNREADABLE,
        message or f"ffprobe ended with {status} and no word",
        cut_off=is_cut_off(complaints),
    )
