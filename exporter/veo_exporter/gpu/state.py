# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which state a GPU is in: the one judge."""

from dataclasses import dataclass
from typing import Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.readings import State

_STATES: Final = {
    0: State.OK,
    ReturnCode.GPU_IS_LOST: State.LOST,
    ReturnCode.GPU_NOT_FOUND: State.LOST,
    ReturnCode.RESET_REQUIRED: State.RESET_REQUIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of a GPU when its state is judged."""

    hung: bool
    """A call about it, or the driver as a whole, is over its deadline and not made good since."""
    paused: bool = False
    """Nobody asks it anything, by request."""
    session_code: int
    """0 while a session with the driver is open; else why there is none."""
    listed: bool
    """Whether NVML lists it in this session."""
    on_bus: bool | None
    """Whether its PCI function is there; None if the bus cannot be read."""
    code: int | None
    """What its look-up or its newest reading says; None if it was not asked yet."""
    fresh: bool
    """Whether its newest reading is young enough to be shown."""


def judge(evidence: Evidence) -> tuple[State, int | None]:
    """The state, and the NVML return code that decided it; None if no call did."""
    if evidence.hung:
        return State.HUNG, None
    if evidence.paused:
        return State.UNKNOWN, None
    if evidence.session_code:
        return State.UNKNOWN, evidence.session_code
    if not evidence.listed:
        return (State.HIDDEN if evidence.on_bus else State.LOST), None
    if evidence.code is None:
        return State.UNKNOWN, None
    state = _STATES.get(evidence.code, State.UNKNOWN)
    if state is State.OK and not evidence.fresh:
        return State.UNKNOWN, evidence.code
    return state, evidence.code
