# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Advice on frame rates wired: the sampler's snapshots to metrics and to JSON."""

from fractions import Fraction
from typing import Any

from veo_exporter.clock import Clock
from veo_exporter.config import Settings
from veo_exporter.exposition import Source
from veo_exporter.gpu import AdviceSource, Advisor, Ladder, Sampler, advice_document


class AdviceDesk:
    """Advises on the GPUs that a sampler reads."""

    def __init__(
        self, settings: Settings, sampler: Sampler, clock: Clock, *, simulated: bool
    ) -> None:
        self._sampler = sampler
        self._clock = clock
        self._simulated = simulated
        self._advisor = Advisor(ladder_of(settings))
        self.source: Source = AdviceSource(lambda: sampler.latest, lambda: self._advisor.latest)
        sampler.when_published(self._advisor.take)

    def reconfigure(self, ladder: Ladder) -> None:
        """Take other thresholds; they hold from the next reading on."""
        self._advisor.ladder = ladder

    def document(self) -> dict[str, Any]:
        """The answer of the API."""
        return advice_document(
            self._sampler.latest,
            self._advisor.latest,
            self._advisor.ladder,
            self._clock.monotonic_seconds(),
            simulated=self._simulated,
        )


def ladder_of(settings: Settings) -> Ladder:
    """The thresholds as the settings say them; 0.85 is meant as it is written."""
    advice = settings.advice
    return Ladder(
        medium_from=_as_written(advice.medium_from),
        low_above=_as_written(advice.low_above),
        hysteresis=_as_written(advice.hysteresis),
        sweeps=advice.sweeps,
        sweep_seconds=settings.gpu.full_interval,
        pressure_free_bytes=advice.pressure_free_bytes,
    )


def _as_written(share: float) -> Fraction:
    return Fraction(repr(share))
