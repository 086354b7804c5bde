# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A clock that stands still, and plans without waits."""

from pathlib import Path
from typing import Any

import pytest

from veo_exporter.kubernetes import Plan


class StillClock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic_seconds(self) -> float:
        return self.now

    def unix_seconds(self) -> float:
        return self.now + 1e9


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def plan_for(socket: Path, **changes: Any) -> Plan:
    plan: dict[str, Any] = {
        "socket": socket,
        "only_if_there": True,
        "interval_seconds": 10.0,
        "deadline_seconds": 20.0,
        "keep_seconds": 3600.0,
        "resource_prefixes": ("nvidia.com/",),
        "max_rows": 512,
        "max_answer_bytes": 64 << 20,
    }
    return Plan(**{**plan, **changes})
