# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The table of where the series go adds up, to the page and in the docs."""

import re
from pathlib import Path

from bench.series import MOST, shares_of, table
from tests.conftest import StartDaemon

DOCS = Path(__file__).parent.parent / "docs/benchmarks.md"

Row = tuple[str, float, int, int]

PAGE = """\
# TYPE veo_gpu_state gauge
veo_gpu_state{gpu="0",state="ok"} 1
veo_gpu_state{gpu="0",state="lost"} 0
veo_gpu_state{gpu="1",state="ok"} 1
veo_gpu_state{gpu="1",state="lost"} 0
veo_gpus_usable 2
veo_gpu_utilization_peak_ratio{gpu="0"} 1
veo_gpu_utilization_peak_ratio{gpu="1"} 1
# TYPE veo_job_duration_seconds histogram
veo_job_duration_seconds_bucket{le="1"} 0
veo_job_duration_seconds_bucket{le="+Inf"} 0
veo_job_duration_seconds_sum 0
veo_job_duration_seconds_count 0
somebody_elses 1
"""


def rows_of(text: str) -> list[Row]:
    found = re.findall(r"^\| (\S.*?) \| ([\d.]+) \| (\d+) \| ([\d,]+) \|$", text, re.MULTILINE)
    return [
        (what, float(gpu), int(node), int(all_.replace(",", ""))) for what, gpu, node, all_ in found
    ]


def test_a_page_divided_up_by_hand() -> None:
    shares = shares_of(PAGE, gpus=2)
    # Two states and a peak of each GPU; of the node the usable GPUs, four lines of a histogram, and
    # one that nobody declared.
    assert sum(share.total for share in shares) == 12
    assert {(share.subject, share.group): (share.per_gpu, share.per_node) for share in shares} == {
        ("gpu", "veo_gpu_state"): (2, 0),
        ("gpu", "veo_gpus_…"): (0, 1),
        ("gpu", "minimum, mean and peak of the window"): (1, 0),
        ("jobs", "veo_job_duration_seconds"): (0, 4),
        ("not in the catalogue", "somebody_elses"): (0, 1),
    }
    rows = rows_of(table(shares))
    assert rows[0] == ("**gpu**", 3.0, 1, 7)
    assert rows[-1] == ("**page**, at most 3,000", 3.0, 6, 12)


def test_the_rows_of_a_real_page_add_up_to_it(start: StartDaemon) -> None:
    page = start().wait_for(lambda page: len(page.values("veo_gpu_power_limit_watts")) == 8)
    shares = shares_of(page.text, gpus=8)
    assert sum(share.total for share in shares) == len(page.series)
    assert sum(share.per_gpu * 8 + share.per_node for share in shares) == len(page.series)
    assert "not in the catalogue" not in {share.subject for share in shares}


def test_the_documented_table_adds_up_and_keeps_the_budget() -> None:
    rows = rows_of(DOCS.read_text().partition("## Where the series go")[2])
    subjects = [row for row in rows if row[0].startswith("**") and not row[0].startswith("**page")]
    groups = [row for row in rows if not row[0].startswith("**")]
    [page] = [row for row in rows if row[0].startswith("**page")]
    for part in (subjects, groups):
        for column in (1, 2, 3):
            assert sum(row[column] for row in part) == page[column]  # type: ignore[misc]
    assert page[3] == 8 * page[1] + page[2]
    assert page[3] < MOST
