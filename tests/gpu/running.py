# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Samplers that run on scripted nodes, and what tests ask of them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.gpu.conftest import ScriptedNvml, address_of, wait_until
from veo_exporter.clock import SystemClock
from veo_exporter.gpu.readings import GpuView, State
from veo_exporter.gpu.sampler import Sampler
from veo_exporter.gpu.session import ClosingCall
from veo_exporter.gpu.timing import Timing

QUICK = Timing(
    fast_interval_seconds=0.02,
    full_interval_seconds=0.06,
    static_interval_seconds=0.2,
    window_seconds=1.0,
    call_deadline_seconds=0.4,
    start_deadline_seconds=0.4,
)
"""Quick, but with deadlines that a thread which waits for its turn on a busy machine is not over."""
UUIDS = ("GPU-1", "GPU-2", "GPU-3")


class Running:
    """A sampler and its node."""

    def __init__(
        self, nvml: ScriptedNvml, timing: Timing, bus: frozenset[str] | None, **more: Any
    ) -> None:
        self.nvml = nvml
        self.bus = bus
        self.sampler = Sampler(
            load_library=lambda: nvml,
            pci_functions=lambda: self.bus,
            expected=None,
            timing=timing,
            clock=SystemClock(),
            **more,
        )

    def view(self, uuid: str) -> GpuView | None:
        return next((gpu for gpu in self.sampler.latest.gpus if gpu.uuid == uuid), None)

    def state(self, uuid: str) -> State | None:
        view = self.view(uuid)
        return view.state if view else None

    def known(self, uuid: str) -> GpuView:
        view = self.view(uuid)
        assert view is not None
        return view

    def wait_for(self, states: dict[str, State]) -> None:
        wait_until(
            lambda: all(self.state(uuid) is state for uuid, state in states.items()),
            f"{states}; it is {[(gpu.uuid, gpu.state) for gpu in self.sampler.latest.gpus]}",
        )

    def wait_for_snapshots(self, count: int) -> None:
        begin = self.sampler.latest.sequence
        wait_until(lambda: self.sampler.latest.sequence >= begin + count, "snapshots")

    def wait_for_calls(self, count: int, uuid: str) -> None:
        begin = self.nvml.count_calls(uuid=uuid)
        wait_until(lambda: self.nvml.count_calls(uuid=uuid) >= begin + count, f"calls of {uuid}")


Start = Callable[..., Running]


def nvml_threads_of(running: Running) -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("gpu-nvml-")
        and getattr(getattr(thread, "_target", None), "__self__", None) is not None
        and thread._target.__self__.line.library is running.nvml  # type: ignore[attr-defined]
    ]


@contextmanager
def starting() -> Iterator[Start]:
    """Starts samplers; each is stopped at the end, and every call that hangs returns."""
    running: list[Running] = []

    def start_sampler(
        *uuids: str,
        timing: Timing = QUICK,
        prepare: Callable[[ScriptedNvml], None] = lambda _: None,
        bus: frozenset[str] | None = frozenset(map(address_of, UUIDS)),
        closing_calls: tuple[ClosingCall, ...] = (),
        holder: Callable[[], list[str]] | None = None,
        **more: Any,
    ) -> Running:
        nvml = ScriptedNvml(*(uuids or UUIDS))
        prepare(nvml)
        one = Running(nvml, timing, bus, **more)
        for call in closing_calls:
            one.sampler.before_closing(call)
        if holder is not None:
            one.sampler.ask_who_holds(holder)
        running.append(one)
        one.sampler.start()
        return one

    yield start_sampler
    for one in running:
        one.nvml.release_all()
        one.sampler.stop(5)
        wait_until(lambda: not nvml_threads_of(one), "workers end")  # noqa: B023


ALL_OK = dict.fromkeys(UUIDS, State.OK)
