# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a scenario will make Alertmanager say, and when.

The story itself goes on at its own pace: only what Prometheus and Alertmanager wait for is shorter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import yaml

from alerts.chart import alerts
from alerts.thresholds import SCRAPE_INTERVAL_SECONDS, load_thresholds, seconds_in
from tools.programs import ROOT
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.simulate.node import ANY, condition_of
from veo_exporter.simulate.scenario import Happening, Scenario

NOTICED_SECONDS: Final = 10.0
"""At most: until the exporter has noticed (its full interval is 5 s), with room for a busy machine."""
_ALERT_OF_CODE: Final = {
    int(ReturnCode.GPU_IS_LOST): "VeoGpuLost",
    int(ReturnCode.RESET_REQUIRED): "VeoGpuResetRequired",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A stretch of the story in which an alert's cause is there on any GPU; endless without an end."""

    alert: str
    begin: float
    end: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Seconds that an alert takes from its cause to the pager, and back; least and most."""

    lookback: float
    hold: float
    told: tuple[float, float]
    resolved: tuple[float, float]


def troubles(scenario: Scenario) -> list[Trouble]:
    """One round of the story, by when they begin."""
    found: list[Trouble] = []
    running: dict[str, float] = {}
    for time in sorted({happening.at for happening in scenario.happenings}):
        now = {
            alert
            for gpu in range(scenario.gpus)
            if (alert := _alert_of(scenario, gpu, time)) is not None
        }
        found += [
            Trouble(alert=alert, begin=running.pop(alert), end=time)
            for alert in running.keys() - now
        ]
        for alert in now - running.keys():
            running[alert] = time
    found += [
        Trouble(alert=alert, begin=begin, end=scenario.repeat_every)
        for alert, begin in running.items()
    ]
    return sorted(found, key=lambda trouble: (trouble.begin, trouble.alert))


def _alert_of(scenario: Scenario, gpu: int, time: float) -> str | None:
    condition = condition_of(scenario, gpu, time)
    if condition.hung:
        return "VeoGpuHung"
    if condition.hidden:
        return "VeoGpuLost"
    return _ALERT_OF_CODE.get(condition.codes.get(ANY, 0))


def waiting(alert: str, times_faster: float) -> Waiting:
    """From the rules' and Alertmanager's own files."""
    (rule,) = (rule for rule in alerts() if rule.alert == alert)
    route: dict[str, Any] = yaml.safe_load((ROOT / "alerts/alertmanager.yaml").read_text())["route"]
    (pager,) = (child for child in route["routes"] if child["receiver"] == "pager")

    def shorter(duration: str | None) -> float:
        return seconds_in(duration) / times_faster if duration else 0.0

    lookback = shorter(load_thresholds().lookback)
    hold, keep = shorter(rule.hold), shorter(rule.keep_firing_for)
    wait = shorter(pager["group_wait"])
    between = shorter(pager.get("group_interval") or route["group_interval"])
    # A scrape, and the evaluations that find and settle it.
    steps = 3 * SCRAPE_INTERVAL_SECONDS / times_faster
    quiet = lookback + keep
    return Waiting(
        lookback=lookback,
        hold=hold,
        told=(hold + wait, hold + wait + steps + NOTICED_SECONDS),
        resolved=(max(quiet - steps, 0.0), quiet + between + steps + NOTICED_SECONDS),
    )


def tell(scenario: Scenario, started: datetime, times_faster: float) -> list[str]:
    """The first round, a line for each thing that happens and for what the pager hears of it."""
    lines = [
        (happening.at, 0, f"{_clock(started, happening.at)}  {_words(happening)}")
        for happening in scenario.happenings
    ]
    for trouble in troubles(scenario):
        lines += _heard(trouble, scenario.repeat_every, times_faster)
    told = [line for _, _, line in sorted(lines)] or ["nothing happens: the GPUs work"]
    if scenario.repeat_every is not None:
        told.append(f"{_clock(started, scenario.repeat_every)}  the story starts over")
    return told


def _heard(
    trouble: Trouble, repeat_every: float | None, times_faster: float
) -> Iterator[tuple[float, int, str]]:
    wait = waiting(trouble.alert, times_faster)
    lasts = None if trouble.end is None else trouble.end - trouble.begin
    if lasts is not None and lasts + wait.lookback < wait.hold:
        text = f"too short for {trouble.alert}, which is held for {_seconds(wait.hold)}"
        yield trouble.begin, 1, f"          {text}"
        return
    perhaps = lasts is not None and lasts < wait.hold + NOTICED_SECONDS
    text = f"FIRING {trouble.alert} {_between(wait.told)} later"
    yield trouble.begin, 1, f"          the pager {'may hear' if perhaps else 'hears'} {text}"
    if trouble.end is None:
        yield trouble.begin, 2, f"          it does not end, and {trouble.alert} is not resolved"
        return
    text = f"RESOLVED {trouble.alert} {_between(wait.resolved)} later"
    if (
        repeat_every is not None
        and trouble.end + wait.resolved[1] > repeat_every + trouble.begin + wait.told[0]
    ):
        text += ", or not at all: it begins again before"
    yield trouble.end, 1, f"          the pager hears {text}"


def _words(happening: Happening) -> str:
    what = happening.what.value.replace("_", " ")
    numbers = ", ".join(map(str, happening.gpus))
    of_driver = "driver" in what
    whom = "" if of_driver else (f" GPU {numbers}" if numbers else " all GPUs")
    details = [
        *([happening.function] if happening.function else []),
        *([f"code {happening.code}"] if happening.code is not None else []),
        *([happening.reason] if happening.reason else []),
    ]
    return f"{what}{whom}" + (f" ({', '.join(details)})" if details else "")


def _clock(started: datetime, seconds: float) -> str:
    return (started + timedelta(seconds=seconds)).strftime("%H:%M:%S")


def _between(seconds: tuple[float, float]) -> str:
    return f"{round(seconds[0])} to {_seconds(seconds[1])}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s"
