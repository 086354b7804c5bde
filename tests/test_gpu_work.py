# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What works on the GPUs, by the whole program: processes, MIG, and the driver's performance counters."""

from pathlib import Path

from tests.conftest import StartDaemon
from tests.daemon import Page
from tests.fake_nvml import FakeNode
from tests.fake_nvml.gpu import FakeMigDevice, FakeProcess

GIB = 1 << 30
DROPPED = "veo_exporter_dropped_total"
NAMES = ("render-7", "render-6", "render-5", "other")
UTILIZATION = "veo_gpu_utilization_ratio"
TENSOR = "veo_gpu_profiling_active_ratio"
MIG_INFO = "veo_gpu_mig_info"
MIG_USED = "veo_gpu_mig_memory_used_bytes"


def missing(page: Page, gpu: str) -> set[str]:
    return {
        dict(labels)["signal"].split("{")[0]
        for (name, labels) in page.series
        if name == "veo_gpu_capability_missing" and dict(labels)["gpu"] == gpu
    }


def test_two_hundred_processes(node: FakeNode, start: StartDaemon, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    processes = []
    for pid in range(1, 201):
        (proc / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "comm").write_text(f"render-{pid % 8}\n")
        processes.append(FakeProcess(pid, pid % 8 * GIB))
    node.gpus[0].set(processes=processes)
    page = start(f"--gpu.proc-root={proc}", "--gpu.process-names=3").wait_for(
        lambda page: (
            page.value(DROPPED, kind="process_name", reason="beyond_top") == 5
            and len(page.values("veo_gpu_processes", gpu="0")) == len(NAMES)
            and len(page.values("veo_gpu_process_utilization_ratio", gpu="0", part="sm")) == 4
            and page.values("veo_gpu_processes", gpu="1") != []
        )
    )
    counts = {name: page.value("veo_gpu_processes", gpu="0", process=name) for name in NAMES}
    assert counts == {"render-7": 25, "render-6": 25, "render-5": 25, "other": 125}
    used = page.value("veo_gpu_process_memory_used_bytes", gpu="0", process="other")
    assert used == 25 * (1 + 2 + 3 + 4) * GIB
    # Those of the other GPUs have pids that this /proc does not know.
    assert page.value("veo_gpu_processes", gpu="1", process="unknown") == 1


def test_mig_is_switched_on_while_running(node: FakeNode, start: StartDaemon) -> None:
    daemon = start()
    page = daemon.wait_for(lambda page: page.value(TENSOR, gpu="0", part="tensor") is not None)
    assert page.value("veo_gpu_mig_mode", gpu="0") == 0
    node.gpus[0].set(mig_mode_pending=1)
    daemon.wait_for(lambda page: page.value("veo_gpu_mig_mode_pending", gpu="0") == 1)
    divided = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetProcessesUtilizationInfo")
    with node.changes():
        for function in (*divided, "nvmlDeviceGetProcessUtilization", "nvmlGpmSampleGet"):
            node.gpus[0].unsupport(function)
        node.gpus[0].set(
            mig_mode=1,
            mig_devices=[
                FakeMigDevice(0, "MIG-a", 1, 0, 10 * GIB, 4 * GIB),
                FakeMigDevice(3, "MIG-b", 5, 0, 20 * GIB, 3 * GIB, gpu_slices=2, compute_slices=2),
            ],
            mig_gpm={(1, 5): 25, (5, 5): 75},
        )
    active = "veo_gpu_mig_profiling_active_ratio"
    # Other groups, which are asked at other times.
    page = daemon.wait_for(
        lambda page: (
            len(page.values(active, gpu="0", part="tensor")) == 2
            and {UTILIZATION, TENSOR} <= missing(page, "0")
        )
    )
    assert page.value(active, gpu="0", mig_uuid="MIG-a", part="tensor") == 0.25
    assert page.value(active, gpu="0", mig_uuid="MIG-b", part="tensor") == 0.75
    assert page.value(MIG_INFO, mig_uuid="MIG-b", mig_profile="2g.20gb", gpu_instance="5") == 1
    assert page.values(MIG_USED) == [4 * GIB, 3 * GIB]
    # The memory of the whole GPU is told as before, and under its own name.
    used = node.gpus[0].memory_used_bytes
    assert page.value("veo_gpu_memory_used_bytes", gpu="0") == used
    # What is said of parts alone has a row that says so; what belongs to the board stays.
    assert page.value(UTILIZATION, gpu="0") is None
    for name in ("temperature_celsius", "power_watts", "sm_clock_hertz"):
        assert page.value(f"veo_gpu_{name}", gpu="0") is not None, name
    assert page.states()["0"] == "ok"
    # Divided anew: the same id is another instance.
    node.gpus[0].set(mig_devices=[FakeMigDevice(0, "MIG-c", 1, 0, 40 * GIB, GIB)])
    page = daemon.wait_for(lambda page: page.value(MIG_INFO, mig_uuid="MIG-c") == 1)
    assert page.values(MIG_INFO) == [1]
    assert page.value(MIG_USED, gpu_instance="1", mig_uuid="MIG-c") == GIB
    with node.changes():
        node.gpus[0].forget_rules()
        node.gpus[0].set(mig_mode=0, mig_mode_pending=0, mig_devices=[])
    # With the next static sweep, for until then it is known not to be supported.
    daemon.wait_for(
        lambda page: page.value(UTILIZATION, gpu="0") is not None and page.values(MIG_INFO) == []
    )


def test_performance_counters_of_two_generations(node: FakeNode, start: StartDaemon) -> None:
    node.gpus[1].set(gpm_supported=0, architecture=7)
    page = start("--gpu.gpm=on").wait_for(
        lambda page: page.value(TENSOR, gpu="0", part="tensor") is not None
    )
    assert page.value(TENSOR, gpu="0", part="tensor") == 0.6275
    assert page.value("veo_gpu_profiling_pcie_transmit_bytes_per_second", gpu="0") == 1220 * 1048576
    assert TENSOR in missing(page, "0")
    assert [
        name for name, labels in page.series if "profiling" in name and dict(labels)["gpu"] == "1"
    ] == []
    assert {name for name in missing(page, "1") if "profiling" in name} == {
        TENSOR,
        "veo_gpu_profiling_sm_occupancy_ratio",
        "veo_gpu_profiling_pcie_transmit_bytes_per_second",
        "veo_gpu_profiling_pcie_receive_bytes_per_second",
    }


def test_performance_counters_can_be_left_alone(node: FakeNode, start: StartDaemon) -> None:
    page = start("--gpu.gpm=off").wait_for(
        lambda page: len(page.values("veo_gpu_processes")) == len(node.gpus)
    )
    assert page.values(TENSOR) == []
    called = {dict(labels).get("function", "") for _, labels in page.series}
    assert [function for function in called if function.startswith("nvmlGpm")] == []


def test_a_driver_that_is_loaded_anew_gets_new_samples(node: FakeNode, start: StartDaemon) -> None:
    daemon = start()

    def counted(page: Page, function: str) -> float:
        return page.value("veo_gpu_nvml_calls_total", function=function) or 0

    everywhere = len(node.gpus)
    daemon.wait_for(lambda page: len(page.values(TENSOR, part="tensor")) == everywhere)
    node.unload_driver()
    daemon.wait_for(lambda page: page.values(TENSOR) == [])
    node.load_driver()
    page = daemon.wait_for(lambda page: len(page.values(TENSOR, part="tensor")) == everywhere)
    # Two of each GPU and session.
    assert counted(page, "nvmlGpmSampleAlloc") == 4 * everywhere
    assert counted(page, "nvmlGpmSampleFree") == 2 * everywhere
    assert page.values("veo_gpu_nvml_errors_total", function="nvmlGpmMetricsGet") == []
