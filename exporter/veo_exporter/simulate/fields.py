# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulated GPU answers to nvmlDeviceGetFieldValues."""

from collections.abc import Mapping, Sequence
from typing import Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.fields import ALL_LINKS, ROW, TYPES
from veo_exporter.simulate.board import MARGIN_THRESHOLDS
from veo_exporter.simulate.node import activity_of, energy_joules, throttled_seconds
from veo_exporter.simulate.scenario import Scenario

LINKS: Final = 18
MEMORY_WARMER_CELSIUS: Final = 8
"""By how much stacked memory is warmer than the GPU beside it."""
# Traffic is made to follow the work, as energy does: at 700 W some 21 GB in a second.
PCIE_SENT_BYTES_PER_JOULE: Final = 8_000_000
PCIE_RECEIVED_SHARE: Final = 2
"""For each byte sent."""
_NVLINK_KIB_PER_JOULE: Final = 30_000

_UNSIGNED: Final = 3
_SIGNED: Final = 4
_REASON_FIELDS: Final = {
    74: "sw_power_cap",
    76: "sync_boost",
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake_slowdown",
}
# PCIe replays and recoveries, its eleven kinds of errors, rows remapped, pending and failed, no advice.
_AT_ZERO: Final = (94, 95, 169, *range(173, 184), *range(142, 146), 230)
_NVLINK_ERRORS: Final = (52, 59, 38, 45, 160)


def answer_fields(
    scenario: Scenario, gpu: int, elapsed_seconds: float, asked: Sequence[tuple[int, int]]
) -> bytes:
    """The rows that were asked for, as they lie in memory."""
    known = _fields(scenario, gpu, elapsed_seconds)
    return b"".join(_row(place, known.get(place)) for place in asked)


def _row(place: tuple[int, int], number: int | None) -> bytes:
    if number is None:
        return ROW.pack(*place, 0, 0, 0, ReturnCode.NOT_SUPPORTED, b"")
    value_type = _SIGNED if number < 0 else _UNSIGNED
    return ROW.pack(*place, 0, 0, value_type, 0, TYPES[value_type].pack(number))


def _fields(scenario: Scenario, gpu: int, elapsed_seconds: float) -> Mapping[tuple[int, int], int]:
    activity = activity_of(scenario, gpu, elapsed_seconds)
    joules = energy_joules(scenario, gpu, elapsed_seconds)
    throttled = throttled_seconds(scenario, gpu, elapsed_seconds)
    milliwatts = 1000 * activity.power * scenario.board.power_limit_watts
    plain = {
        **dict.fromkeys((*_AT_ZERO, *_NVLINK_ERRORS), 0),
        82: round(activity.temperature_celsius + MEMORY_WARMER_CELSIUS),
        186: round(milliwatts),
        **{
            field_id: round(1e9 * throttled.get(reason, 0.0))
            for field_id, reason in _REASON_FIELDS.items()
        },
        197: round(joules * PCIE_SENT_BYTES_PER_JOULE),
        198: round(joules * PCIE_SENT_BYTES_PER_JOULE * PCIE_RECEIVED_SHARE),
        91: LINKS,
        **dict(enumerate(MARGIN_THRESHOLDS, start=193)),
    }
    kibibytes = round(joules * _NVLINK_KIB_PER_JOULE)
    return {
        **{(field_id, 0): number for field_id, number in plain.items()},
        **{(165, link): 1 for link in range(LINKS)},
        **{(field_id, ALL_LINKS): kibibytes for field_id in (138, 139)},
        # A quarter more with what the protocol adds.
        **{(field_id, ALL_LINKS): kibibytes * 5 // 4 for field_id in (140, 141)},
    }
