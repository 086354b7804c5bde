# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a scenario's node is like at a time: pure functions of the scenario and the time."""

import math
from dataclasses import dataclass, field, replace
from typing import Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.throttle import REASONS
from veo_exporter.simulate.scenario import Happening, Phase, Scenario, What

ANY: Final = "*"
"""Every function."""
RIPPLE: Final = 0.015
"""Share by which steady work goes up and down, so that a curve looks alive."""
NOT_WITH_MIG: Final = (
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetEncoderUtilization",
    "nvmlDeviceGetDecoderUtilization",
    "nvmlDeviceGetJpgUtilization",
    "nvmlDeviceGetOfaUtilization",
    "nvmlDeviceGetProcessesUtilizationInfo",
)
"""What a driver does not tell of a GPU that is divided."""
_BITS: Final = {name: bit for bit, name in REASONS.items()}


@dataclass(frozen=True, slots=True)
class Condition:
    """What is wrong with one GPU, apart from its work."""

    codes: dict[str, int] = field(default_factory=dict)
    hung: frozenset[str] = frozenset()
    hidden: bool = False
    throttle_mask: int = 0

    def code(self, function: str) -> int:
        return self.codes.get(ANY) or self.codes.get(function) or 0

    def hangs(self, function: str) -> bool:
        return ANY in self.hung or function in self.hung


@dataclass(frozen=True, slots=True)
class Activity:
    """What one GPU is doing."""

    phase: str
    utilization: float
    memory_copy_utilization: float
    memory_used: float
    power: float
    temperature_celsius: float
    decoder_utilization: float


def story_time(scenario: Scenario, elapsed_seconds: float) -> float:
    """Where in its story the scenario is."""
    return elapsed_seconds % scenario.repeat_every if scenario.repeat_every else elapsed_seconds


def driver_loaded(scenario: Scenario, elapsed_seconds: float) -> bool:
    """Whether the driver is there."""
    loaded = True
    for happening in _so_far(scenario, elapsed_seconds):
        if happening.what is What.UNLOAD_DRIVER:
            loaded = False
        elif happening.what is What.LOAD_DRIVER:
            loaded = True
    return loaded


def condition_of(scenario: Scenario, gpu: int, elapsed_seconds: float) -> Condition:
    """What is wrong with a GPU."""
    unsupported = dict.fromkeys(scenario.board.unsupported, int(ReturnCode.NOT_SUPPORTED))
    if any(division.gpu == gpu for division in scenario.mig):
        unsupported |= dict.fromkeys(NOT_WITH_MIG, int(ReturnCode.NOT_SUPPORTED))
    condition = Condition(codes=unsupported)
    for happening in _so_far(scenario, elapsed_seconds):
        if not happening.gpus or gpu in happening.gpus:
            condition = _apply(condition, happening, unsupported)
    return condition


def _so_far(scenario: Scenario, elapsed_seconds: float) -> list[Happening]:
    now = story_time(scenario, elapsed_seconds)
    return sorted(
        (h for h in scenario.happenings if h.at <= now), key=lambda happening: happening.at
    )


def _apply(condition: Condition, happening: Happening, unsupported: dict[str, int]) -> Condition:
    function = happening.function or ANY
    match happening.what:
        case What.LOSE:
            return replace(condition, codes={**condition.codes, ANY: int(ReturnCode.GPU_IS_LOST)})
        case What.REQUIRE_RESET:
            return replace(
                condition, codes={**condition.codes, ANY: int(ReturnCode.RESET_REQUIRED)}
            )
        case What.FAIL:
            return replace(condition, codes={**condition.codes, function: happening.code or 0})
        case What.RECOVER | What.SUCCEED if function is ANY:
            return replace(condition, codes=unsupported)
        case What.RECOVER | What.SUCCEED:
            return replace(condition, codes={**condition.codes, function: 0})
        case What.HANG:
            return replace(condition, hung=condition.hung | {function})
        case What.ANSWER:
            answering = condition.hung if function is ANY else {function}
            return replace(condition, hung=condition.hung - answering)
        case What.HIDE | What.SHOW:
            return replace(condition, hidden=happening.what is What.HIDE)
        case What.THROTTLE:
            mask = condition.throttle_mask | _BITS[happening.reason or ""]
            return replace(condition, throttle_mask=mask)
        case What.UNTHROTTLE:
            return replace(condition, throttle_mask=0)
        case What.UNLOAD_DRIVER | What.LOAD_DRIVER:
            return condition


def activity_of(scenario: Scenario, gpu: int, elapsed_seconds: float) -> Activity:
    """What a GPU is doing. Each GPU is at another place of the same round of work."""
    phase = _phase_at(scenario, _place(scenario, gpu, elapsed_seconds))
    # Two waves whose periods do not fit together: it never quite repeats.
    wave = math.sin(elapsed_seconds * 0.9 + gpu) + 0.6 * math.sin(
        elapsed_seconds * 0.37 + 2.1 * gpu
    )
    ripple = 1 + RIPPLE * wave / 1.6
    return Activity(
        phase=phase.name,
        utilization=min(phase.utilization * ripple, 1.0),
        memory_copy_utilization=min(phase.memory_copy_utilization * ripple, 1.0),
        memory_used=phase.memory_used,
        power=min(phase.power * ripple, 1.0),
        temperature_celsius=phase.temperature_celsius + wave + gpu % 3,
        decoder_utilization=phase.decoder_utilization,
    )


def energy_joules(scenario: Scenario, gpu: int, elapsed_seconds: float) -> float:
    """Energy since the start: the phases' power over time, the ripple left out."""
    length = _round_length(scenario)
    start, end = _place(scenario, gpu, 0.0), _place(scenario, gpu, 0.0) + elapsed_seconds
    whole = sum(phase.lasts * phase.power for phase in scenario.work)

    def until(place: float) -> float:
        rounds, rest = divmod(place, length)
        total = rounds * whole
        for phase in scenario.work:
            taken = min(rest, phase.lasts)
            total += taken * phase.power
            rest -= taken
        return total

    return (until(end) - until(start)) * scenario.board.power_limit_watts


def throttled_seconds(scenario: Scenario, gpu: int, elapsed_seconds: float) -> dict[str, float]:
    """For how long each reason has held a GPU's clocks down since the start."""
    stories, rest = (
        divmod(elapsed_seconds, scenario.repeat_every)
        if scenario.repeat_every
        else (0.0, elapsed_seconds)
    )
    whole = _throttled_in_story(scenario, gpu, scenario.repeat_every or 0.0)
    told = _throttled_in_story(scenario, gpu, rest)
    return {reason: stories * whole[reason] + told[reason] for reason in told}


def _throttled_in_story(scenario: Scenario, gpu: int, until: float) -> dict[str, float]:
    """Likewise, from the beginning of the story until a time in it."""
    seconds = dict.fromkeys(_BITS, 0.0)
    since: dict[str, float] = {}
    own = (h for h in scenario.happenings if not h.gpus or gpu in h.gpus)
    for happening in sorted(own, key=lambda happening: happening.at):
        if happening.at > until:
            break
        if happening.what is What.THROTTLE:
            since.setdefault(happening.reason or "", happening.at)
        elif happening.what is What.UNTHROTTLE:
            for reason, at in since.items():
                seconds[reason] += happening.at - at
            since.clear()
    for reason, at in since.items():
        seconds[reason] += until - at
    return seconds


def _round_length(scenario: Scenario) -> float:
    return sum(phase.lasts for phase in scenario.work)


def _place(scenario: Scenario, gpu: int, elapsed_seconds: float) -> float:
    return elapsed_seconds + gpu * _round_length(scenario) / max(scenario.gpus, 1)


def _phase_at(scenario: Scenario, place: float) -> Phase:
    rest = place % _round_length(scenario)
    for phase in scenario.work:
        if rest < phase.lasts:
            return phase
        rest -= phase.lasts
    return scenario.work[-1]
