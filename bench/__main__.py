# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""python -m bench: measures the budgets and says which are missed.

`python -m bench series` measures nothing: it counts where the series of a page go.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from bench import cpu, hang, render, series
from bench.results import Row, table
from bench.scrapes import ScrapeFailed
from bench.servers import OTHER_PYTHON, ServerFailed
from bench.usage import machine_busy_seconds, processor
from tests.fake_nvml import CompilerMissingError, build

MEASUREMENTS: Final = {
    "render": (render.measure, 50.0),
    "hang": (hang.measure, 20.0),
    "cpu": (cpu.measure, 105.0),
}
"""Each with the seconds it takes if not told otherwise, start and end of the exporters apart."""

CANNOT_MEASURE: Final = 2
SERIES: Final = "series"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "what",
        nargs="*",
        help=f"some of {', '.join(MEASUREMENTS)}; all if none is named; or {SERIES} alone",
    )
    parser.add_argument("--seconds", type=float, help="how long to measure, all together")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if SERIES in arguments.what and len(arguments.what) > 1:
        parser.error(f"{SERIES} is a table of its own: ask for it alone")
    if unknown := set(arguments.what) - {*MEASUREMENTS, SERIES}:
        parser.error(
            f"{', '.join(sorted(unknown))}: there are {', '.join([*MEASUREMENTS, SERIES])}"
        )
    if arguments.seconds is not None and arguments.seconds < 1:
        parser.error("--seconds: at least 1")
    return arguments


def _end(number: int, frame: FrameType | None) -> NoReturn:
    # As an exception, so that every exporter is ended on the way out.
    raise SystemExit(128 + number)


def _measure(names: list[str], seconds: float | None) -> list[Row]:
    usual = sum(MEASUREMENTS[name][1] for name in names)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="veo-bench-") as folder:
        for name in names:
            measure, share = MEASUREMENTS[name]
            share *= (seconds or usual) / usual
            print(f"{name}: {share:.0f} s ...", file=sys.stderr, flush=True)
            rows += measure(Path(folder), share)
    return rows


def main() -> int:
    """Measure; gives the exit status."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _end)
    if arguments.what == [SERIES]:
        return _count_series()
    names = arguments.what or list(MEASUREMENTS)
    if not OTHER_PYTHON.exists():
        print("nvitop-exporter is not there: run `make bench`", file=sys.stderr)
        return CANNOT_MEASURE
    started, busy_before, own_before = time.monotonic(), machine_busy_seconds(), _own_cpu_seconds()
    try:
        build()
        rows = _measure(names, arguments.seconds)
    except (CompilerMissingError, ServerFailed, ScrapeFailed) as error:
        print(f"cannot measure: {error}", file=sys.stderr)
        return CANNOT_MEASURE
    lasted = time.monotonic() - started
    own = _own_cpu_seconds() - own_before
    others = max(0.0, (machine_busy_seconds() - busy_before - own) / lasted)
    print(table(rows))
    print(f"\n{processor()}; {lasted:.0f} s; others on this machine used {others:.1f} cores.")
    if arguments.json:
        written = {"machine": processor(), "cores_used_by_others": others}
        written_rows = {"rows": [row.as_dict() for row in rows]}
        arguments.json.write_text(json.dumps(written | written_rows, indent=2) + "\n")
    return int(any(row.verdict == "OVER" for row in rows))


def _count_series() -> int:
    try:
        build()
        with tempfile.TemporaryDirectory(prefix="veo-bench-") as folder:
            shares = series.measure(Path(folder))
    except (CompilerMissingError, ServerFailed, ScrapeFailed) as error:
        print(f"cannot count: {error}", file=sys.stderr)
        return CANNOT_MEASURE
    print(series.table(shares))
    return int(sum(share.total for share in shares) > series.MOST)


def _own_cpu_seconds() -> float:
    """CPU time of this process and of the children that have ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    sys.exit(main())
