# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Finished video files: from disk to verdict.

Read in this order: gate (which files), ffprobe (the child), packets (its output), timeline and rate
(what the timestamps mean), cadence (what is measured), judge (what is wrong), probe (all of these on
one file), report (as JSON) and posted (JSON that others send). Around it: request, backlog (what
waits), memory (so that each file counts once) and prober (the workers), settling and watch (folders),
metrics.
"""

from veo_exporter.video.backlog import Backlog
from veo_exporter.video.definitions import (
    Defect,
    ErrorKind,
    Thresholds,
    Verdict,
    VideoReport,
)
from veo_exporter.video.expectation import (
    NOTHING,
    BadExpectation,
    Expectation,
    parse_expectation,
)
from veo_exporter.video.ffprobe import Ffprobe, Limits, MissingProgram, find_program
from veo_exporter.video.metrics import BacklogSource, VideoMetrics, exemplar_of
from veo_exporter.video.origins import Origin, Origins
from veo_exporter.video.posted import BadReport, PostedFiles, read_report
from veo_exporter.video.probe import Probe
from veo_exporter.video.prober import Prober, Unprobed
from veo_exporter.video.report import as_json
from veo_exporter.video.request import EVENT_SOURCE, ProbeRequest
from veo_exporter.video.setup import folders_of, probe_of, roots_of
from veo_exporter.video.watch import Folder, FolderWatch

__all__ = [
    "EVENT_SOURCE",
    "NOTHING",
    "Backlog",
    "BacklogSource",
    "BadExpectation",
    "BadReport",
    "Defect",
    "ErrorKind",
    "Expectation",
    "Ffprobe",
    "Folder",
    "FolderWatch",
    "Limits",
    "MissingProgram",
    "Origin",
    "Origins",
    "PostedFiles",
    "Probe",
    "ProbeRequest",
    "Prober",
    "Thresholds",
    "Unprobed",
    "Verdict",
    "VideoMetrics",
    "VideoReport",
    "as_json",
    "exemplar_of",
    "find_program",
    "folders_of",
    "parse_expectation",
    "probe_of",
    "read_report",
    "roots_of",
]
