# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What was asked for, as a label: 1080p24-6s."""

from fractions import Fraction
from typing import Final

OTHER: Final = "other"
HEIGHTS: Final = {
    240: "240p",
    360: "360p",
    480: "480p",
    512: "512p",
    540: "540p",
    576: "576p",
    720: "720p",
    768: "768p",
    1080: "1080p",
    1440: "1440p",
    2160: "4k",
}
"""The shorter side of the pictures that engines make, standing or lying."""
MAX_FPS: Final = 240
MAX_SECONDS: Final = 3600


def name_profile(
    width: int | None, height: int | None, fps: Fraction | None, duration: Fraction | None
) -> str:
    """Resolution, frame rate and length as one word; `other` if any is unknown or out of the way."""
    side = short_side(width, height)
    name = None if side is None else HEIGHTS.get(side)
    if name is None or not fps or not duration or fps > MAX_FPS or duration > MAX_SECONDS:
        return OTHER
    return f"{name}{_decimal(fps, 3)}-{_decimal(duration, 1)}s"


def _decimal(number: Fraction, places: int) -> str:
    return f"{float(number):.{places}f}".rstrip("0").rstrip(".")


def short_side(width: int | None, height: int | None) -> int | None:
    """The smaller of width and height; the height alone if only that was said."""
    if height is None or width is None:
        return height
    return min(width, height)
