# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated nodes at a time that the test sets."""

from typing import Any

from tests.gpu.conftest import FakeClock
from veo_exporter.gpu.findings import Survey
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Device, Reading
from veo_exporter.gpu.session import Found, find_gpu, open_session
from veo_exporter.simulate import Scenario, SimulatedNvml, load_scenario


class Simulated:
    """A scenario's node, asked as the sampler asks."""

    def __init__(self, scenario: Scenario) -> None:
        self.clock = FakeClock()
        self.library = SimulatedNvml(scenario, self.clock)
        self.line = Line(self.library, self.clock)

    def at(self, seconds: float) -> None:
        self.clock.now = 1000.0 + seconds

    def find(self, index: int) -> Found:
        return find_gpu(self.line, index)

    def device(self, index: int) -> Device:
        device = self.find(index).device
        assert device is not None
        return device

    def read(self, index: int, cadence: Cadence = Cadence.FAST) -> Reading:
        return read_gpu(self.line, self.device(index), cadence, (), self.clock)

    def survey(self, device: Device, *surveys: Survey) -> Reading:
        return read_gpu(self.line, device, Cadence.FULL, (), self.clock, surveys=surveys)


def simulated(name: str) -> Simulated:
    return Simulated(load_scenario(name))


def begun(name: str) -> Simulated:
    """Likewise, with a session."""
    node = simulated(name)
    assert open_session(node.line).code == 0
    return node


def changed(name: str, **changes: Any) -> Scenario:
    """A shipped scenario with other parts."""
    parts = load_scenario(name).model_dump(exclude=set(changes))
    return Scenario.model_validate({**parts, **changes})
