# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The real exporter as a process of its own, for tests that use it as a user does."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from prometheus_client.parser import text_string_to_metric_families

PATIENCE_SECONDS = 60.0
"""How long a condition may take on a slow machine; nothing waits this long when all is well."""
NOT_GIVEN_BACK = "the driver did not take its session back; the kernel will"
LOOK_SECONDS = 0.02
LATE_LOOK_SECONDS = 0.1
"""A look that comes later than this is the machine's doing: it stood still, or was busy with others."""

T = TypeVar("T")
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def wait_until(ask: Callable[[], T | None], patience_seconds: float = PATIENCE_SECONDS) -> T:
    """The first answer that is neither None nor False."""
    deadline = time.monotonic() + patience_seconds
    while True:
        answer = ask()
        if answer is not None and answer is not False:
            return answer
        assert time.monotonic() < deadline, f"not so within {patience_seconds:g} s: {ask}"
        time.sleep(LOOK_SECONDS)


class Page:
    """A scraped page."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.series: Series = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.series[sample.name, frozenset(sample.labels.items())] = sample.value

    def values(self, name: str, **labels: str) -> list[float]:
        """Values of all series of that name that carry these labels."""
        wanted = set(labels.items())
        return [
            value
            for (known, have), value in self.series.items()
            if known == name and wanted <= have
        ]

    def value(self, name: str, **labels: str) -> float | None:
        """The one such series' value; None if there is none."""
        values = self.values(name, **labels)
        assert len(values) <= 1, f"{name}{labels} is not one series"
        return values[0] if values else None

    def states(self) -> dict[str, str]:
        """State by GPU index."""
        return {
            dict(labels)["gpu"]: dict(labels)["state"]
            for (name, labels), value in self.series.items()
            if name == "veo_gpu_state" and value == 1
        }


def all_ok(page: Page) -> bool:
    """Eight GPUs are well, and of each all groups were read: the state comes with the first of them."""
    return (
        list(page.states().values()) == ["ok"] * 8
        and len(page.values("veo_gpu_energy_joules_total")) == 8
        and len(page.values("veo_gpu_power_limit_watts")) == 8
    )


def seconds_to_end(process: subprocess.Popen[Any], number: signal.Signals) -> float:
    """How long a process takes to end once it is asked to, less what the machine stood still meanwhile.

    A machine that does not let us look for a second has not let the process end, either.
    """
    process.send_signal(number)
    return _seconds_while(lambda: process.poll() is None)


def seconds_taken_by(call: Callable[[], object]) -> float:
    """How long a call takes, likewise; on a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(call)
        seconds = _seconds_while(lambda: not done.done())
        done.result()
        return seconds


def _seconds_while(lasts: Callable[[], bool]) -> float:
    deadline = time.monotonic() + PATIENCE_SECONDS
    took = 0.0
    while lasts():
        looked = time.monotonic()
        assert looked < deadline, f"not ended within {PATIENCE_SECONDS:g} s"
        time.sleep(LOOK_SECONDS)
        took += min(time.monotonic() - looked, LATE_LOOK_SECONDS)
    return took


class Daemon:
    """A running exporter. Its log lines are kept, for the message of a failed assertion too."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "veo_exporter", *arguments]
        command += ["--web.listen-address", "127.0.0.1:0", "--log.format", "json"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("VEO_")}
        self.started_monotonic = time.monotonic()
        self.process = subprocess.Popen(
            command, env={**clean, **environment}, stderr=subprocess.PIPE, text=True
        )
        self.log: list[dict[str, Any]] = []
        self._serving: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        port = self._port()
        if port is None:
            self.__exit__(None, None, None)
            raise AssertionError(f"it does not serve, status {self.process.returncode}: {self.log}")
        self.url = f"http://127.0.0.1:{port}"

    def _port(self) -> int | None:
        try:
            return self._serving.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            return None

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"event": "no JSON", "line": line}
            self.log.append(entry)
            if entry.get("event") == "serving":
                self._serving.put(entry["port"])
        self._serving.put(None)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body."""
        request = urllib.request.Request(self.url + path, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def scrape(self) -> Page:
        """What Prometheus would see now."""
        status, body = self.get("/metrics")
        assert status == 200
        return Page(body.decode())

    def wait_for(
        self, holds: Callable[[Page], bool], patience_seconds: float = PATIENCE_SECONDS
    ) -> Page:
        """The first page of which this holds."""
        page = None

        def ask() -> Page | None:
            nonlocal page
            page = self.scrape()
            return page if holds(page) else None

        try:
            return wait_until(ask, patience_seconds)
        except AssertionError as error:
            states = page.states() if page else {}
            raise AssertionError(f"{error}; states {states}; log {self.log[-5:]}") from None

    def events(self, event: str) -> list[dict[str, Any]]:
        """Log lines of one kind."""
        return [entry for entry in self.log if entry["event"] == event]

    def told(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Log lines of one kind, once there are so many: they come by another road than pages do."""

        def enough() -> list[dict[str, Any]] | None:
            lines = self.events(event)
            return lines if len(lines) >= count else None

        return wait_until(enough)

    def seconds_kept_waiting(self) -> float:
        """How long its threads could have run and were not let, since the machine was busy with others."""
        nanoseconds = 0
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            # A thread may end meanwhile.
            with suppress(OSError):
                nanoseconds += int((thread / "schedstat").read_text().split()[1])
        return nanoseconds / 1e9

    def end(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Ask it to end; gives how long that took, and has read all that it logged."""
        took = seconds_to_end(self.process, number)
        self._reader.join(PATIENCE_SECONDS)
        return took

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def daemon(arguments: list[str], environment: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """An exporter that is gone when the block ends."""
    with Daemon(arguments, environment or {}) as running:
        yield running
