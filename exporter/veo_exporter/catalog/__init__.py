# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every metric, declared once: a row for each, one file for each subject."""

from types import ModuleType
from typing import Final

from veo_exporter.catalog import (
    advice,
    exporter,
    gpu,
    gpu_board,
    gpu_engines,
    gpu_health,
    gpu_life,
    gpu_links,
    gpu_mig,
    gpu_processes,
    gpu_profiling,
    gpu_samples,
    jobs,
    kernel,
    kubernetes,
    traces,
    video,
    xid,
)
from veo_exporter.catalog.spec import Kind, Label, MetricSpec, Series


def _rows(subject: ModuleType) -> tuple[MetricSpec, ...]:
    return tuple(value for value in vars(subject).values() if isinstance(value, MetricSpec))


CATALOG: Final[tuple[MetricSpec, ...]] = (
    *_rows(gpu),
    *(
        spec
        for window in gpu.WINDOWS.values()
        for spec in (window.minimum, window.mean, window.peak)
    ),
    *_rows(gpu_samples),
    *_rows(gpu_engines),
    *_rows(gpu_board),
    *_rows(gpu_health),
    *_rows(gpu_links),
    *_rows(gpu_processes),
    *_rows(gpu_profiling),
    *_rows(gpu_mig),
    *_rows(advice),
    *_rows(kubernetes),
    *_rows(video),
    *_rows(traces),
    *_rows(jobs),
    *_rows(gpu_life),
    *_rows(xid),
    *_rows(kernel),
    *_rows(exporter),
)

__all__ = ["CATALOG", "Kind", "Label", "MetricSpec", "Series"]
