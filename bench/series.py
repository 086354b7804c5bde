# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where the series of a page go: by subject, and within it by group of metrics.

The real exporter with its defaults on the fake node with eight H100s, a process on each. A series is counted where
its metric is declared; what the catalogue does not declare would be a row of its own, so that the rows
add up to the page.
"""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.nodes import GPUS
from bench.scrapes import scrape
from bench.servers import ServerFailed, our_server
from tests.fake_nvml import FakeNode
from veo_exporter import catalog
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog.gpu import WINDOWS

MOST: Final = 3000
"""The budget of a node with eight GPUs."""
SETTLE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.5
# The page of a group that was read in the last place; by then the page has all its series.
_SLOWEST: Final = "veo_gpu_power_limit_watts"

WINDOW_GROUP: Final = "minimum, mean and peak of the window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one group of metrics has on a page."""

    subject: str
    group: str
    per_gpu: float
    """Series that name a GPU, divided by the GPUs."""
    per_node: int
    """Series that name none."""
    total: int


def measure(folder: Path) -> list[Share]:
    """Raises ServerFailed if the page does not come to rest."""
    folder = folder / "series"
    folder.mkdir()
    node = FakeNode(folder / "scenario", gpus=GPUS)
    node.write_sysfs(folder / "sys")
    (folder / "kern.log").touch()
    with our_server(node, "--kernel.log-path", str(folder / "kern.log")) as server:
        return shares_of(_page_at_rest(server.port), GPUS)


def _page_at_rest(port: int) -> str:
    """A page once two in a row, an interval apart, have the same series."""
    end = time.monotonic() + SETTLE_SECONDS
    seen: list[int] = []
    while time.monotonic() < end:
        text = scrape(port).body.decode()
        seen.append(sum(1 for line in text.splitlines() if line and line[0] != "#"))
        # The full sweep is every 5 s: what it brings last (rates, profiling) wants two of them.
        wanted = int(12 / _POLL_SECONDS)
        if text.count(f"\n{_SLOWEST}{{") == GPUS and seen[-wanted:] == seen[-1:] * wanted:
            return text
        time.sleep(_POLL_SECONDS)
    raise ServerFailed(f"the page has not come to rest: {seen[-3:]} series")


def shares_of(text: str, gpus: int) -> list[Share]:
    """How a page in text format is divided up, in the catalogue's order."""
    places = _places()
    with_gpu: Counter[tuple[str, str]] = Counter()
    without: Counter[tuple[str, str]] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            place = places.get(sample.name, ("not in the catalogue", sample.name))
            (with_gpu if "gpu" in sample.labels else without)[place] += 1
    known = list(dict.fromkeys((*places.values(), *with_gpu, *without)))
    return [
        Share(
            subject=subject,
            group=group,
            per_gpu=with_gpu[subject, group] / gpus,
            per_node=without[subject, group],
            total=with_gpu[subject, group] + without[subject, group],
        )
        for subject, group in known
        if with_gpu[subject, group] + without[subject, group]
    ]


def _places() -> dict[str, tuple[str, str]]:
    """Subject and group of each series name."""
    subjects: dict[str, list[MetricSpec]] = {
        subject: [spec for spec in vars(module).values() if isinstance(spec, MetricSpec)]
        for subject, module in vars(catalog).items()
        if isinstance(module, ModuleType) and module.__name__.startswith("veo_exporter.catalog.")
    }
    places: dict[str, tuple[str, str]] = {}
    for subject, specs in subjects.items():
        sizes = Counter(_group(spec) for spec in specs)
        for spec in specs:
            group = _group(spec)
            _place(places, spec, subject, spec.name if sizes[group] == 1 else group)
    for window in WINDOWS.values():
        for spec in (window.minimum, window.mean, window.peak):
            _place(places, spec, "gpu", WINDOW_GROUP)
    return places


def _place(places: dict[str, tuple[str, str]], spec: MetricSpec, subject: str, group: str) -> None:
    for name in spec.series_names:
        places[name] = (subject, group)


def _group(spec: MetricSpec) -> str:
    """The word after the room's tells which metrics belong together."""
    words = spec.name.split("_")
    rooms = ("gpu", "job", "video", "exporter")
    start = 0 if words[0] != "veo" else 2 if words[1] in rooms else 1
    return "_".join([*words[: start + 1], "…"]) if len(words) > start + 1 else spec.name


def table(shares: Iterable[Share]) -> str:
    """As Markdown, with a row for each subject, its groups below it, and the sum."""
    shares = list(shares)
    lines = ["| what | per GPU | per node | in all |", "|---|---:|---:|---:|"]
    for subject in dict.fromkeys(share.subject for share in shares):
        own = [share for share in shares if share.subject == subject]
        lines.append(_line(f"**{subject}**", own))
        groups = dict.fromkeys(share.group for share in own)
        lines += [
            _line(f"`{group}`" if "_" in group else group, [s for s in own if s.group == group])
            for group in groups
        ]
    lines.append(_line(f"**page**, at most {MOST:,}", shares))
    return "\n".join(lines)


def _line(what: str, shares: list[Share]) -> str:
    per_gpu = sum(share.per_gpu for share in shares)
    per_node = sum(share.per_node for share in shares)
    total = sum(share.total for share in shares)
    return f"| {what} | {per_gpu:g} | {per_node} | {total:,} |"
