# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the exporter says of itself."""

import platform
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector

import veo_exporter
from veo_exporter.catalog import exporter as catalog
from veo_exporter.exposition.families import Family

_PROCESS: Final = {
    spec.name: spec
    for spec in (
        catalog.PROCESS_VIRTUAL_MEMORY,
        catalog.PROCESS_RESIDENT_MEMORY,
        catalog.PROCESS_START_TIME,
        catalog.PROCESS_CPU_SECONDS,
        catalog.PROCESS_OPEN_FDS,
        catalog.PROCESS_MAX_FDS,
    )
}


class OwnSource:
    """Build, mode, configuration and what the process uses."""

    def __init__(
        self,
        *,
        simulated: bool,
        configured_unix_seconds: float,
        log_lines_dropped: Callable[[], int] = lambda: 0,
    ) -> None:
        self._simulated = simulated
        self._log_lines_dropped = log_lines_dropped
        self._process = ProcessCollector(registry=CollectorRegistry())
        self._reload_successful = True
        self._configured_unix_seconds = configured_unix_seconds

    def reloaded(self, successful: bool, at_unix_seconds: float) -> None:
        """A configuration was asked for; if it was refused, the old one is still in force."""
        self._reload_successful = successful
        if successful:
            self._configured_unix_seconds = at_unix_seconds

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        # /proc is read once a second, however many scrape.
        return int(now_monotonic_seconds), self._reload_successful, self._configured_unix_seconds

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        yield Family(
            catalog.BUILD_INFO, [((veo_exporter.__version__, platform.python_version()), 1)]
        )
        yield Family(catalog.SIMULATED, [((), self._simulated)])
        yield Family(catalog.CONFIG_LAST_RELOAD_SUCCESSFUL, [((), self._reload_successful)])
        yield Family(catalog.CONFIG_LAST_RELOAD_SUCCESS, [((), self._configured_unix_seconds)])
        yield Family(catalog.LOG_LINES_DROPPED, [((), self._log_lines_dropped())])
        for metric in self._process.collect():
            for sample in metric.samples:
                # A newer client may tell more than the catalogue declares.
                if spec := _PROCESS.get(sample.name):
                    yield Family(spec, [((), sample.value)])
