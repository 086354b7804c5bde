# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that hears NVML's events, on the real bindings and the fake library."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fake_nvml import FakeLibrary, FakeNode
from veo_exporter.clock import SystemClock
from veo_exporter.gpu import event_calls
from veo_exporter.gpu import events as module
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.codes import OVERDUE
from veo_exporter.gpu.event_registrations import NEVER, Registrations, retry_seconds
from veo_exporter.gpu.event_set import XidEvent
from veo_exporter.gpu.events import EventListener
from veo_exporter.gpu.nvml import Line, load_library
from veo_exporter.gpu.presence import kernel_pci_address
from veo_exporter.gpu.readings import Device, WhyNot
from veo_exporter.gpu.session import close_session, find_gpu, open_session

PATIENCE_SECONDS = 60.0
WAIT = "nvmlEventSetWait"
REGISTER = "nvmlDeviceRegisterEvents"

Heard = tuple[str | None, XidEvent]


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.005)


class Bench:
    """A listener, and a session that a test opens and closes in the sampler's place."""

    def __init__(self, node: FakeNode, library: FakeLibrary) -> None:
        self.node, self.library = node, library
        self.heard: list[Heard] = []
        self.line = Line(load_library(), SystemClock())
        self.totals = CallTotals()
        self.listener = EventListener(load_library, SystemClock(), self._take, self.totals)

    def _take(self, device: Device | None, event: XidEvent) -> None:
        self.heard.append((device.uuid if device else None, event))

    def open(self) -> None:
        assert open_session(self.line).code == 0

    def attend(self, *indexes: int) -> None:
        for index in indexes:
            device = find_gpu(self.line, index).device
            assert device is not None
            self.listener.attend(device)

    def close(self) -> None:
        close_session(self.line, closing_calls=[self.listener.release])

    @property
    def calls(self) -> dict[str, int]:
        return {function: tally.calls for function, tally in self.totals.totals().items()}

    def uuid(self, number: int) -> str:
        return self.node.gpus[number].uuid

    def address(self, number: int) -> str:
        return kernel_pci_address(self.node.gpus[number].pci_bus_id)

    def hears(self, number: int) -> bool:
        return self.listener.has_heard_of(self.address(number))

    @property
    def codes(self) -> list[tuple[str | None, int]]:
        return [(uuid, event.code) for uuid, event in self.heard]

    @property
    def sets(self) -> int:
        """Event sets that were made and not freed."""
        made, freed = (
            self.library.calls("nvmlEventSetCreate"),
            self.library.calls("nvmlEventSetFree"),
        )
        return made - freed


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # How long a session waits for the thread is one test's matter, and not the machine's in the others.
    monkeypatch.setattr(module, "RELEASE_SECONDS", PATIENCE_SECONDS)
    node = FakeNode(tmp_path / "scenario", gpus=3)
    bench = Bench(node, node.attach())
    try:
        yield bench
    finally:
        node.forget_rules()
        bench.listener.stop(PATIENCE_SECONDS)
        close_session(bench.line)


def test_an_xid_is_heard_with_the_gpu_it_is_about(bench: Bench) -> None:
    bench.open()
    bench.attend(0, 1, 2)
    until(lambda: all(bench.hears(number) for number in range(3)))
    until(lambda: bench.listener.up)
    bench.node.send_xid(1, 79)
    until(lambda: bench.heard)
    bench.node.send_xid(2, 13)
    until(lambda: len(bench.heard) == 2)
    assert bench.codes == [(bench.uuid(1), 79), (bench.uuid(2), 13)]
    assert bench.heard[0][1].gpu_instance is None


def test_two_at_once_are_two(bench: Bench) -> None:
    bench.open()
    bench.attend(0)
    until(lambda: bench.hears(0))
    with bench.node.changes():
        bench.node.send_xid(0, 79).send_xid(0, 79)
    until(lambda: len(bench.heard) == 2)
    assert bench.codes == [(bench.uuid(0), 79)] * 2


def test_the_instances_of_mig_are_told(bench: Bench) -> None:
    bench.open()
    bench.attend(0)
    until(lambda: bench.hears(0))
    bench.node.send_event(0, 0x8, 94, gpu_instance=5, compute_instance=0)
    until(lambda: bench.heard)
    event = bench.heard[0][1]
    assert (event.code, event.gpu_instance, event.compute_instance) == (94, 5, 0)


def test_quiet_is_four_waits_a_second_and_no_fault(bench: Bench) -> None:
    bench.open()
    bench.attend(0)
    until(lambda: bench.hears(0))
    began, before = time.monotonic(), bench.library.calls(WAIT)
    until(lambda: bench.library.calls(WAIT) >= before + 6)
    # Six waits of a quarter of a second begin; the last of them need not have ended.
    assert time.monotonic() - began >= 5 * module.LEAST_WAIT_SECONDS * 0.95
    assert bench.listener.up


@pytest.mark.parametrize("code", [15, 999])
def test_a_wait_that_fails_at_once_for_ever_is_no_busy_loop(bench: Bench, code: int) -> None:
    bench.open()
    bench.attend(0)
    until(lambda: bench.hears(0))
    bench.node.fail(WAIT, code)
    until(lambda: not bench.listener.up)
    began, before = time.monotonic(), bench.library.calls()
    waits = bench.library.calls(WAIT)
    until(lambda: time.monotonic() - began >= 2.0)
    waited, called = bench.library.calls(WAIT) - waits, bench.library.calls() - before
    seconds = time.monotonic() - began
    assert waited <= 5 * seconds
    # Nor do all calls together make one: each set that is made anew is some calls more.
    assert called <= 12 * seconds
    bench.node.forget_rules()
    until(lambda: bench.listener.up)
    bench.node.send_xid(0, 79)
    until(lambda: bench.heard)


def test_a_lost_gpu_in_the_set_does_not_deafen_the_others_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOST_ANSWERS", 2)
    bench.open()
    bench.attend(0, 1)
    until(lambda: bench.hears(0) and bench.hears(1))
    bench.node.gpus[0].lose()
    bench.node.fail(WAIT, 15)
    registered = bench.library.calls(REGISTER)
    # A set made anew has only the one that still answers.
    until(lambda: bench.library.calls(REGISTER) > registered)
    bench.node.forget_rules()
    until(lambda: bench.listener.up)
    bench.node.send_xid(1, 62)
    until(lambda: bench.heard)
    assert bench.codes == [(bench.uuid(1), 62)]


@pytest.mark.parametrize(
    ("code", "why"), [(3, WhyNot.NOT_SUPPORTED), (4, WhyNot.NOT_PERMITTED), (15, None)]
)
def test_one_gpu_that_cannot_be_registered_costs_the_others_nothing(
    bench: Bench, code: int, why: WhyNot | None
) -> None:
    bench.node.gpus[1].fail(REGISTER, code)
    bench.open()
    bench.attend(0, 1, 2)
    until(lambda: bench.hears(0) and bench.hears(2))
    assert bench.listener.missing() == ({bench.uuid(1): why} if why else {})
    assert not bench.hears(1)
    bench.node.send_xid(2, 31)
    until(lambda: bench.heard)
    # And it is tried again: what failed at boot may work seconds later.
    bench.node.gpus[1].forget_rules()
    until(lambda: bench.hears(1))
    assert bench.listener.missing() == {}
    bench.node.send_xid(1, 48)
    until(lambda: len(bench.heard) == 2)


def test_a_board_without_this_event_is_never_registered(bench: Bench) -> None:
    bench.node.gpus[0].set(event_types_supported=0x3)
    bench.open()
    bench.attend(0)
    until(lambda: bench.listener.missing() == {bench.uuid(0): WhyNot.NOT_SUPPORTED})
    assert bench.library.calls(REGISTER) == 0
    assert bench.library.calls(WAIT) == 0
    assert not bench.listener.up


def test_after_an_unknown_failure_the_set_is_made_anew(bench: Bench) -> None:
    bench.node.gpus[1].fail(REGISTER, 999)
    bench.open()
    bench.attend(0, 1, 2)
    until(lambda: bench.hears(0) and bench.hears(2))
    until(lambda: bench.library.calls("nvmlEventSetFree") >= 1)
    bench.node.send_xid(0, 31)
    bench.node.send_xid(2, 31)
    until(lambda: len(bench.heard) == 2)


def test_the_set_is_given_back_before_the_session_ends_and_made_anew_in_the_next(
    bench: Bench,
) -> None:
    bench.open()
    bench.attend(0, 1)
    until(lambda: bench.hears(0) and bench.hears(1))
    bench.close()
    assert bench.sets == 0
    assert not bench.listener.up
    calls = bench.library.calls()
    # Nobody calls NVML between two sessions; a thread that did would do so within one wait.
    ended = time.monotonic() + 2 * module.LEAST_WAIT_SECONDS
    until(lambda: time.monotonic() > ended)
    assert bench.library.calls() == calls
    bench.open()
    bench.attend(0)
    until(lambda: bench.listener.up)
    bench.node.send_xid(0, 79)
    until(lambda: bench.heard)
    assert bench.codes == [(bench.uuid(0), 79)]


def test_a_driver_that_was_loaded_again_is_heard_again_under_its_new_order(bench: Bench) -> None:
    bench.open()
    bench.attend(0, 1, 2)
    until(lambda: all(bench.hears(number) for number in range(3)))
    bench.node.unload_driver()
    until(lambda: not bench.listener.up)
    bench.node.load_driver(order=[2, 0, 1])
    bench.close()
    bench.open()
    bench.attend(0, 1, 2)
    until(lambda: bench.listener.up)
    until(lambda: bench.library.calls(REGISTER) >= 6)
    bench.node.send_xid(0, 79)
    until(lambda: bench.heard)
    assert bench.codes == [(bench.uuid(0), 79)]


def test_a_call_that_hangs_leaves_its_gpu_behind_and_the_others_are_heard(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_calls, "CALL_DEADLINE_SECONDS", 1.0)
    bench.node.gpus[1].hang(REGISTER)
    bench.open()
    bench.attend(0, 1, 2)

    def others_are_heard() -> bool:
        bench.listener.watch()
        return bench.hears(2) and bench.listener.up

    until(others_are_heard)
    assert not bench.hears(1)
    bench.node.send_xid(2, 31)
    until(lambda: bench.heard)
    assert bench.codes == [(bench.uuid(2), 31)]
    bench.node.gpus[1].release()

    def is_back() -> bool:
        bench.listener.watch()
        return bench.hears(1)

    until(is_back)


def test_a_wait_that_hangs_is_told_and_nothing_is_heard(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_calls, "CALL_DEADLINE_SECONDS", 1.0)
    bench.open()
    bench.attend(0)
    until(lambda: bench.listener.up)
    assert bench.listener.calls_told().overdue == ()
    assert bench.calls["nvmlEventSetWait_v2"] > 0
    bench.node.hang(WAIT)

    def left_behind() -> bool:
        bench.listener.watch()
        return bool(bench.listener.stuck_calls())

    until(left_behind)
    [overdue] = bench.listener.calls_told().overdue
    assert overdue.function == "nvmlEventSetWait_v2"
    assert overdue.seconds > 1.25
    assert not bench.listener.up
    # Another thread registers the GPU once more; its wait does not return either.
    until(lambda: bench.library.calls(REGISTER) == 2)
    assert not bench.listener.up
    assert bench.listener.calls_told().errors["nvmlEventSetWait_v2", OVERDUE] >= 1
    bench.node.release()

    def is_heard_again() -> bool:
        bench.listener.watch()
        return bench.listener.up and not bench.listener.stuck_calls()

    until(is_heard_again)
    assert bench.listener.calls_told().overdue == ()


def test_a_session_does_not_wait_for_a_thread_that_does_not_return(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RELEASE_SECONDS", 0.3)
    bench.open()
    bench.attend(0)
    until(lambda: bench.hears(0))
    # The wait under way looks at the scenario too, and hangs with the next ones.
    bench.node.hang(WAIT)
    began = time.monotonic()
    bench.close()
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    bench.node.release()
    bench.open()
    bench.attend(0)
    until(lambda: bench.listener.up)


def test_the_end_frees_the_set(bench: Bench) -> None:
    bench.open()
    bench.attend(0)
    until(lambda: bench.hears(0))
    bench.listener.stop(PATIENCE_SECONDS)
    assert bench.sets == 0
    assert [thread for thread in threading.enumerate() if thread.name == "gpu-events"] == []


def test_attempts_are_capped() -> None:
    assert [retry_seconds(failures) for failures in (1, 2, 3, 6, 7, 8, 10_000)] == [
        1.0,
        2.0,
        4.0,
        32.0,
        60.0,
        60.0,
        60.0,
    ]


def test_a_gpu_whose_registration_has_not_returned_is_not_tried_again() -> None:
    device = Device(0, "GPU-a", "0000:1b:00.0", 7)
    registrations = Registrations()
    registrations.attend(device, 0.0)
    [registration] = registrations.due(0.0)
    registration.failed(4, 100.0)
    assert registrations.due(100.5) == []
    registrations.attend(device, 100.5)
    assert registrations.due(100.5) == [registration], "it was found again, and may be ready now"
    registration.retry_at = NEVER
    registrations.attend(device, 200.0)
    assert registrations.due(300.0) == []
