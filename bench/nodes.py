# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The fake nodes that both exporters watch."""

import random
from pathlib import Path
from typing import Final

from tests.fake_nvml import FakeNode, FakeProcess, FakeProcessUtilization

GPUS: Final = 8
_GIB: Final = 1 << 30


def quiet_node(folder: Path) -> FakeNode:
    """Eight H100s without processes, so that nobody is charged for listing them; no delays."""
    folder.mkdir(parents=True)
    node = FakeNode(folder / "scenario", gpus=GPUS)
    with node.changes():
        for gpu in node.gpus:
            gpu.processes = []
            gpu.process_utilization = []
    node.write_sysfs(folder / "sys")
    return node


def busy_node(folder: Path, pids: list[int]) -> FakeNode:
    """The same with a process on each GPU. They must live: nvitop looks them up in /proc."""
    node = quiet_node(folder)
    with node.changes():
        for gpu, pid in zip(node.gpus, pids, strict=True):
            gpu.processes = [FakeProcess(pid, 60 * _GIB)]
            gpu.process_utilization = [FakeProcessUtilization(pid, sm=95, memory=60)]
    return node


def sysfs_root(node: FakeNode) -> Path:
    return node.scenario_path.parent / "sys"


def vary(node: FakeNode, turn: int) -> None:
    """Give every GPU other readings; the same ones each time for the same turn."""
    chance = random.Random(turn)  # noqa: S311 - repeatable noise
    with node.changes():
        for gpu in node.gpus:
            gpu.set(
                utilization_gpu_percent=chance.randint(0, 100),
                utilization_memory_percent=chance.randint(0, 100),
                encoder_utilization_percent=chance.randint(0, 100),
                decoder_utilization_percent=chance.randint(0, 100),
                memory_used_bytes=chance.randrange(_GIB, 78 * _GIB, 4096),
                power_usage_milliwatts=chance.randint(90_000, 700_000),
                energy_millijoules=10**9 + turn * 10**6 + chance.randrange(10**6),
                temperature_celsius=chance.randint(35, 85),
                clock_sm_mhz=chance.randrange(345, 1981, 15),
                pcie_transmit_kib_per_second=chance.randrange(10**6),
                pcie_receive_kib_per_second=chance.randrange(10**6),
                nvlink_transmit_kib=5 * 10**7 + turn * 10**5 + chance.randrange(10**5),
                nvlink_receive_kib=6 * 10**7 + turn * 10**5 + chance.randrange(10**5),
            )
