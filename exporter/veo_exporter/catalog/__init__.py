# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every metric, declared once: a row for each, one file for each subject."""

from types import ModuleType
from typing import Final

from veo_exporter.catalog import (
    exporter,
    gpu,
    gpu_life,
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
