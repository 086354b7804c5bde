# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How the names of dcgm-exporter are written."""

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema


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


def _word(written: object) -> object:
    # YAML 1.1 reads a bare off as a truth value.
    return DcgmNames.OFF if written is False else written


DcgmNamesSetting = Annotated[
    DcgmNames,
    BeforeValidator(_word),
    WithJsonSchema({"enum": [*(name.value for name in DcgmNames), False]}),
]
