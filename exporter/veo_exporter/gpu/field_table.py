# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of nvmlDeviceGetFieldValues: a row for each signal. Numbers are nvml.h's NVML_FI_…"""

from collections.abc import Callable, Sequence
from typing import Final

from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu.answers import Part
from veo_exporter.gpu.codes import Meaning, meaning_of
from veo_exporter.gpu.fields import (
    ALL_LINKS,
    Ask,
    Field,
    first_of,
    unsigned_value,
    wide_value,
)
from veo_exporter.gpu.nvml import NvmlError
from veo_exporter.gpu.readings import Cadence, Signal
from veo_exporter.units import (
    kibibytes_to_bytes,
    milliwatts_to_watts,
    nanoseconds_to_seconds,
)

MAX_LINKS: Final = 36
"""NVML_NVLINK_MAX_LINKS: no board has more."""
_LINK_COUNT: Final = 91
_LINK_STATE: Final = 165


def _one(
    signal: Signal, *field_ids: int, convert: Callable[[float], float] = float, scope: int = 0
) -> Field:
    asks = tuple(Ask(field_id, scope) for field_id in field_ids)
    return Field((signal,), asks, first_of(convert))


def _over_links(signal: Signal, field_id: int, convert: Callable[[float], float] = float) -> Field:
    return _one(signal, field_id, convert=convert, scope=ALL_LINKS)


def _pcie_bytes(signal: Signal, field_id: int) -> Field:
    return Field((signal,), (Ask(field_id, value=wide_value),), first_of())


def _nvlink_bytes(signal: Signal, field_id: int, nvlink5_field_id: int) -> Field:
    # The older one counts KiB, that of NVLink 5 bytes.
    asks = (Ask(field_id, ALL_LINKS), Ask(nvlink5_field_id, ALL_LINKS))
    return Field((signal,), asks, first_of(kibibytes_to_bytes, float))


def _links_up(numbers: Sequence[float | NvmlError]) -> tuple[Part, Part]:
    """All links, and those that are up. A board says NOT_SUPPORTED of each link that it lacks."""
    count, *states = numbers
    told = [state for state in states if not isinstance(state, NvmlError)]
    failed = (
        state
        for state in states
        if isinstance(state, NvmlError) and meaning_of(state.code) is not Meaning.UNSUPPORTED
    )
    if error := next(failed, None):
        return count, error
    if told or count == 0:
        return count, sum(state == 1 for state in told)
    return count, next(state for state in states if isinstance(state, NvmlError))


def _recovery_action(numbers: Sequence[float | NvmlError]) -> tuple[Part, ...]:
    """1 for the action that holds, 0 for the others."""
    (number,) = numbers
    names = (*health.RECOVERY_ACTIONS, health.RECOVERY_OTHER)
    if isinstance(number, NvmlError):
        return (number,) * len(names)
    place = min(int(number), len(health.RECOVERY_ACTIONS))
    return tuple(float(one == place) for one in range(len(names)))


_THROTTLE_FIELDS: Final = dict(
    zip(health.THROTTLE_REASONS_COUNTED, (74, 76, 269, 270, 271), strict=True)
)
# The older field counts over all lanes and links; the newer one is summed by its scope.
_NVLINK_ERROR_FIELDS: Final = dict(
    zip(links.NVLINK_ERRORS_KNOWN, ((52, 161), (59, 162), (38, 163), (45,), (160,)), strict=True)
)
_NVLINK_PACKET_ERROR_FIELDS: Final = dict(
    zip(
        links.NVLINK_PACKET_ERRORS_KNOWN,
        (206, 207, 208, 209, 210, 211, 212, 214, 219, 221),
        strict=True,
    )
)
_FIRST_PCIE_ERROR: Final = 173
_FIRST_MARGIN_THRESHOLD: Final = 193


def _nvlink_error(error: str, field_ids: tuple[int, ...]) -> Field:
    total, *by_link = field_ids
    asks = (Ask(total), *(Ask(field_id, ALL_LINKS) for field_id in by_link))
    return Field((links.NVLINK_ERRORS.series(error),), asks, first_of())


FIELDS: Final[dict[Cadence, tuple[Field, ...]]] = {
    Cadence.FAST: (),
    Cadence.FULL: (
        # Some drivers name another type; DCGM reads it so, whatever they say.
        Field((catalog.MEMORY_TEMPERATURE,), (Ask(82, value=unsigned_value),), first_of()),
        # Not 185, the mean: nvmlDeviceGetPowerUsage gives it, and this way it can take 3 ms.
        _one(board.POWER_INSTANT, 186, convert=milliwatts_to_watts),
        *(
            _one(
                health.THROTTLE_DRIVER_SECONDS.series(reason),
                field_id,
                convert=nanoseconds_to_seconds,
            )
            for reason, field_id in _THROTTLE_FIELDS.items()
        ),
        _one(health.REMAPPED_ROWS.series("correctable"), 142),
        _one(health.REMAPPED_ROWS.series("uncorrectable"), 143),
        _one(health.REMAP_PENDING, 144),
        _one(health.REMAP_FAILURE, 145),
        Field(
            tuple(
                health.RECOVERY_ACTION.series(action)
                for action in (*health.RECOVERY_ACTIONS, health.RECOVERY_OTHER)
            ),
            (Ask(230),),
            _recovery_action,
        ),
        # The call that gives a rate instead, nvmlDeviceGetPcieThroughput, takes 20 ms for each.
        _pcie_bytes(links.PCIE_TRANSMIT, 197),
        _pcie_bytes(links.PCIE_RECEIVE, 198),
        _one(links.PCIE_REPLAYS, 94),
        _one(links.PCIE_REPLAY_ROLLOVERS, 95),
        _one(links.PCIE_RECOVERIES, 169),
        *(
            _one(links.PCIE_ERRORS.series(error), _FIRST_PCIE_ERROR + place)
            for place, error in enumerate(links.PCIE_ERRORS_KNOWN)
        ),
        Field(
            (links.NVLINK_LINKS, links.NVLINK_LINKS_UP),
            (Ask(_LINK_COUNT), *(Ask(_LINK_STATE, link) for link in range(MAX_LINKS))),
            _links_up,
        ),
        _nvlink_bytes(links.NVLINK_TRANSMIT, 138, 202),
        _nvlink_bytes(links.NVLINK_RECEIVE, 139, 204),
        _over_links(links.NVLINK_RAW_TRANSMIT, 140, kibibytes_to_bytes),
        _over_links(links.NVLINK_RAW_RECEIVE, 141, kibibytes_to_bytes),
        *(_nvlink_error(error, field_ids) for error, field_ids in _NVLINK_ERROR_FIELDS.items()),
        *(
            _over_links(links.NVLINK_PACKET_ERRORS.series(error), field_id)
            for error, field_id in _NVLINK_PACKET_ERROR_FIELDS.items()
        ),
    ),
    Cadence.STATIC: (
        *(
            _one(
                board.TEMPERATURE_MARGIN_THRESHOLD.series(threshold),
                _FIRST_MARGIN_THRESHOLD + place,
            )
            for place, threshold in enumerate(board.THRESHOLDS)
        ),
        _one(health.RETIRED_PAGES.series("single_bit"), 29),
        _one(health.RETIRED_PAGES.series("double_bit"), 30),
        _one(health.RETIREMENT_PENDING, 31),
    ),
}
"""One call for each cadence that has any."""
