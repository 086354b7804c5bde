# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Colours that stay apart for colour-blind eyes, on a light and on a dark page.

Okabe and Ito's set, with two exchanged: black cannot be seen on the dark page and yellow cannot on
the light one. No colour is the only carrier of a meaning: states have words, lines have names.
"""

from typing import Final

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
VERMILLION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
GREY: Final = "#999999"
OLIVE: Final = "#999933"

PLAIN: Final = "text"
"""Grafana's colour of text: what needs no attention."""

CYCLE: Final = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, OLIVE, GREY)

SEVERITIES: Final = {"info": SKY, "warning": ORANGE, "critical": VERMILLION}

GPUS_COLOURED: Final = 16
"""GPUs of a node that have a colour; further ones get one of Grafana's."""


def gpu_colours() -> dict[str, str]:
    """A GPU has one colour on every panel, whatever node it is in."""
    return {
        rf"GPU ({'|'.join(str(gpu) for gpu in range(place, GPUS_COLOURED, len(CYCLE)))})( |$)": c
        for place, c in enumerate(CYCLE)
    }
