# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which files are being probed and which were lately, so that each counts once. No file is touched."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from veo_exporter.video.definitions import VideoReport
from veo_exporter.video.gate import Identity
from veo_exporter.video.request import ProbeRequest

MOST_REMEMBERED: Final = 500
"""Some three kilobytes each."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was found, and when probing began and ended, in nanoseconds of Unix time."""

    report: VideoReport
    start_unix_ns: int
    end_unix_ns: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is: probe the file, or know what was told of it; neither while another is at it."""

    probe: bool
    told: Told | None = None


@dataclass(slots=True)
class _UnderWay:
    request: ProbeRequest
    followers: list[ProbeRequest] = field(default_factory=list)


class ProbeMemory:
    """May be asked from several threads. A file without an identity is never remembered."""

    def __init__(self, most_remembered: int = MOST_REMEMBERED) -> None:
        self._most_remembered = most_remembered
        self._lock = threading.Lock()
        self._under_way: dict[Identity, _UnderWay] = {}
        self._told: OrderedDict[Identity, Told] = OrderedDict()

    def begin(self, identity: Identity | None, request: ProbeRequest) -> Turn:
        """Somebody wants to probe a file."""
        if identity is None:
            return Turn(probe=True)
        with self._lock:
            if told := self._told.get(identity):
                self._told.move_to_end(identity)
                return Turn(False, told)
            under_way = self._under_way.get(identity)
            if under_way is None:
                self._under_way[identity] = _UnderWay(request)
                return Turn(probe=True)
            if request.named_by_event:
                if not under_way.request.named_by_event:
                    # The job's word decides what the file is held against; the folder's probe is void.
                    under_way.request = request
                    return Turn(probe=True)
                under_way.followers.append(request)
            return Turn(probe=False)

    def end(
        self, identity: Identity | None, request: ProbeRequest, told: Told
    ) -> tuple[ProbeRequest, ...] | None:
        """Who else waits for what was found; None if the probe is void, and is not to be told."""
        if identity is None:
            return ()
        with self._lock:
            under_way = self._under_way.get(identity)
            if under_way is None or under_way.request is not request:
                return None
            del self._under_way[identity]
            self._told[identity] = replace(told, report=slim(told.report))
            while len(self._told) > self._most_remembered:
                self._told.popitem(last=False)
            return tuple(under_way.followers)

    def give_up(self, identity: Identity | None, request: ProbeRequest) -> None:
        """Nothing was found out: the next one may try."""
        with self._lock:
            under_way = self._under_way.get(identity) if identity else None
            if identity and under_way and under_way.request is request:
                del self._under_way[identity]


def slim(report: VideoReport) -> VideoReport:
    """Without the lists that grow with a film."""
    cadence = report.cadence
    return replace(
        report,
        keyframes=None,
        cadence=cadence and replace(cadence, gaps=(), deviations=()),
    )
