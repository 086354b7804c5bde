# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Time as an argument: what asks for the time is handed one of these."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two times, because ages must survive a step of the wall clock."""

    def unix_seconds(self) -> float:
        """Wall-clock time, for timestamps that leave the process."""
        ...

    def monotonic_seconds(self) -> float:
        """Time that never steps, for ages and deadlines."""
        ...


class SystemClock:
    """The machine's own time."""

    unix_seconds = staticmethod(time.time)
    monotonic_seconds = staticmethod(time.monotonic)
