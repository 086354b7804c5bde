# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What surveys find: questions whose answers have rows that are not known beforehand."""

from collections.abc import Callable
from dataclasses import dataclass

from veo_exporter.gpu.answers import Part
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.readings import Device, Signal

Finding = tuple[Signal, tuple[str, ...], Part]
"""A signal, its labels after gpu and uuid where they are not known beforehand, and a number or what
stands in its place."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Such a question. An error that it raises costs all of its signals; one that it finds, its own."""

    signals: tuple[Signal, ...]
    read: Callable[[Line, Device], list[Finding]]
