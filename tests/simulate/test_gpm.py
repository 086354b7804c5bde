# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated performance counters, asked as the sampler asks."""

import pytest

from tests.simulate.nodes import Simulated, begun, changed
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu.gpm import Gpm
from veo_exporter.gpu.gpm_signals import ALL
from veo_exporter.gpu.nvml import NvmlError
from veo_exporter.gpu.readings import signal_name
from veo_exporter.gpu.session import open_session


def steady(utilization: float) -> Simulated:
    """A GPU that does one thing all the time."""
    work = {
        "name": "denoise",
        "lasts": "10s",
        "utilization": utilization,
        "memory_copy_utilization": 0.5,
        "memory_used": 0.5,
        "power": 0.5,
        "temperature_celsius": 60,
        "decoder_utilization": 0.25,
    }
    node = Simulated(changed("busy", gpus=1, happenings=[], work=[work]))
    open_session(node.line)
    return node


def test_two_looks_make_means_of_the_work_between() -> None:
    node = steady(0.8)
    device = node.device(0)
    gpm = Gpm(node.clock, ALL)
    node.at(10)
    assert node.survey(device, gpm.survey).failures == ()
    sent_before = node.survey(device).values[links.PCIE_TRANSMIT]
    node.at(15)
    reading = node.survey(device, gpm.survey)
    told = {signal_name(signal): value for signal, value in reading.values.items()}

    def part(name: str) -> float:
        return told[f'veo_gpu_profiling_active_ratio{{part="{name}"}}']

    # The ripple of 1.5 % at most is on all that follows utilization.
    assert part("graphics") == pytest.approx(0.8, rel=0.015)
    assert part("sm") == pytest.approx(0.86 * 0.8, rel=0.015)
    assert part("tensor") == pytest.approx(0.52 * 0.8, rel=0.015)
    assert part("dram") == pytest.approx(0.72 * 0.5, rel=0.015)
    assert part("fp64") == 0
    # 350 W, 8 MB each joule: 2.8 GB in a second one way, and twice that the other.
    assert told["veo_gpu_profiling_pcie_transmit_bytes_per_second"] == pytest.approx(2.8e9)
    assert told["veo_gpu_profiling_pcie_receive_bytes_per_second"] == pytest.approx(5.6e9)
    # The counters say the same.
    sent = reading.values[links.PCIE_TRANSMIT] - sent_before
    assert sent / 5 == pytest.approx(2.8e9)


def test_what_the_board_has_and_what_not() -> None:
    node = steady(0.8)
    device = node.device(0)
    gpm = Gpm(node.clock, ALL)
    node.survey(device, gpm.survey)
    node.at(5)
    reading = node.survey(device, gpm.survey)
    own = {
        signal_name(signal)
        for signal in reading.missing
        if signal_name(signal).startswith("veo_gpu_profiling")
    }
    assert own == {'veo_gpu_profiling_active_ratio{part="nvenc"}'}
    decoder = 'veo_gpu_profiling_active_ratio{part="nvdec"}'
    told = {signal_name(signal): value for signal, value in reading.values.items()}
    assert told[decoder] == 0.25


def test_a_pair_that_is_none_makes_no_metrics() -> None:
    node = begun("busy")
    request = node.library.c_nvmlGpmMetricsGet_t()
    request.sample1, request.sample2 = (node.line.call("nvmlGpmSampleAlloc") for _ in range(2))
    with pytest.raises(NvmlError, match="INVALID_ARGUMENT"):
        node.line.call("nvmlGpmMetricsGet", request)
    node.line.call("nvmlGpmSampleGet", 0, request.sample1)
    node.at(1)
    node.line.call("nvmlGpmSampleGet", 1, request.sample2)
    # Of two GPUs.
    with pytest.raises(NvmlError, match="INVALID_ARGUMENT"):
        node.line.call("nvmlGpmMetricsGet", request)
    with pytest.raises(NvmlError, match="NOT_FOUND"):
        node.line.call("nvmlGpmMigSampleGet", 0, 1, request.sample2)
