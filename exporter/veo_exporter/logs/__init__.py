# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Logs: followed files, and what their lines mean.

Read in this order: lines (bytes to lines), follow (one file), paths (which files), follower (all of
them), json_lines (what an object says), rules (a line to an event), reading (the whole way).

The kernel's log: kernel_lines (a line to its message), kernel_messages (what it says), kernel_sources
(one place), kernel_places (which one), kernel (the whole way), kernel_families (the page).
"""

from veo_exporter.logs.follow import Position
from veo_exporter.logs.follower import Follower, Gathered, Line
from veo_exporter.logs.kernel import KERNEL_DROPPED_SEEDS, KernelLog, KernelNews
from veo_exporter.logs.kernel_families import KernelLogSource
from veo_exporter.logs.kernel_messages import OomKill, XidMessage
from veo_exporter.logs.kernel_places import REMEDY as KERNEL_LOG_REMEDY
from veo_exporter.logs.kernel_places import Places, open_kernel_log
from veo_exporter.logs.reading import DROPPED_SEEDS, Found, LogReading
from veo_exporter.logs.rules import Rule, load_rules, shipped_rules

__all__ = [
    "DROPPED_SEEDS",
    "KERNEL_DROPPED_SEEDS",
    "KERNEL_LOG_REMEDY",
    "Follower",
    "Found",
    "Gathered",
    "KernelLog",
    "KernelLogSource",
    "KernelNews",
    "Line",
    "LogReading",
    "OomKill",
    "Places",
    "Position",
    "Rule",
    "XidMessage",
    "load_rules",
    "open_kernel_log",
    "shipped_rules",
]
