# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the kernel's log told, as metric families."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

from veo_exporter.catalog import kernel as catalog
from veo_exporter.exposition import Family, Labels
from veo_exporter.logs.kernel import MESSAGES
from veo_exporter.logs.kernel_messages import OomScope


class KernelLogSource:
    """Counts of lines and kills, and which sources of what happens are heard."""

    def __init__(
        self, *, was_read: Callable[[], bool], sources_up: Callable[[], Mapping[str, bool]]
    ) -> None:
        self.lines: Counter[str] = Counter()
        self.kills: Counter[OomScope] = Counter()
        self._was_read = was_read
        self._sources_up = sources_up

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        counts = self.lines.total(), self.kills.total()
        return counts, self._was_read(), tuple(self._sources_up().items())

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        up: list[tuple[Labels, float]] = [
            ((source,), up) for source, up in self._sources_up().items()
        ]
        yield Family(catalog.EVENT_SOURCE_UP, up)
        if not self._was_read():
            # Nobody would have told us: no zero, but nothing.
            return
        kills: list[tuple[Labels, float]] = [
            ((scope.value,), self.kills[scope]) for scope in OomScope
        ]
        yield Family(catalog.OOM_KILLS, kills)
        lines: list[tuple[Labels, float]] = [
            ((message,), self.lines[message]) for message in MESSAGES
        ]
        yield Family(catalog.KERNEL_LOG_LINES, lines)
