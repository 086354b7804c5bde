# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A finished file, handed in to be probed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from veo_exporter.video.expectation import NOTHING, Expectation

EVENT_SOURCE: Final = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """A finished file, and what is known of it. `parent` is a W3C traceparent."""

    path: Path
    source: str = EVENT_SOURCE
    expectation: Expectation = NOTHING
    engine: str = ""
    variant: str = ""
    profile: str = ""
    parent: str | None = None

    @property
    def named_by_event(self) -> bool:
        """A job's own word: it knows what was asked, and a trace waits for it."""
        return self.source == EVENT_SOURCE
