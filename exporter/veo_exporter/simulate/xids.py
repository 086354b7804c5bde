# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The Xids that a scenario's happenings bring with them, and the events by which NVML tells of them."""

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.mig import NO_INSTANCE
from veo_exporter.simulate.scenario import Happening, Scenario, What
from veo_exporter.simulate.session import Session, SimulatedNvmlError

XID_EVENT: Final = 0x8
SUPPORTED_EVENTS: Final = 0x1 | 0x2 | XID_EVENT | 0x10 | 0x100
"""ECC errors of one bit and of two, Xids, changes of clocks and of MIG."""
# Fallen off the bus; the GPU's own processor does not answer; an error of memory that only a reset ends.
_XIDS: Final = {What.LOSE: 79, What.HANG: 119, What.REQUIRE_RESET: 95}


@dataclass(frozen=True, slots=True)
class Xid:
    """One GPU's, at a time since the start."""

    at_seconds: float
    gpu: int
    code: int


def xids_between(scenario: Scenario, after: float, until: float) -> list[Xid]:
    """In the order of time; `after` itself is left out."""
    length = scenario.repeat_every
    stories = range(math.floor(after / length), math.floor(until / length) + 1) if length else (0,)
    found = [
        Xid(at, gpu, code)
        for story in stories
        for happening in scenario.happenings
        if after < (at := story * (length or 0.0) + happening.at) <= until
        for code in _codes(happening)
        for gpu in happening.gpus or range(scenario.gpus)
    ]
    return sorted(found, key=lambda xid: (xid.at_seconds, xid.gpu))


def _codes(happening: Happening) -> Iterator[int]:
    # One function that does not return is a fault of the driver's, and not of the GPU.
    if happening.what in _XIDS and happening.function is None:
        yield _XIDS[happening.what]


@dataclass(slots=True)
class EventSet:
    """Who is in it since when, what is still to be told, and until when it has been looked at."""

    heard_until: float
    since: dict[int, float] = field(default_factory=dict)
    waiting: deque[Xid] = field(default_factory=deque)


class Events:
    """The functions that tell."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def nvmlEventSetCreate(self) -> EventSet:
        self._session.require()
        return EventSet(heard_until=self._session.elapsed)

    def nvmlEventSetFree(self, _events: EventSet) -> None:
        self._session.require()

    def nvmlDeviceGetSupportedEventTypes(self, gpu: int) -> int:
        self._session.ask(gpu, "nvmlDeviceGetSupportedEventTypes")
        return SUPPORTED_EVENTS

    def nvmlDeviceRegisterEvents(self, gpu: int, types: int, events: EventSet) -> None:
        self._session.ask(gpu, "nvmlDeviceRegisterEvents")
        if types & XID_EVENT:
            events.since.setdefault(gpu, self._session.elapsed)

    def nvmlEventSetWait_v2(self, events: EventSet, milliseconds: int) -> Any:
        xid = self._next(events)
        if xid is None and milliseconds:
            # As NVML's own wait: nothing ends it early but an event, and here the next look finds that.
            time.sleep(milliseconds / 1000)
            xid = self._next(events)
        if xid is None:
            raise SimulatedNvmlError(ReturnCode.TIMEOUT)
        return SimpleNamespace(
            device=xid.gpu,
            eventType=XID_EVENT,
            eventData=xid.code,
            gpuInstanceId=NO_INSTANCE,
            computeInstanceId=NO_INSTANCE,
        )

    def _next(self, events: EventSet) -> Xid | None:
        self._session.require()
        now = self._session.elapsed
        events.waiting += (
            xid
            for xid in xids_between(self._session.scenario, events.heard_until, now)
            if xid.at_seconds > events.since.get(xid.gpu, math.inf)
        )
        events.heard_until = now
        return events.waiting.popleft() if events.waiting else None
