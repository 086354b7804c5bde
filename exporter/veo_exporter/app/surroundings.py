# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the second road needs of the rest of the exporter."""

from collections.abc import Callable
from dataclasses import dataclass

from veo_exporter.clock import Clock
from veo_exporter.exposition import Folds

Drop = Callable[[str, str, int], None]
"""Counts what was dropped: kind, reason, how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Handed to each part of the road."""

    folds: Folds
    drop: Drop
    clock: Clock
    simulated: bool
    gpu_uuid: Callable[[str], str | None]
    watching: Callable[[], None]
    """Told once changes in the watched folders are seen."""
