# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Pause and calls as metric families."""

from collections.abc import Callable, Hashable, Iterable, Mapping

from veo_exporter.catalog import gpu_life as catalog
from veo_exporter.exposition import Family
from veo_exporter.gpu.nvml import Tally
from veo_exporter.gpu.pause import PauseStatus


class LifeSource:
    """Reads what is known now. Calls are summed once a second, however many scrape."""

    def __init__(
        self, status: Callable[[], PauseStatus], totals: Callable[[], Mapping[str, Tally]]
    ) -> None:
        self._status = status
        self._totals = totals

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        return int(now_monotonic_seconds), self._status()

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        pause = self._status().pause
        yield Family(catalog.PAUSED, [((), pause is not None)])
        yield Family(catalog.PAUSE_EXPIRY, [((), pause.until_unix_seconds if pause else 0)])
        totals = sorted(self._totals().items())
        yield Family(catalog.NVML_CALLS, [((name,), tally.calls) for name, tally in totals])
        yield Family(
            catalog.NVML_CALL_SECONDS, [((name,), tally.seconds) for name, tally in totals]
        )
