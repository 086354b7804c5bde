# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What an engine is made for: requests outside are counted by rule, and never turned away."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from veo_exporter.jobs.payload import Request


@dataclass(frozen=True, slots=True)
class Rule:
    """A figure of the request and its limits, for one engine and, if given, one resolution."""

    name: str
    engine: str
    short_side: int | None
    figure: Callable[[Request], float | None]
    minimum: float | None = None
    maximum: float | None = None

    def broken_by(self, engine: str, request: Request) -> bool:
        if engine != self.engine or self.short_side not in (None, request.short_side):
            return False
        value = self.figure(request)
        if value is None:
            return False
        below = self.minimum is not None and value < self.minimum
        return below or (self.maximum is not None and value > self.maximum)


def _fps(request: Request) -> float | None:
    return None if request.fps is None else float(request.fps)


def _prompt_chars(request: Request) -> float | None:
    return request.prompt_chars


def _prompt_tokens(request: Request) -> float | None:
    return request.prompt_tokens


def _batch_size(request: Request) -> float | None:
    return request.batch_size


RULES: Final = (
    # The first users' numbers.
    Rule("fps_720p", "veo-engine", 720, _fps, 15, 30),
    Rule("fps_1080p", "veo-engine", 1080, _fps, 24, 60),
    Rule("fps_4k", "veo-engine", 2160, _fps, 24, 60),
    Rule("prompt_720p", "veo-engine", 720, _prompt_chars, 12),
    Rule("prompt_1080p", "veo-engine", 1080, _prompt_chars, 20),
    Rule("prompt_4k", "veo-engine", 2160, _prompt_chars, 35),
    Rule("prompt_tokens", "veo-engine", None, _prompt_tokens, None, 512),
    Rule("batch_size", "veo-engine", None, _batch_size, None, 4),
)


def broken_rules(
    engine: str, request: Request | None, rules: Iterable[Rule] = RULES
) -> tuple[str, ...]:
    """The names of the rules that a request breaks."""
    if request is None:
        return ()
    return tuple(rule.name for rule in rules if rule.broken_by(engine, request))
