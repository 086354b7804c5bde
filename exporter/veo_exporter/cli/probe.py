# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""probe: files named on the command line, judged at once."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from veo_exporter.config.video import Video
from veo_exporter.video import (
    NOTHING,
    Verdict,
    VideoReport,
    as_json,
    parse_expectation,
    probe_of,
)

STATUSES: Final = {
    Verdict.OK: 0,
    Verdict.DEGRADED: 1,
    Verdict.DEFECTIVE: 1,
    Verdict.ERROR: 2,
}
_HEADINGS: Final = ("VERDICT", "FRAMES", "FPS", "SECONDS", "FILE")


def probe(
    files: Sequence[Path], video: Video, *, form: str = "table", expect: str | None = None
) -> int:
    """Print a table, json or jsonl; gives the worst file's exit status. Raises VeoError."""
    expectation = parse_expectation(expect) if expect else NOTHING
    # Whoever names a file may read it, wherever it is.
    looking = probe_of(video, roots=None)
    statuses: list[int] = []
    with ThreadPoolExecutor(video.workers) as workers:
        reports = workers.map(lambda file: looking.look_at(file, expectation), files)
        for line in _FORMS[form](_noting(reports, statuses)):
            print(line)
            sys.stdout.flush()
    return max(statuses, default=0)


def _noting(reports: Iterable[VideoReport], statuses: list[int]) -> Iterator[VideoReport]:
    for report in reports:
        statuses.append(STATUSES[report.verdict])
        yield report


def _json(reports: Iterable[VideoReport]) -> Iterator[str]:
    yield json.dumps([as_json(report) for report in reports], indent=2)


def _json_lines(reports: Iterable[VideoReport]) -> Iterator[str]:
    for report in reports:
        yield json.dumps(as_json(report))


def _table(reports: Iterable[VideoReport]) -> Iterator[str]:
    yield _row(_HEADINGS)
    for report in reports:
        media, cadence = report.media, report.cadence
        yield _row(
            (
                report.verdict.value,
                str(media.frame_count) if media else "-",
                f"{float(cadence.rate):.6g}" if cadence else "-",
                f"{float(report.duration):.3f}" if report.duration is not None else "-",
                _printable(str(report.file)),
            )
        )
        if report.failure:
            yield f"           {_printable(report.failure.message)}"
        for finding in report.findings:
            yield f"           {finding.message}"
        for warning in report.warnings:
            yield f"           warning: {_printable(warning)}"


def _row(cells: Sequence[str]) -> str:
    verdict, frames, fps, seconds, file = cells
    return f"{verdict:9}  {frames:>7}  {fps:>7}  {seconds:>9}  {file}"


def _printable(text: str) -> str:
    """A file's name may hold anything, escape sequences of terminals included."""
    return "".join(char if char.isprintable() else "?" for char in text)


_FORMS: Final = {"table": _table, "json": _json, "jsonl": _json_lines}
