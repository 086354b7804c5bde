# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a reload changes: settings that take hold at once. All others are refused, by name."""

from dataclasses import dataclass
from typing import Final, Self

from veo_exporter.app.advice import ladder_of
from veo_exporter.app.gpu_work import gpm_signals_of, name_limits_of
from veo_exporter.app.jobs import budgets_of, limits_of
from veo_exporter.app.life import PauseLimits, pause_limits_of
from veo_exporter.app.pods import plan_of
from veo_exporter.app.videos import probe_to_use
from veo_exporter.config import Gpu, Settings, setting_places
from veo_exporter.errors import BadConfig
from veo_exporter.gpu import GpmSignal, Ladder, NameLimits, Timing
from veo_exporter.jobs import Budgets, Limits
from veo_exporter.kubernetes import Plan
from veo_exporter.video import Probe

TAKE_HOLD: Final = frozenset(
    (section, name)
    for section, names in {
        "gpu": (
            *("fast_interval", "full_interval", "static_interval", "window"),
            *("call_deadline", "start_deadline", "expected_count", "driver_samples"),
            *("pause_default", "pause_max", "process_names", "process_names_max", "proc_root"),
            "gpm",
        ),
        "advice": ("medium_from", "low_above", "hysteresis", "sweeps", "pressure_free_bytes"),
        "kubernetes": (
            *("kubelet_socket", "interval", "deadline", "keep"),
            *("resource_prefixes", "max_rows", "max_answer_bytes"),
        ),
        "video": (
            *("roots", "ffprobe", "formats", "backlog", "deadline"),
            *("memory_limit_mebibytes", "output_limit_mebibytes", "frames_limit", "niceness"),
            *("deviation", "jitter", "gap_intervals", "consistency"),
        ),
        "jobs": (
            *("budget_presets", "budgets", "lost_after"),
            *("remember", "max_in_flight", "max_event_ids", "max_batch"),
        ),
    }.items()
    for name in names
)
"""Settings (section, name) that a reload changes. One that is not named here needs a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changeable:
    """Everything that the rooms are handed by a reload, made before any of them is touched."""

    timing: Timing
    expected_gpus: int | None
    pauses: PauseLimits
    ladder: Ladder
    process_names: NameLimits
    gpm_signals: tuple[GpmSignal, ...]
    pods: Plan
    probe: Probe
    backlog: int
    limits: Limits
    budgets: Budgets
    max_batch: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The parts as the settings say them."""
        return cls(
            timing=timing_of(settings.gpu),
            expected_gpus=settings.gpu.expected_count,
            pauses=pause_limits_of(settings.gpu),
            ladder=ladder_of(settings),
            process_names=name_limits_of(settings.gpu),
            gpm_signals=gpm_signals_of(settings.gpu),
            pods=plan_of(settings.kubernetes),
            probe=probe_to_use(settings.video),
            backlog=settings.video.backlog,
            limits=limits_of(settings.jobs),
            budgets=budgets_of(settings.jobs),
            max_batch=settings.jobs.max_batch,
        )


def refuse_what_needs_a_restart(before: Settings, after: Settings) -> None:
    """Raises BadConfig with a sentence for each such setting that is another."""
    faults = [
        f"{section}.{name} cannot change while the exporter runs: restart it"
        for section, name in setting_places()
        if (section, name) not in TAKE_HOLD
        and getattr(getattr(before, section), name) != getattr(getattr(after, section), name)
    ]
    if faults:
        raise BadConfig(faults)


def timing_of(gpu: Gpu) -> Timing:
    """The sampler's timing as the settings say it."""
    return Timing(
        fast_interval_seconds=gpu.fast_interval,
        full_interval_seconds=gpu.full_interval,
        static_interval_seconds=gpu.static_interval,
        window_seconds=gpu.window,
        call_deadline_seconds=gpu.call_deadline,
        start_deadline_seconds=gpu.start_deadline,
        driver_samples=gpu.driver_samples,
    )
