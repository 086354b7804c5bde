# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the advice on frame rates."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from veo_exporter.config.section import OutOfOrder, Section


def _share(value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"must lie between 0 and 1, as 0.85, not {value:g}")
    return value


Share = Annotated[float, AfterValidator(_share)]
"""A part of something, without none and all of it."""


class Advice(Section):
    """Which frame rate a GPU's memory leaves room for (veo_gpu_recommended_frame_rate_hertz)."""

    medium_from: Share = Field(
        0.6,
        description="From this share of used memory on, 60 frames a second are advised; 120 below it.",
    )
    low_above: Share = Field(
        0.85, description="Above this share of used memory, 30 frames a second are advised."
    )
    hysteresis: Share = Field(
        0.03,
        description="How far below a threshold the share must be for the higher rate to be advised again.",
    )
    sweeps: int = Field(
        3,
        ge=3,
        le=1000,
        description="In how many sweeps running (gpu.full_interval apart) the memory must say the same.",
    )
    pressure_free_bytes: int = Field(
        1536 * 1024 * 1024,
        ge=0,
        description="Free memory below this in as many sweeps running, with no recovery, is pressure "
        "(veo_gpu_memory_pressure). 0: never.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.medium_from >= self.low_above:
            raise OutOfOrder(
                f"medium_from ({self.medium_from:g}) is not below low_above ({self.low_above:g})",
                "medium_from",
                "low_above",
            )
        room = min(self.medium_from, self.low_above - self.medium_from)
        if self.hysteresis >= room:
            raise OutOfOrder(
                f"hysteresis ({self.hysteresis:g}) is too large: it must be less than {room:g}, the room "
                "below medium_from and between the two thresholds",
                "hysteresis",
            )
        return self
