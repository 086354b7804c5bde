# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Logs: followed files, and what their lines mean.

Read in this order: lines (bytes to lines), follow (one file), paths (which files), follower (all of
them), rules (a line to an event), reading (the whole way).
"""

from veo_exporter.logs.follow import Position
from veo_exporter.logs.follower import Follower, Gathered, Line
from veo_exporter.logs.reading import DROPPED_SEEDS, Found, LogReading
from veo_exporter.logs.rules import Rule, load_rules, shipped_rules

__all__ = [
    "DROPPED_SEEDS",
    "Follower",
    "Found",
    "Gathered",
    "Line",
    "LogReading",
    "Position",
    "Rule",
    "load_rules",
    "shipped_rules",
]
