# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What was asked of a file, as fps=24,duration=6.2; in fractions, since floats get ceil(25 * 2.2) wrong."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from veo_exporter.errors import VeoError

MOST_FPS: Final = 1000
MOST_SECONDS: Final = 100_000
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


class BadExpectation(VeoError):
    """What was asked cannot be read; the message says how to write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a file should be; None is not judged."""

    fps: Fraction | None = None
    duration: Fraction | None = None
    keyframe_interval: Fraction | None = None

    @property
    def frames(self) -> int | None:
        """24 fps for 6.2 s are 149 frames: the last one is shown in part."""
        if self.fps is None or self.duration is None:
            return None
        return math.ceil(self.fps * self.duration)


NOTHING: Final = Expectation()


def parse_expectation(written: str) -> Expectation:
    """Reads fps=24,duration=6.2; each may be left out, and be a fraction. Raises BadExpectation."""
    found: dict[str, Fraction] = {}
    for part in written.split(","):
        name, equals, number = part.strip().partition("=")
        if not equals or name not in _MOST:
            raise BadExpectation(
                f"{part.strip()[:40]!r} is no expectation: write one or more of "
                "fps=24,duration=6.2,keyframe_interval=2 (fractions such as 24000/1001 are fine)"
            )
        if name in found:
            raise BadExpectation(f"{name} is expected twice: write it once")
        found[name] = _number(name, number.strip())
    return Expectation(**found)


_MOST: Final = {"fps": MOST_FPS, "duration": MOST_SECONDS, "keyframe_interval": MOST_SECONDS}


def _number(name: str, written: str) -> Fraction:
    above, slash, below = written.partition("/")
    if not _NUMBER.fullmatch(above) or (slash and not _NUMBER.fullmatch(below)):
        raise BadExpectation(
            f"{name}={written[:40]}: write a number or a fraction, as 24 or 24000/1001"
        )
    divisor = Fraction(below) if slash else Fraction(1)
    value = Fraction(above) / divisor if divisor else Fraction(0)
    if not 0 < value <= _MOST[name]:
        raise BadExpectation(f"{name}={written[:40]}: must be above 0 and at most {_MOST[name]}")
    return value
