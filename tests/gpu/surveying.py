# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One fake GPU behind the real bindings, for tests of surveys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml

from tests.fake_nvml import FakeGpu, FakeLibrary, FakeNode
from tests.gpu.conftest import FakeClock
from veo_exporter.gpu.findings import Survey
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Device, Reading, signal_name
from veo_exporter.gpu.session import find_gpu, open_session

Rows = dict[tuple[str, ...], float]


class Surveyed:
    """A session with one GPU; its clock stands still until it is moved."""

    def __init__(self, node: FakeNode, library: FakeLibrary, clock: FakeClock) -> None:
        self.node = node
        self.library = library
        self.clock = clock
        self.line = Line(pynvml, clock)
        self.device = self.find()

    @property
    def gpu(self) -> FakeGpu:
        return self.node.gpus[0]

    def find(self) -> Device:
        assert open_session(self.line).code == 0
        device = find_gpu(self.line, 0).device
        assert device is not None
        return device

    def read(self, *surveys: Survey, skipped: Any = ()) -> Reading:
        return read_gpu(self.line, self.device, Cadence.FULL, skipped, self.clock, surveys=surveys)


@contextmanager
def surveying(folder: Path, clock: FakeClock) -> Iterator[Surveyed]:
    node = FakeNode(folder / "scenario", gpus=1)
    library = node.attach()
    yield Surveyed(node, library, clock)
    library.reset()


def told(reading: Reading, prefix: str) -> Rows:
    """Values and rows of metrics whose names begin so, by name and labels."""
    rows: Rows = {
        (signal_name(signal),): value
        for signal, value in reading.values.items()
        if signal_name(signal).startswith(prefix)
    }
    for spec, labels, value in reading.rows:
        if spec.name.startswith(prefix):
            assert (spec.name, *labels) not in rows, "a label set twice"
            rows[spec.name, *labels] = value
    return rows


def missing(reading: Reading, prefix: str) -> set[str]:
    return {signal_name(one) for one in reading.missing if signal_name(one).startswith(prefix)}
