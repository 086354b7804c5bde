# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Pods and their GPUs as metric families."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

import structlog

from veo_exporter.catalog import kubernetes as catalog
from veo_exporter.exposition import Family
from veo_exporter.kubernetes.allocations import Allocation
from veo_exporter.kubernetes.devices import (
    GpuIdentity,
    Resolution,
    Row,
    bounded,
    resolve,
)
from veo_exporter.kubernetes.faults import Cause
from veo_exporter.kubernetes.watch import Answer, Plan

log = structlog.get_logger(__name__)

_MOST_NAMED: Final = 8
"""Device ids that a log line names."""


class PodSource:
    """The pods' side of the page. Says nothing where no kubelet was asked."""

    def __init__(
        self,
        latest: Callable[[], Answer],
        plan: Callable[[], Plan],
        gpus: Callable[[], Sequence[GpuIdentity]],
        dropped: Callable[[int], None],
    ) -> None:
        self._latest = latest
        self._plan = plan
        self._gpus = gpus
        self._dropped = dropped
        self._resolved_from: tuple[frozenset[Allocation], tuple[GpuIdentity, ...], int] | None = (
            None
        )
        self._resolution = Resolution((), ())
        self._shown: tuple[Row, ...] = ()

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        answer = self._latest()
        if not answer.asked:
            return False
        # The age is told once a second, however many scrape.
        return answer.sequence, int(now_monotonic_seconds), tuple(self._gpus()), self._plan()

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        answer = self._latest()
        if not answer.asked:
            return
        if answer.read_monotonic_seconds is not None:
            age_seconds = max(0.0, now_monotonic_seconds - answer.read_monotonic_seconds)
            if age_seconds <= self._plan().keep_seconds:
                self._resolve(answer.allocations)
                yield Family(catalog.POD_INFO, [(row.labels, 1) for row in self._shown])
                yield Family(
                    catalog.POD_DEVICES_UNRESOLVED, [((), len(self._resolution.unresolved))]
                )
            yield Family(catalog.POD_MAPPING_AGE, [((), age_seconds)])
        errors = Family(catalog.POD_MAPPING_ERRORS)
        for cause in Cause:
            errors.add((cause.value,), answer.errors.get(cause, 0))
        yield errors

    def _resolve(self, allocations: frozenset[Allocation]) -> None:
        gpus, most = tuple(self._gpus()), self._plan().max_rows
        made_from = (allocations, gpus, most)
        if self._resolved_from == made_from:
            return
        before = self._resolution
        self._resolved_from = made_from
        self._resolution = resolve(allocations, gpus)
        self._shown = bounded(self._resolution.rows, frozenset(self._shown), most)
        if left_out := len(self._resolution.rows) - len(self._shown):
            self._dropped(left_out)
        if self._resolution.unresolved and self._resolution.unresolved != before.unresolved:
            log.warning(
                "devices of pods that are no GPU known to NVML; narrow kubernetes.resource_prefixes "
                "if they are none at all",
                devices=self._resolution.unresolved[:_MOST_NAMED],
                count=len(self._resolution.unresolved),
            )
