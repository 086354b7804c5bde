# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Run a long command and show that it is alive."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import IO


class BuildError(Exception):
    """A tool cannot be built; the text says why, and what helps."""


def watch(
    command: Sequence[str],
    label: str,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    packages: int = 0,
) -> str:
    """Run the command, show progress on stderr, and return what it wrote to stdout."""
    start = time.monotonic()
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        _started(command, cwd, env, output) as child,
    ):
        assert child.stderr is not None
        reader = Thread(target=_collect, args=(child.stderr, lines), daemon=True)
        reader.start()
        try:
            _wait(child, lines, label, start, packages)
        except BaseException:
            child.terminate()
            raise
        reader.join()
        output.seek(0)
        answer = output.read()
    if child.returncode != 0:
        said = [line for line in (*answer.splitlines(), *lines) if not _is_package(line)]
        raise BuildError("\n".join((f"`{' '.join(command)}` failed:", *said[-20:])))
    return answer


def describe(lines: Sequence[str], seconds: float, packages: int) -> str:
    """How far `go` is, from the seconds passed and what it has written so far."""
    compiled = sum(_is_package(line) for line in lines)
    downloaded = sum(line.startswith("go: downloading ") for line in lines)
    parts = [f"{seconds:.0f} s"]
    if packages:
        # Those that Go's own cache holds are never named, hence "at most".
        parts.append(f"{compiled} of at most {packages} packages")
    if downloaded:
        parts.append(f"{downloaded} modules downloaded")
    return ", ".join(parts)


def _is_package(line: str) -> bool:
    return line != "" and " " not in line and not line.startswith("#")


def _started(
    command: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None, output: IO[str]
) -> "subprocess.Popen[str]":
    try:
        return subprocess.Popen(
            command, cwd=cwd, env=env, stdout=output, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        raise BuildError(f"`{command[0]}` cannot be started: {error.strerror}") from error


def _collect(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip("\n"))  # noqa: PERF401, the other thread counts them meanwhile


def _wait(
    child: "subprocess.Popen[str]", lines: list[str], label: str, start: float, packages: int
) -> None:
    terminal = sys.stderr.isatty()
    before, after = ("\r\033[K", "") if terminal else ("", "\n")
    while True:
        try:
            child.wait(timeout=2 if terminal else 15)
        except subprocess.TimeoutExpired:
            state = describe(lines, time.monotonic() - start, packages)
            print(f"{before}{label}: {state}", end=after, file=sys.stderr, flush=True)
        else:
            print(before, end="", file=sys.stderr, flush=True)
            return
