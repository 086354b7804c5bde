# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which GPM metrics are asked for, and how their numbers become signals."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from veo_exporter.catalog import MetricSpec, Series
from veo_exporter.catalog import gpu_mig as mig
from veo_exporter.catalog import gpu_profiling as catalog
from veo_exporter.gpu.answers import NOTHING, Part
from veo_exporter.gpu.codes import Meaning, meaning_of
from veo_exporter.gpu.nvml import NvmlError
from veo_exporter.units import mebibytes_to_bytes, percent_to_ratio

FUNCTION: Final = "nvmlGpmMetricsGet"


@dataclass(frozen=True, slots=True)
class GpmSignal:
    """A signal of a GPU, the same of a GPU instance, and the metrics (nvmlGpmMetricId_t) that make it:
    of several engines, the busiest counts."""

    whole: MetricSpec | Series
    instance: MetricSpec | Series
    ids: tuple[int, ...]
    convert: Callable[[float], float] = percent_to_ratio


def _part(name: str, *ids: int) -> GpmSignal:
    return GpmSignal(catalog.ACTIVE[name], mig.MIG_PROFILING_ACTIVE.series(name), ids)


_USUAL_IDS: Final = dict(zip(catalog.USUAL_PARTS, (1, 2, 5, 10), strict=True))
_FURTHER_IDS: Final = dict(
    zip(
        catalog.FURTHER_PARTS,
        (
            (11,),
            (12,),
            (13,),
            tuple(range(30, 38)),
            tuple(range(166, 170)),
            tuple(range(40, 48)),
            (50, 51),
        ),
        strict=True,
    )
)

USUAL: Final = (
    *(_part(name, number) for name, number in _USUAL_IDS.items()),
    GpmSignal(catalog.PROFILING_OCCUPANCY, mig.MIG_PROFILING_OCCUPANCY, (3,)),
    GpmSignal(
        catalog.PROFILING_PCIE_TRANSMIT, mig.MIG_PROFILING_PCIE_TRANSMIT, (20,), mebibytes_to_bytes
    ),
    GpmSignal(
        catalog.PROFILING_PCIE_RECEIVE, mig.MIG_PROFILING_PCIE_RECEIVE, (21,), mebibytes_to_bytes
    ),
)
ALL: Final = (*USUAL, *(_part(name, *ids) for name, ids in _FURTHER_IDS.items()))

SERIES: Final = tuple(
    signal for one in ALL for signal in (one.whole, one.instance) if isinstance(signal, Series)
)
"""All that have labels known beforehand."""


def number_of(wanted: GpmSignal, rows: Mapping[int, tuple[int, float]]) -> Part:
    """A signal's number from the return codes and values of its metrics; each row has a code of its own.

    A board has some engines of a kind and not others. What it has not yet a number for is NaN.
    """
    values = [rows[one][1] for one in wanted.ids if rows[one][0] == 0]
    known = [value for value in values if not math.isnan(value)]
    if known:
        return wanted.convert(max(known))
    if values:
        return NOTHING
    codes = [rows[one][0] for one in wanted.ids]
    told = (code for code in codes if meaning_of(code) is not Meaning.UNSUPPORTED)
    return NvmlError(FUNCTION, next(told, codes[0]))
