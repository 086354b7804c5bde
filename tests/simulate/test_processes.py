# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated node's processes: told like real ones, and never taken for one."""

from pathlib import Path

import pytest

from tests.gpu.surveying import told
from tests.simulate.nodes import Simulated, begun, changed
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.process_names import NameLimits, ProcessNames
from veo_exporter.gpu.processes import ProcessSurveys
from veo_exporter.gpu.session import open_session
from veo_exporter.simulate import lay_out_process_names, load_scenario
from veo_exporter.simulate.processes import FIRST_PID

COUNT = ("veo_gpu_processes", "veo-engine")
MEMORY = ("veo_gpu_process_memory_used_bytes", "veo-engine")


def surveys_of(node: Simulated, proc_root: Path) -> ProcessSurveys:
    names = ProcessNames(NameLimits(proc_root=proc_root), lambda reason: None, node.clock)
    return ProcessSurveys(names, node.clock)


def test_an_engine_on_each_gpu_has_the_memory_that_is_used(tmp_path: Path) -> None:
    lay_out_process_names(load_scenario("busy"), tmp_path)
    node = begun("busy")
    node.at(4.5)
    surveys = surveys_of(node, tmp_path)
    device = node.device(0)
    rows = told(node.survey(device, *surveys.surveys), "veo_gpu_process")
    assert rows[COUNT] == 1
    # GPU 0 denoises by then: 78 % of the 79.5 GiB that are not reserved.
    assert rows[MEMORY] == int(79.5 * 1024**3 * 0.78) == node.read(0).values[catalog.MEMORY_USED]
    # 97 % with a ripple of at most 1.5 %.
    sm = rows["veo_gpu_process_utilization_ratio", "veo-engine", "sm"]
    assert 0.955 <= sm <= 0.985


def test_who_has_no_memory_is_no_process(tmp_path: Path) -> None:
    idle = changed(
        "busy",
        gpus=1,
        happenings=[],
        work=[
            {
                "name": "nothing",
                "lasts": "10s",
                "utilization": 0,
                "memory_copy_utilization": 0,
                "memory_used": 0,
                "power": 0.1,
                "temperature_celsius": 35,
            }
        ],
    )
    lay_out_process_names(idle, tmp_path)
    node = Simulated(idle)
    open_session(node.line)
    node.at(5)
    surveys = surveys_of(node, tmp_path)
    reading = node.survey(node.device(0), *surveys.surveys)
    assert told(reading, "veo_gpu_process") == {}
    assert reading.failures == ()


def test_utilization_is_told_once_a_second(tmp_path: Path) -> None:
    node = begun("busy")
    node.at(7.3)
    (row,) = node.line.call("nvmlDeviceGetProcessesUtilizationInfo", 0, 0)
    assert row.timeStamp == 1_001_007_000_000
    assert node.find(0).code == 0
    with pytest.raises(Exception, match="NOT_FOUND"):
        node.line.call("nvmlDeviceGetProcessesUtilizationInfo", 0, row.timeStamp)
    node.at(8)
    (row,) = node.line.call("nvmlDeviceGetProcessesUtilizationInfo", 0, row.timeStamp)
    assert row.timeStamp == 1_001_008_000_000


def test_a_simulated_pid_is_none_of_this_machine() -> None:
    # Up to 4,194,303 is what Linux gives.
    assert int(Path("/proc/sys/kernel/pid_max").read_text()) <= FIRST_PID
    for name in ("busy", "mig"):
        node = begun(name)
        pids = [
            process.pid
            for gpu in range(8)
            for process in node.line.call("nvmlDeviceGetComputeRunningProcesses", gpu)
        ]
        assert len(pids) == len(set(pids)) == {"busy": 8, "mig": 11}[name]
        assert min(pids) >= FIRST_PID
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_every_process_of_every_story_has_a_name(tmp_path: Path) -> None:
    lay_out_process_names(load_scenario("mig"), tmp_path)
    node = begun("mig")
    names = ProcessNames(NameLimits(proc_root=tmp_path), lambda reason: None, node.clock)
    pids = [
        process.pid
        for gpu in range(8)
        for process in node.line.call("nvmlDeviceGetComputeRunningProcesses", gpu)
    ]
    assert set(names.names_of(pids).values()) == {"veo-engine"}
    assert sorted(int(process.name) for process in tmp_path.iterdir()) == pids
