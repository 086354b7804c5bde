# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that are started, waited for and ended together."""

import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

READY_SECONDS: Final = 60.0
END_SECONDS: Final = 10.0
ROOT: Final = Path(__file__).resolve().parent.parent


class ProgramFailedError(Exception):
    """A program did not start, or ended too early; the message has the end of what it wrote."""


def free_port(wanted: int = 0) -> int:
    """The port wanted if it is free on the loopback, else any free one.

    It stays ours until this process ends: nobody who asks for any port is given it, nor is it the near
    end of a connection. A program that sets SO_REUSEADDR, as servers do, may listen on it all the same,
    since nobody listens on it here.
    """
    attempt = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        attempt.bind(("127.0.0.1", wanted))
    except OSError:
        attempt.bind(("127.0.0.1", 0))
    port: int = attempt.getsockname()[1]
    attempt.detach()
    return port


def tool(name: str) -> Path:
    """A tool that `make tools` has put in place. Raises ProgramFailedError."""
    path = ROOT / ".tools/bin" / name
    if not path.exists():
        raise ProgramFailedError(f"{name} is not there: run `make tools`")
    return path


class Program:
    """A child process whose output goes to a file, and a URL that answers once it is ready."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        ready_url: str,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._ready_url = ready_url
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                # Ctrl-C in a terminal goes to every process of its group: we end them in order.
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Return once it answers. Raises ProgramFailedError."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            self.check()
            with suppress(OSError), urllib.request.urlopen(self._ready_url, timeout=2):  # noqa: S310, our own
                # Another program on the same port would answer as well.
                if self.process.poll() is None:
                    return
            time.sleep(0.05)
        raise ProgramFailedError(f"{self.name} is not ready: {self.last_words()}")

    def check(self) -> None:
        """Raises ProgramFailedError if it has ended without having been asked to."""
        status = self.process.poll()
        if status is not None:
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            words = self.last_words().strip() or "nothing"
            raise ProgramFailedError(f"{self.name} has ended {how}; its last words:\n{words}")

    def last_words(self) -> str:
        """The end of what it wrote."""
        return self.log.read_text(errors="replace")[-2000:]

    def end(self) -> None:
        """Ask it to end, and insist if it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()
