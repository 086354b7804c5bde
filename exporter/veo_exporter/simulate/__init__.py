# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A node that is not there: asked for by name, and marked as simulated everywhere."""

from veo_exporter.simulate.nvml import SimulatedNvml
from veo_exporter.simulate.processes import lay_out_process_names
from veo_exporter.simulate.scenario import Scenario, load_scenario, shipped_scenarios

__all__ = [
    "Scenario",
    "SimulatedNvml",
    "lay_out_process_names",
    "load_scenario",
    "shipped_scenarios",
]
