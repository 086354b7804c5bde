# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's comings and goings wired: pauses by request, and what is remembered of GPUs on disk."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from veo_exporter.config import Gpu, State, format_duration, parse_duration
from veo_exporter.exposition import Source
from veo_exporter.gpu import AddressMemory, LifeSource, Sampler

log = structlog.get_logger(__name__)

DEFAULT_DIRECTORY: Final = Path("/var/lib/veo-exporter")
SHORTEST_PAUSE_SECONDS: Final = 1.0
RELEASE_GRACE_SECONDS: Final = 1.0
"""Beside the deadline of the call that is under way: for closing the session."""
DROPPED_SEEDS: Final = (("state_file", "corrupt_or_unusable"),)


def state_directory(state: State, environment: Mapping[str, str]) -> Path | None:
    """Where to keep what outlives the process; None, and a line in the log, if nowhere."""
    if not state.enabled:
        return None
    # systemd separates several with colons; ours is the first.
    from_systemd = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    asked_for = state.directory or (Path(from_systemd) if from_systemd else None)
    folder = asked_for or DEFAULT_DIRECTORY
    reason = _why_unusable(folder, make=asked_for is not None)
    if not reason:
        return folder
    tell = log.warning if asked_for else log.info
    tell(
        "nothing is kept on disk: a GPU that is lost before a start will have no UUID",
        directory=str(folder),
        reason=reason,
        remedy="make the folder and give it to the exporter's user, or set state.directory",
    )
    return None


def _why_unusable(folder: Path, *, make: bool) -> str:
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            return "it does not exist"
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(folder, os.W_OK | os.X_OK) else "it may not be written to"


def memory_of(
    state: State,
    environment: Mapping[str, str],
    drop: Callable[[str, str, int], None],
    *,
    simulated: bool,
) -> AddressMemory | None:
    """The memory of PCI addresses; none of made-up ones."""
    folder = None if simulated else state_directory(state, environment)
    if folder is None:
        return None
    [(kind, reason)] = DROPPED_SEEDS
    return AddressMemory(folder, failed=lambda: drop(kind, reason, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLimits:
    """How long a pause is, and how long its beginning may take."""

    default_seconds: float
    longest_seconds: float
    call_deadline_seconds: float


def pause_limits_of(gpu: Gpu) -> PauseLimits:
    """The limits as the settings say them."""
    return PauseLimits(
        default_seconds=gpu.pause_default,
        longest_seconds=gpu.pause_max,
        call_deadline_seconds=gpu.call_deadline,
    )


class PauseDoor:
    """Answers requests for a pause and for its end."""

    def __init__(self, sampler: Sampler, gpu: Gpu) -> None:
        self._sampler = sampler
        self._watched = gpu.enabled
        self._limits = pause_limits_of(gpu)

    @property
    def source(self) -> Source:
        return LifeSource(lambda: self._sampler.pauses.status, self._sampler.calls.totals)

    def reconfigure(self, limits: PauseLimits) -> None:
        """Take other limits; they hold from the next request on."""
        self._limits = limits

    async def pause(self, written: str | None) -> tuple[int, str]:
        """HTTP status and sentence: 200 once the driver is released, 202 if it is not yet."""
        limits = self._limits
        if not self._watched:
            return 409, "GPUs are not watched (gpu.enabled is false): there is nothing to pause"
        seconds = limits.default_seconds
        if written is not None:
            try:
                seconds = parse_duration(written)
            except ValueError as error:
                return 400, f"for: {error}"
        if seconds < SHORTEST_PAUSE_SECONDS:
            return 400, "for: must be at least 1s; to end a pause, POST /-/resume"
        if seconds > limits.longest_seconds:
            most = format_duration(limits.longest_seconds)
            return 400, f"for: must be at most {most} (gpu.pause_max); ask again before it ends"
        patience_seconds = limits.call_deadline_seconds + RELEASE_GRACE_SECONDS
        status = await asyncio.to_thread(self._sampler.pause, seconds, patience_seconds)
        if status.pause is None:
            return 409, "the pause was ended while the driver was being released"
        return 200 if status.released else 202, status.sentence

    async def resume(self) -> tuple[int, str]:
        """HTTP status and sentence; it is no fault if there was no pause."""
        return 200, "resumed" if self._sampler.resume() else "there was no pause"
