# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""`make stack` as its user sees it: what it says, and that nothing of it is left."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.daemon import PATIENCE_SECONDS, wait_until
from tools.programs import (
    END_SECONDS,
    READY_SECONDS,
    ROOT,
    Program,
    ProgramFailedError,
    free_port,
)
from tools.story import tell, troubles, waiting
from veo_exporter.simulate.scenario import Scenario, load_scenario, shipped_scenarios

WORDS_OF_ITS_OWN = "A node whose second GPU goes at once and stays away."
TINY: dict[str, Any] = {
    "about": WORDS_OF_ITS_OWN,
    "gpus": 2,
    "board": {
        "name": "Board",
        "memory_gib": 24,
        "reserved_gib": 0.5,
        "power_limit_watts": 300,
        "sm_clock_max_megahertz": 1980,
        "memory_clock_megahertz": 2619,
    },
    "work": [
        {
            "name": "render",
            "lasts": "5s",
            "utilization": 0.5,
            "memory_copy_utilization": 0.5,
            "memory_used": 0.5,
            "power": 0.5,
            "temperature_celsius": 60,
        }
    ],
    "happenings": [{"at": "2s", "what": "lose", "gpus": [1]}],
}
UP_SECONDS = 4 * READY_SECONDS
"""Four programs may take so long to be up, one after the other."""
DOWN_SECONDS = 4 * END_SECONDS + PATIENCE_SECONDS
"""And so long to be gone."""
STARTED = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


class Stack:
    """The stack as a process of its own, with its temporary files in a folder that we can look into."""

    def __init__(self, folder: Path) -> None:
        scenario = folder / "tiny.yaml"
        scenario.write_text(yaml.safe_dump(TINY))
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tools.stack"),
                    *("--scenario", str(scenario), "--times-faster", "30", "--any-ports"),
                ],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(self.temporary)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.children: dict[str, int] = {}
        try:
            wait_until(lambda: "Ctrl-C ends everything" in self.said() or self.ended(), UP_SECONDS)
            assert not self.ended()
            self.children = self._children()
        except AssertionError as error:
            self.kill()
            raise AssertionError(f"{error}: {self.said()}") from None

    def kill(self) -> None:
        """End all that is left of it."""
        with suppress(OSError):
            self.children = self._children() or self.children
        self.process.kill()
        self.process.wait()
        for pid in self.children.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def said(self) -> str:
        return self.output.read_text()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def url(self, program: str) -> str:
        found = re.search(rf"^ +{program} +(http://\S+)", self.said(), re.MULTILINE)
        assert found, self.said()
        return found[1]

    def wait_for(self, query: str) -> list[dict[str, Any]]:
        """What its Prometheus answers, once there is something."""
        text = urllib.parse.urlencode({"query": query})
        url = f"{self.url('Prometheus')}/api/v1/query?{text}"

        def rows() -> list[dict[str, Any]] | None:
            assert not self.ended(), self.said()
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
                return json.load(answer)["data"]["result"] or None

        return wait_until(rows)

    def _children(self) -> dict[str, int]:
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return {Path(f"/proc/{pid}/comm").read_text().strip(): int(pid) for pid in pids.split()}

    def left(self) -> list[str]:
        """What should not be there any more."""
        running = [name for name, pid in self.children.items() if Path(f"/proc/{pid}").exists()]
        return running + [path.name for path in self.temporary.iterdir()]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    running = Stack(tmp_path)
    assert len(running.children) == 4
    assert running.left() != []
    yield running
    if not running.ended():
        running.kill()


def test_it_tells_what_happens_and_a_closed_terminal_ends_all(stack: Stack) -> None:
    page = stack.said()
    assert WORDS_OF_ITS_OWN in page
    assert "lose GPU 1" in page
    assert page.count("web pages are not built in") == 2
    lines = re.findall(r"^ +(curl .+)$", page, re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        answer = subprocess.run(
            [*shlex.split(line), "--fail", "--max-time", f"{PATIENCE_SECONDS:g}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, f"{line}: {answer.stderr}"
        assert line.endswith("/metrics") or json.loads(answer.stdout) is not None

    # As announced: it is told by the end of the time that was named.
    wait_until(lambda: "pager is told: FIRING VeoGpuLost" in stack.said() or stack.ended())
    assert not stack.ended(), stack.said()

    stack.process.send_signal(signal.SIGHUP)
    assert stack.process.wait(DOWN_SECONDS) == 0, stack.said()
    assert stack.left() == []


def test_the_collector_is_watched_as_the_exporter_is(stack: Stack) -> None:
    """What it tells of itself, and what it makes of the trace of a job, by the job's own engine."""
    stack.wait_for('up{job="otelcol"} == 1')
    stack.wait_for('up{job="otelcol-span-metrics"} == 1')
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "test",
        "type": "veo.job.finished",
        "subject": "a job",
        "data": {"engine": "of-this-test", "outcome": "failed", "reason": "upstream_503"},
    }
    request = urllib.request.Request(
        f"{stack.url('exporter')}/api/v1/events",
        json.dumps(event).encode(),
        {"Content-Type": "application/cloudevents+json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        assert answer.status < 300
    (calls,) = stack.wait_for('traces_span_metrics_calls_total{videogen_engine="of-this-test"} > 0')
    # The service whose spans they are, and not the Collector that counted them.
    assert calls["metric"]["job"] == calls["metric"]["service_name"] == "veo-exporter"
    assert calls["metric"]["videogen_outcome"] == "failed"
    assert calls["value"][1] == "1"
    stack.wait_for('otelcol_receiver_accepted_spans{job="otelcol"} >= 1')


@pytest.mark.parametrize(
    ("program", "number", "how", "words"),
    [
        ("prometheus", signal.SIGKILL, "prometheus has ended by SIGKILL", "Server is ready"),
        # Each of its own accord ends well, which is no better here.
        ("otelcol", signal.SIGTERM, "otelcol with demo.yaml has ended with status 0", "Shutdown"),
        ("otelcol", signal.SIGKILL, "otelcol with demo.yaml has ended by SIGKILL", "ready"),
        ("alertmanager", signal.SIGTERM, "alertmanager has ended with status 0", "exiting"),
        ("exporter", signal.SIGKILL, "veo-exporter has ended by SIGKILL", "simulated"),
    ],
)
def test_a_program_that_ends_is_named_and_ends_all(
    program: str, number: signal.Signals, how: str, words: str, stack: Stack
) -> None:
    others = {"prometheus", "otelcol", "alertmanager"}
    (pid,) = (
        pid
        for name, pid in stack.children.items()
        if name == program or (program == "exporter" and name not in others)
    )
    os.kill(pid, number)
    assert stack.process.wait(DOWN_SECONDS) == 1
    said = stack.said()
    assert f"stack: {how}; its last words:" in said
    assert words in said.partition("last words:")[2]
    assert stack.left() == []


def test_a_program_that_does_not_start_is_named_with_its_status(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no such option >&2; exit 3"]
    program = Program("shell", command, ready_url="http://127.0.0.1:1", log=tmp_path / "log")
    with program, pytest.raises(ProgramFailedError) as failure:
        program.wait_until_ready()
    assert str(failure.value) == "shell has ended with status 3; its last words:\nno such option"


def test_a_free_port_is_kept_for_the_program_that_is_to_have_it() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    # As whoever finds no server there is told.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with socket.create_server(("127.0.0.1", port)) as server:
        socket.create_connection(server.getsockname()).close()


def test_to_say_something_to_nobody_is_no_error() -> None:
    """As with a terminal that is closed: whatever is written fails from then on."""
    code = "import os; from tools.stack import say; say('a'); say('b' * 9999); say('c')"
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_an_unknown_scenario_is_refused_before_anything_starts() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "tools.stack", "--scenario", "gpu-lots"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "there is no scenario 'gpu-lots'" in refused.stderr


# The announcement


def of(**changes: Any) -> Scenario:
    return Scenario.model_validate({**TINY, **changes})


def test_troubles_are_of_any_gpu_from_the_first_to_the_last() -> None:
    (hung,) = troubles(load_scenario("gpu-hung"))
    assert (hung.alert, hung.begin, hung.end) == ("VeoGpuHung", 60, 300)
    (lost,) = troubles(load_scenario("node-lost"))
    assert (lost.alert, lost.begin, lost.end) == ("VeoGpuLost", 60, 300)
    assert troubles(load_scenario("busy")) == []
    (away,) = troubles(of())
    assert (away.begin, away.end) == (2, None)
    (till_the_next_round,) = troubles(of(repeat_every="1m"))
    assert till_the_next_round.end == 60


def test_waiting_is_divided_and_the_story_is_not() -> None:
    # Held for 90 s and gathered for 15 s; looked back for 60 s, kept for 120 s, sent each 300 s.
    # Noticed within 10 s at any pace, and three steps of 15 s.
    slow, fast = waiting("VeoGpuLost", 1), waiting("VeoGpuLost", 5)
    assert list(slow.told) == [105, 160]
    assert list(fast.told) == [21, 40]
    assert list(slow.resolved) == [135, 535]
    assert list(fast.resolved) == [27, 115]
    assert tell(load_scenario("gpu-lost"), STARTED, 5) == [
        "12:01:00  lose GPU 3",
        "          the pager hears FIRING VeoGpuLost 21 to 40 s later",
        "12:05:00  recover GPU 3",
        "          the pager hears RESOLVED VeoGpuLost 27 to 115 s later",
        "12:10:00  the story starts over",
    ]


def test_what_comes_again_too_soon_may_not_be_resolved() -> None:
    text = "\n".join(tell(load_scenario("gpu-lost"), STARTED, 1))
    assert "or not at all: it begins again before" in text
    endless = "\n".join(tell(of(), STARTED, 5))
    assert "is not resolved" in endless
    assert "RESOLVED" not in endless


def test_what_is_too_short_is_said_to_be() -> None:
    short = [*TINY["happenings"], {"at": "12s", "what": "recover", "gpus": [1]}]
    text = "\n".join(tell(of(happenings=short), STARTED, 1))
    assert "too short for VeoGpuLost, which is held for 90 s" in text
    assert "FIRING" not in text


@pytest.mark.parametrize("name", shipped_scenarios())
@pytest.mark.parametrize("times_faster", [0.5, 1, 5, 30])
def test_every_scenario_is_told_with_all_that_happens(name: str, times_faster: float) -> None:
    scenario = load_scenario(name)
    lines = tell(scenario, STARTED, times_faster)
    times = [line[:8] for line in lines if line[:8].strip()]
    assert times == sorted(times)
    assert len(times) == len(scenario.happenings) + 1
    assert ("FIRING" in "".join(lines)) == (name in ("gpu-lost", "gpu-hung", "node-lost"))
