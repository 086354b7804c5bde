# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Our page, written on command: the counterpart of render_theirs, with the same words.

`sample` here keeps another snapshot. Once `text` or `openmetrics` was asked for, nothing samples any
more, and each page is of the next snapshot kept, which the page has not seen before. `equal` tells
the texts in which our bytes are not those of prometheus_client.
"""

import contextlib
import json
import logging
import sys
import time
from collections.abc import Hashable, Iterable
from itertools import count
from pathlib import Path
from typing import Final, TextIO

import structlog

from bench.equality import differing
from bench.scrapes import HEADERS, count_series
from veo_exporter.catalog import exporter as catalog
from veo_exporter.clock import SystemClock
from veo_exporter.exposition import Family, Folds, OwnSource, Page, Source
from veo_exporter.gpu import GpuSource, PciBus, Sampler, Snapshot, Timing, load_library

INTERVAL_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 10.0
_ACCEPT: Final = {"text": "", "openmetrics": HEADERS["Accept"]}


class _NeverTheSame:
    """A source whose text the page may not keep, so that each page is written whole."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._asked = count()

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        return self._source.revision(now_monotonic_seconds), next(self._asked)

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        return self._source.families(now_monotonic_seconds)


class _Ours:
    """The rooms as the app puts them together, with the sampler in our hands."""

    def __init__(self, sysfs_root: Path) -> None:
        timing = Timing(
            fast_interval_seconds=INTERVAL_SECONDS,
            full_interval_seconds=INTERVAL_SECONDS,
            static_interval_seconds=INTERVAL_SECONDS,
            window_seconds=30.0,
            call_deadline_seconds=2.0,
            start_deadline_seconds=30.0,
        )
        self._sampler = Sampler(
            load_library=load_library,
            pci_functions=PciBus(sysfs_root).functions,
            expected=None,
            timing=timing,
            clock=SystemClock(),
        )
        self._kept: list[tuple[float, Snapshot]] = []
        self._shown = -1
        folds = Folds()
        folds.counter(catalog.HTTP_REQUESTS).labels("/metrics", "200").inc()
        own = OwnSource(simulated=False, configured_unix_seconds=time.time())
        self._sources = tuple(
            _NeverTheSame(source)
            for source in (GpuSource(lambda: self._kept[self._shown][1]), folds, own)
        )
        self._page = Page(self._sources)
        self._sampler.start()

    def sample(self) -> None:
        # Right after one was published the node changes, and is sampled many times until the next is.
        wanted = self._sampler.latest.sequence + 1
        end = time.monotonic() + PATIENCE_SECONDS
        while self._sampler.latest.sequence < wanted:
            if time.monotonic() > end:
                raise TimeoutError("the sampler publishes nothing")
            time.sleep(INTERVAL_SECONDS / 4)
        self._kept.append((time.monotonic(), self._sampler.latest))

    def turn(self) -> float:
        """Go on to the next snapshot kept; gives the time at which it was new."""
        if self._sampler.alive:
            self._sampler.stop(PATIENCE_SECONDS)
        self._shown = (self._shown + 1) % len(self._kept)
        return self._kept[self._shown][0]

    def write(self, form: str, now: float) -> bytes:
        return self._page.answer(now, _ACCEPT[form])[0]

    def differing(self, now: float) -> list[str]:
        return differing(family for source in self._sources for family in source.families(now))


def main() -> None:
    answers = sys.stdout
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with contextlib.redirect_stdout(sys.stderr):
        _answer(answers)


def _answer(answers: TextIO) -> None:
    ours = _Ours(Path(sys.argv[1]))
    for line in sys.stdin:
        word = line.strip()
        answer: dict[str, object] = {}
        if word == "sample":
            ours.sample()
        elif word == "equal":
            answer["differing"] = ours.differing(ours.turn())
        else:
            now = ours.turn()
            started = time.perf_counter()
            page = ours.write(word, now)
            answer["seconds"] = time.perf_counter() - started
            answer["series"] = count_series(page)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
