# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is kept of the kubelet's answers, while it answers and while it does not."""

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from tests.daemon import wait_until
from tests.kubernetes.conftest import StillClock, plan_for
from tests.kubernetes.kubelet import FakeKubelet, Held, listening
from veo_exporter.kubernetes import Allocation, Answer, Cause, PodWatch
from veo_exporter.kubernetes.watch import delay_seconds

A = Held("a", {"nvidia.com/gpu": ["GPU-1"]})
B = Held("b", {"nvidia.com/gpu": ["GPU-2"]})


def pods(watch: PodWatch) -> list[str]:
    return sorted(held.pod for held in watch.latest.allocations)


def test_the_mapping_follows_the_kubelet(tmp_path: Path, clock: StillClock) -> None:
    with FakeKubelet(tmp_path / "kubelet.sock").holds(A) as kubelet:
        watch = PodWatch(plan_for(kubelet.path), clock)
        assert watch.latest == Answer()
        assert watch.look() == 10
        assert watch.latest.allocations == {Allocation("video", "a", "main", "GPU-1")}
        assert watch.latest.read_monotonic_seconds == 1000
        clock.now = 1010
        kubelet.holds(A, B)
        watch.look()
        assert pods(watch) == ["a", "b"]
        assert watch.latest.read_monotonic_seconds == 1010
        kubelet.holds()
        watch.look()
        assert pods(watch) == []
        assert watch.latest.errors == {}


def test_an_equal_answer_is_the_same_object(tmp_path: Path, clock: StillClock) -> None:
    with FakeKubelet(tmp_path / "kubelet.sock").holds(A, B) as kubelet:
        watch = PodWatch(plan_for(kubelet.path), clock)
        watch.look()
        first = watch.latest
        kubelet.holds(B, A)
        watch.look()
        assert watch.latest.allocations is first.allocations
        assert watch.latest.sequence != first.sequence


def test_a_kubelet_that_goes_leaves_its_last_mapping(tmp_path: Path, clock: StillClock) -> None:
    kubelet = FakeKubelet(tmp_path / "kubelet.sock").holds(A)
    watch = PodWatch(plan_for(kubelet.path), clock)
    with kubelet:
        watch.look()
    clock.now = 1020
    with capture_logs() as lines:
        # Twice as long with each failure, and never more than a minute.
        assert [watch.look() for _ in range(4)] == [20, 40, 60, 60]
    assert pods(watch) == ["a"]
    assert watch.latest.read_monotonic_seconds == 1000
    assert watch.latest.errors == {Cause.UNREACHABLE: 4}
    assert [line["log_level"] for line in lines] == ["warning"], "once for all four"
    assert "pod-resources" in lines[0]["remedy"]

    with kubelet.holds(B), capture_logs() as lines:
        assert watch.look() == 10
    assert pods(watch) == ["b"]
    assert watch.latest.read_monotonic_seconds == 1020
    assert watch.latest.errors == {Cause.UNREACHABLE: 4}
    assert [line["log_level"] for line in lines] == ["info"]


def test_each_other_fault_is_told(tmp_path: Path, clock: StillClock) -> None:
    path = tmp_path / "kubelet.sock"
    with FakeKubelet(path).holds(A) as kubelet:
        watch = PodWatch(plan_for(path), clock)
        watch.look()
        with capture_logs() as lines:
            kubelet.status = grpc.StatusCode.UNAVAILABLE
            watch.look()
            kubelet.status, kubelet.answer = None, b"\x0b garbage"
            watch.look()
            kubelet.go_on.clear()
            watch.reconfigure(plan_for(path, deadline_seconds=0.2))
            watch.look()
            watch.reconfigure(plan_for(path))
    with listening(path, lambda connection: None), capture_logs() as more:
        watch.look()
    assert [line["log_level"] for line in (*lines, *more)] == ["warning"] * 4
    assert watch.latest.errors == {
        Cause.REFUSED: 1,
        Cause.GARBLED: 1,
        Cause.TIMEOUT: 1,
        Cause.UNREACHABLE: 1,
    }
    assert pods(watch) == ["a"]


def test_without_a_socket_nobody_is_asked_until_it_is_there(
    tmp_path: Path, clock: StillClock
) -> None:
    kubelet = FakeKubelet(tmp_path / "kubelet.sock").holds(A)
    watch = PodWatch(plan_for(kubelet.path), clock)
    with capture_logs() as lines:
        assert watch.look() == 10
        assert watch.look() == 10
    assert watch.latest == Answer()
    assert lines == []
    with kubelet:
        watch.look()
    assert pods(watch) == ["a"]
    watch.look()
    assert watch.latest.errors == {Cause.UNREACHABLE: 1}, "it was there once: its absence is news"


def test_when_it_is_asked_for_a_missing_socket_is_a_fault(
    tmp_path: Path, clock: StillClock
) -> None:
    watch = PodWatch(plan_for(tmp_path / "kubelet.sock", only_if_there=False), clock)
    assert watch.look() == 20
    assert watch.latest.asked
    assert watch.latest.read_monotonic_seconds is None
    assert watch.latest.errors == {Cause.UNREACHABLE: 1}


@pytest.mark.parametrize(
    ("interval_seconds", "delays"),
    [(1, [1, 2, 4, 8, 16, 32, 60, 60]), (10, [10, 20, 40, 60, 60]), (600, [600, 600, 600])],
)
def test_backoff(interval_seconds: float, delays: list[float]) -> None:
    plan = plan_for(Path("/x"), interval_seconds=interval_seconds)
    assert [delay_seconds(plan, failures) for failures in range(len(delays))] == delays
    assert delay_seconds(plan, 100_000) == delays[-1]


def test_a_fault_of_ours_ends_nothing(
    tmp_path: Path, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeKubelet(tmp_path / "kubelet.sock").holds(A) as kubelet:
        watch = PodWatch(plan_for(kubelet.path), clock)
        monkeypatch.setattr("veo_exporter.kubernetes.watch.read_allocations", lambda *_: 1 / 0)
        with capture_logs() as lines:
            assert watch.look() == 20
        monkeypatch.undo()
        watch.look()
    assert any("fault of the exporter" in line["event"] for line in lines)
    assert watch.latest.errors == {Cause.GARBLED: 1}
    assert pods(watch) == ["a"]


def test_other_settings_hold_from_the_next_question_on(tmp_path: Path, clock: StillClock) -> None:
    amd = Held("c", {"amd.com/gpu": ["nvidia0"]})
    with FakeKubelet(tmp_path / "kubelet.sock").holds(A, amd) as kubelet:
        watch = PodWatch(plan_for(kubelet.path), clock)
        watch.look()
        watch.reconfigure(plan_for(kubelet.path, resource_prefixes=("amd.com/",)))
        assert pods(watch) == ["a"]
        watch.look()
        assert pods(watch) == ["c"]


def test_its_thread_asks_by_itself_and_ends_when_told(tmp_path: Path, clock: StillClock) -> None:
    with FakeKubelet(tmp_path / "kubelet.sock").holds(A) as kubelet:
        watch = PodWatch(plan_for(kubelet.path, interval_seconds=0.01), clock)
        watch.start()
        wait_until(lambda: kubelet.calls > 3)
        watch.stop()
        watch._thread.join(20)
        assert not watch._thread.is_alive()
        calls = kubelet.calls
    assert pods(watch) == ["a"]
    assert kubelet.calls == calls


def test_without_a_kubelet_http2_is_not_imported(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
import veo_exporter.app
from veo_exporter.app.pods import plan_of
from veo_exporter.clock import SystemClock
from veo_exporter.config import Kubernetes
from veo_exporter.kubernetes import PodWatch
for path in sys.argv[1:]:
    PodWatch(plan_of(Kubernetes(kubelet_socket=Path(path))), SystemClock()).look()
    print(sorted({"h2", "grpc"} & sys.modules.keys()), file=sys.stderr)
"""
    with FakeKubelet(tmp_path / "kubelet.sock") as kubelet:
        run = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "nowhere"), str(kubelet.path)],
            capture_output=True,
            text=True,
            check=True,
            env=dict(os.environ),
        )
    assert run.stderr.splitlines() == ["[]", "['h2']"]
