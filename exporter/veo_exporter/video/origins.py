# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where files come from, as labels within a bound, whatever senders call themselves."""

import threading
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from veo_exporter.video.request import EVENT_SOURCE, ProbeRequest

OTHER: Final = "other"
UNKNOWN_ENGINE: Final = "unknown"
NO_VARIANT: Final = "none"
MOST_NAMES: Final = 20
MOST_ORIGINS: Final = 20
"""Each has some eighty series."""


class Origin(NamedTuple):
    """In the order in which the catalogue declares them."""

    source: str
    engine: str = UNKNOWN_ENGINE
    variant: str = NO_VARIANT
    profile: str = OTHER


ELSEWHERE: Final = Origin(OTHER, OTHER, OTHER, OTHER)


class Origins:
    """Admits names as they come until there are too many; those of `expected` always.

    `refused` is told of each name beyond its bound, by label, and of each combination as "origin".
    """

    def __init__(
        self,
        expected: Iterable[ProbeRequest],
        refused: Callable[[str], None],
        *,
        most_names: int = MOST_NAMES,
        most_origins: int = MOST_ORIGINS,
    ) -> None:
        self._refused = refused
        self._most_names = most_names
        self._lock = threading.Lock()
        self.expected = tuple(
            dict.fromkeys([Origin(EVENT_SOURCE), *(_said(request) for request in expected)])
        )
        self._most_origins = max(most_origins, len(self.expected))
        self._sources = {origin.source for origin in self.expected}
        self._names = {
            label: {getattr(origin, label) for origin in self.expected} | {OTHER}
            for label in ("engine", "variant", "profile")
        }
        self._known = set(self.expected)

    def place(self, request: ProbeRequest, *, silently: bool = False) -> Origin:
        """The labels of a file. Silently, `refused` is not told: it is to hear of each file once."""
        said = _said(request)
        refused: list[str] = []
        with self._lock:
            origin = Origin(
                said.source if said.source in self._sources else OTHER,
                self._admit("engine", said.engine, refused),
                self._admit("variant", said.variant, refused),
                self._admit("profile", said.profile, refused),
            )
            if origin not in self._known and len(self._known) >= self._most_origins:
                refused.append("origin")
                origin = ELSEWHERE
            elif origin not in self._known:
                self._known.add(origin)
        for label in () if silently else refused:
            self._refused(label)
        return origin

    def reserve(self, request: ProbeRequest) -> Origin:
        """The labels of files that are known to come: they are admitted whatever the bounds."""
        said = _said(request)
        with self._lock:
            if said not in self._known:
                self._known.add(said)
                self._most_origins += 1
            for label, names in self._names.items():
                names.add(getattr(said, label))
        return said

    def _admit(self, label: str, name: str, refused: list[str]) -> str:
        names = self._names[label]
        if name in names:
            return name
        if len(names) > self._most_names:
            refused.append(label)
            return OTHER
        names.add(name)
        return name


def _said(request: ProbeRequest) -> Origin:
    return Origin(
        request.source,
        request.engine or UNKNOWN_ENGINE,
        request.variant or NO_VARIANT,
        request.profile or OTHER,
    )
