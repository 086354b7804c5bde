# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of simulated GPUs, and of the parts that one is divided into."""

from typing import Final

from veo_exporter.simulate.mig import MigDevice, mig_devices
from veo_exporter.simulate.node import activity_of
from veo_exporter.simulate.scenario import Board, Scenario

GIB: Final = 1024**3


def memory_used_bytes(scenario: Scenario, device: int | MigDevice, elapsed_seconds: float) -> int:
    """What is used of a GPU or of an instance. A divided GPU's is that of its instances."""
    if isinstance(device, MigDevice):
        activity = activity_of(scenario, device.gpu, elapsed_seconds)
        return int(usable_bytes(scenario.board, device) * activity.memory_used)
    if parts := mig_devices(scenario, device):
        return sum(memory_used_bytes(scenario, part, elapsed_seconds) for part in parts)
    activity = activity_of(scenario, device, elapsed_seconds)
    return int(usable_bytes(scenario.board) * activity.memory_used)


def usable_bytes(board: Board, part: MigDevice | None = None) -> int:
    """All but the reserve; of a part its share of it."""
    usable = int(board.memory_gib * GIB) - reserved_bytes(board)
    return usable if part is None else int(usable * part.memory_gib / board.memory_gib)


def reserved_bytes(board: Board) -> int:
    """What driver and firmware keep."""
    return int(board.reserved_gib * GIB)
