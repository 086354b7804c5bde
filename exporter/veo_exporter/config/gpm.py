# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What may be written of the driver's performance counters."""

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator


class GpmMode(StrEnum):
    """Which of the driver's performance counters (GPM) are read."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


def _no_truth_value(written: object) -> object:
    # YAML reads a bare on or off as a truth value.
    return {True: "on", False: "off"}[written] if isinstance(written, bool) else written


WrittenGpmMode = Annotated[GpmMode, BeforeValidator(_no_truth_value)]
