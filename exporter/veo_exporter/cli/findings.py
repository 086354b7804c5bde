# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What doctor says of each thing that it looks at."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How a finding bears on the exporter."""

    GOOD = "ok"
    WARNING = "warn"
    BAD = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    grade: Grade
    what: str
    found: str
    remedy: str = ""
