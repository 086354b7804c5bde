# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What may be written of the driver's performance counters."""

from enum import StrEnum
from typing import Annotated

from veo_exporter.config.written import OnOff, words


class GpmMode(StrEnum):
    """Which of the driver's performance counters (GPM) are read."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


WrittenGpmMode = Annotated[GpmMode, OnOff, words("auto", "on", "off", True, False)]
