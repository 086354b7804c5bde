# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How the names of dcgm-exporter are written."""

from enum import StrEnum
from typing import Annotated

from veo_exporter.config.written import OnOff, words


class DcgmNames(StrEnum):
    """Which generation of names is written."""

    OFF = "off"
    CLASSIC = "classic"
    NEW = "new"


class DcgmUuidLabel(StrEnum):
    """What dcgm-exporter calls the UUID: the second one with its option for old names."""

    CAPITAL = "UUID"
    SMALL = "uuid"


class DcgmHostnameLabel(StrEnum):
    """What dcgm-exporter calls the node, before May 2026 and since."""

    CAPITAL = "Hostname"
    SMALL = "hostname"


DcgmNamesSetting = Annotated[
    DcgmNames,
    OnOff,
    words(*(name.value for name in DcgmNames), False),
]
