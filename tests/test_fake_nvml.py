# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

"""The fake NVML library, through the real pynvml."""

import ctypes
import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.fake_nvml import (
    CompilerMissingError,
    FakeEncoderSession,
    FakeField,
    FakeGpu,
    FakeLibrary,
    FakeLicensableFeature,
    FakeMigDevice,
    FakeNode,
    FakeProcess,
    FakeProcessUtilization,
    FakeRetiredPage,
    FakeSample,
    FakeSamples,
    build,
    compile_library,
)
from tests.fake_nvml.gpu import FUNCTIONS, NUMBERS, TEXTS

DEADLINE_SECONDS = 20.0

STRUCTURES = {
    "nvmlPciInfo_t": "nvmlPciInfo_t",
    "nvmlPciInfoExt_v1_t": "nvmlPciInfoExt_v1_t",
    "nvmlSystemDriverBranchInfo_v1_t": "c_nvmlSystemDriverBranchInfo_v1_t",
    "nvmlMemory_t": "c_nvmlMemory_t",
    "nvmlMemory_v2_t": "c_nvmlMemory_v2_t",
    "nvmlBAR1Memory_t": "c_nvmlBAR1Memory_t",
    "nvmlUtilization_t": "c_nvmlUtilization_t",
    "nvmlTemperature_v1_t": "c_nvmlTemperature_v1_t",
    "nvmlMarginTemperature_v1_t": "c_nvmlMarginTemperature_v1_t",
    "nvmlProcessInfo_t": "c_nvmlProcessInfo_v3_t",
    "nvmlProcessDetail_v1_t": "c_nvmlProcessDetail_v1_t",
    "nvmlProcessDetailList_v1_t": "c_nvmlProcessDetailList_v1_t",
    "nvmlProcessUtilizationSample_t": "c_nvmlProcessUtilizationSample_t",
    "nvmlProcessUtilizationInfo_v1_t": "c_nvmlProcessUtilizationInfo_v1_t",
    "nvmlProcessesUtilizationInfo_v1_t": "c_nvmlProcessesUtilizationInfo_v1_t",
    "nvmlValue_t": "c_nvmlValue_t",
    "nvmlSample_t": "c_nvmlSample_t",
    "nvmlFieldValue_t": "c_nvmlFieldValue_t",
    "nvmlViolationTime_t": "c_nvmlViolationTime_t",
    "nvmlEncoderSessionInfo_t": "c_nvmlEncoderSession_t",
    "nvmlFBCStats_t": "c_nvmlFBCStats_t",
    "nvmlGridLicensableFeatures_t": "c_nvmlGridLicensableFeatures_t",
    "nvmlGridLicensableFeatures_v3_t": "c_nvmlGridLicensableFeatures_v3_t",
    "nvmlGridLicensableFeatures_v4_t": "c_nvmlGridLicensableFeatures_v4_t",
    "nvmlRowRemapperHistogramValues_t": "c_nvmlRowRemapperHistogramValues",
    "nvmlRemappedRowsInfo_v2_t": "c_nvmlRemappedRowsInfo_v2_t",
    "nvmlEccErrorCounts_t": "c_nvmlEccErrorCounts_t",
    "nvmlEccSramErrorStatus_v1_t": "c_nvmlEccSramErrorStatus_v1_t",
    "nvmlDeviceAttributes_t": "c_nvmlDeviceAttributes",
    "nvmlConfComputeMemSizeInfo_t": "c_nvmlConfComputeMemSizeInfo_t",
    "nvmlGpuFabricInfo_v2_t": "c_nvmlGpuFabricInfo_v2_t",
    "nvmlGpuFabricInfo_v3_t": "c_nvmlGpuFabricInfo_v3_t",
    "nvmlEventData_t": "c_nvmlEventData_t",
    "nvmlGpmSupport_t": "c_nvmlGpmSupport_t",
    "nvmlGpmMetric_t": "c_nvmlGpmMetric_t",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    node = FakeNode(tmp_path / "scenario")
    library = node.attach()
    yield node
    # Threads that a failed test left hanging must end.
    with node.changes():
        node.forget_rules()
        for gpu in node.gpus:
            gpu.forget_rules()
    library.reset()


@pytest.fixture
def library(node: FakeNode) -> FakeLibrary:
    library = FakeLibrary(node.library_directory)
    pynvml.nvmlInit()
    return library


def handle(index: int) -> Any:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def code_of(function: Callable[..., object], *arguments: object) -> int:
    """NVML's return code of a call: 0, or that of the error that pynvml raises."""
    try:
        function(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.002)


def run_child(node: FakeNode, program: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | node.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class InThread:
    """One call in a thread of its own."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.code: int | None = None

        def run() -> None:
            self.code = code_of(function, *arguments)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def finish(self) -> int | None:
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()
        return self.code


# Building


def test_the_sources_compile_without_warnings(tmp_path: Path) -> None:
    compile_library(tmp_path / "library.so")


def test_build_reuses_what_it_built(tmp_path: Path) -> None:
    folder = build(tmp_path)
    first = (folder / "libnvidia-ml.so.1").stat()
    assert build(tmp_path) == folder
    assert (folder / "libnvidia-ml.so.1").stat().st_ino == first.st_ino


def test_two_builds_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(build, [tmp_path, tmp_path]))
    assert folders[0] == folders[1]
    assert [path.name for path in tmp_path.iterdir()] == [folders[0].name]


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CompilerMissingError, match="apt-get install gcc"):
        build(tmp_path)


@pytest.mark.parametrize(("own", "pynvml_name"), STRUCTURES.items())
def test_structures_are_as_large_as_pynvml_has_them(
    node: FakeNode, own: str, pynvml_name: str
) -> None:
    if not hasattr(pynvml, pynvml_name):
        pytest.skip(f"this nvidia-ml-py has no {pynvml_name}: pip install -U nvidia-ml-py")
    assert node.attach().structure_size(own) == ctypes.sizeof(getattr(pynvml, pynvml_name))


def test_the_open_ended_structure_begins_as_pynvml_has_it(node: FakeNode) -> None:
    offset = pynvml.c_nvmlGpmMetricsGet_t.metrics.offset
    assert node.attach().structure_size("nvmlGpmMetricsGet_t") == offset


def test_each_value_of_the_library_is_a_value_of_the_fake_gpu() -> None:
    assert set(TEXTS + NUMBERS) <= {field.name for field in dataclasses.fields(FakeGpu)}


def test_each_listed_function_is_exported(library: FakeLibrary) -> None:
    assert [name for name in FUNCTIONS if not hasattr(library.library, name)] == []


# Loading


def test_a_child_process_finds_the_library(node: FakeNode) -> None:
    program = """
import json, pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
print(json.dumps([pynvml.nvmlDeviceGetUUID(handle) for handle in handles]))
"""
    assert run_child(node, program) == [gpu.uuid for gpu in node.gpus]


def test_a_child_process_sees_a_change(node: FakeNode, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = f"""
import json, pathlib, pynvml, time
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(2)
before = pynvml.nvmlDeviceGetPowerUsage(handle)
pathlib.Path({str(ready)!r}).touch()
deadline = time.monotonic() + {DEADLINE_SECONDS}
while pynvml.nvmlDeviceGetPowerUsage(handle) == before and time.monotonic() < deadline:
    time.sleep(0.002)
print(json.dumps(pynvml.nvmlDeviceGetPowerUsage(handle)))
"""
    with ThreadPoolExecutor(1) as pool:
        child = pool.submit(run_child, node, program)
        wait_until(lambda: ready.exists() or child.done())
        node.gpus[2].set(power_usage_milliwatts=123_456)
        assert child.result() == 123_456


def test_without_a_scenario_every_call_fails(node: FakeNode, tmp_path: Path) -> None:
    library = node.attach()
    library.use_scenario(tmp_path / "missing")
    assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_UNKNOWN


@pytest.mark.parametrize(
    "line",
    [
        "nonsense 1",
        "gpu 8 serial 1",
        "gpu 0 power_usage_milliwatts much",
        "gpu 0 no_such_value 1",
        "gpu 0 process compute",
        "rule 0 nvmlNoSuchFunction hang",
        "rule 0 nvmlDeviceGetName wait",
        "rule 0 nvmlDeviceGetName return",
        "order 0 9",
    ],
)
def test_a_wrong_line_is_reported(
    node: FakeNode, capfd: pytest.CaptureFixture[str], line: str
) -> None:
    library = node.attach()
    path = node.scenario_path.with_name("wrong")
    path.write_text(node.text() + line + "\n")
    library.use_scenario(path)
    assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_UNKNOWN
    number = len(node.text().splitlines()) + 1
    assert f"fake NVML: {path}:{number}: " in capfd.readouterr().err


# The driver's life


def test_no_driver(node: FakeNode) -> None:
    node.unload_driver()
    assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    node.load_driver()
    assert code_of(pynvml.nvmlInit) == 0


def test_calls_before_init_and_after_shutdown(node: FakeNode) -> None:
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    first = handle(0)
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetName, first) == 0, "init counts its callers"
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlDeviceGetName, first) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlShutdown) == pynvml.NVML_ERROR_UNINITIALIZED


def test_a_reload_kills_sessions_until_they_begin_anew(
    node: FakeNode, library: FakeLibrary
) -> None:
    old = handle(0)
    node.unload_driver()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    node.load_driver()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlInit) == 0
    assert code_of(handle, 0) == pynvml.NVML_ERROR_UNINITIALIZED, "the old session is still open"
    pynvml.nvmlShutdown()
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert code_of(pynvml.nvmlDeviceGetName, handle(0)) == 0
    assert code_of(pynvml.nvmlDeviceGetName, old) == pynvml.NVML_ERROR_UNINITIALIZED


def test_the_scenario_names_the_codes_of_an_absent_driver(
    node: FakeNode, library: FakeLibrary
) -> None:
    node.unload_driver(init_code=12, dead_code=999)
    assert code_of(pynvml.nvmlDeviceGetCount) == 999
    assert code_of(pynvml.nvmlInit) == 12


def test_init_fails_with_any_code(node: FakeNode) -> None:
    node.fail("nvmlInitWithFlags", 18)
    assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    node.forget_rules("nvmlInitWithFlags")
    node.fail("nvmlInit", 17)
    assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_OPERATING_SYSTEM


def test_a_new_order_applies_at_the_next_init(node: FakeNode, library: FakeLibrary) -> None:
    order = [7, 0, 1, 2, 3, 4, 5, 6]
    node.order = order
    node.write()
    assert pynvml.nvmlDeviceGetUUID(handle(0)) == node.gpus[0].uuid
    node.unload_driver()
    node.load_driver(order=order)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    uuids = [pynvml.nvmlDeviceGetUUID(handle(index)) for index in range(8)]
    assert uuids == [node.gpus[number].uuid for number in order]
    assert pynvml.nvmlDeviceGetIndex(handle(3)) == 3
    moved = pynvml.nvmlDeviceGetHandleByUUID(node.gpus[7].uuid)
    assert pynvml.nvmlDeviceGetIndex(moved) == 0


# Rules


def test_a_rule_for_one_gpu_leaves_the_others(node: FakeNode, library: FakeLibrary) -> None:
    node.gpus[3].fail("nvmlDeviceGetPowerUsage", 999)
    codes = [code_of(pynvml.nvmlDeviceGetPowerUsage, handle(index)) for index in range(8)]
    assert codes == [0, 0, 0, 999, 0, 0, 0, 0]
    assert code_of(pynvml.nvmlDeviceGetName, handle(3)) == 0
    node.gpus[3].forget_rules()
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, handle(3)) == 0


def test_a_rule_for_every_gpu_and_every_function(node: FakeNode, library: FakeLibrary) -> None:
    first = handle(0)
    node.fail("*", 17)
    node.gpus[1].fail("nvmlDeviceGetName", 4)
    assert code_of(pynvml.nvmlDeviceGetCount) == 17
    assert code_of(pynvml.nvmlDeviceGetName, first) == 17
    node.forget_rules()
    assert code_of(pynvml.nvmlDeviceGetName, handle(1)) == 4
    assert code_of(pynvml.nvmlDeviceGetSerial, handle(1)) == 0


def test_unsupport(node: FakeNode, library: FakeLibrary) -> None:
    node.gpus[0].unsupport("nvmlDeviceGetEncoderUtilization")
    node.gpus[1].set(decoder_utilization_percent=None)
    assert code_of(pynvml.nvmlDeviceGetEncoderUtilization, handle(0)) == 3
    assert code_of(pynvml.nvmlDeviceGetEncoderUtilization, handle(1)) == 0
    assert code_of(pynvml.nvmlDeviceGetDecoderUtilization, handle(1)) == 3


def test_a_name_without_version_means_all_of_them(node: FakeNode, library: FakeLibrary) -> None:
    first = handle(0)
    both = (None, pynvml.nvmlMemory_v2)
    node.gpus[0].fail("nvmlDeviceGetMemoryInfo", 3)
    assert [code_of(pynvml.nvmlDeviceGetMemoryInfo, first, item) for item in both] == [3, 3]
    node.gpus[0].forget_rules().fail("nvmlDeviceGetMemoryInfo_v2", 13)
    assert [code_of(pynvml.nvmlDeviceGetMemoryInfo, first, item) for item in both] == [0, 13]
    node.gpus[0].forget_rules().fail("nvmlDeviceGetMemoryInfo_v1", 4)
    assert [code_of(pynvml.nvmlDeviceGetMemoryInfo, first, item) for item in both] == [4, 0]


def test_wrong_names_are_refused(node: FakeNode) -> None:
    with pytest.raises(ValueError, match="nvmlDeviceGetPowerUse"):
        node.gpus[0].fail("nvmlDeviceGetPowerUse", 999)
    with pytest.raises(ValueError, match="power_milliwatts"):
        node.gpus[0].set(power_milliwatts=1)


def test_delay(node: FakeNode, library: FakeLibrary) -> None:
    first = handle(0)
    node.gpus[0].delay("nvmlDeviceGetPcieThroughput", 0.02)
    started = time.monotonic()
    assert pynvml.nvmlDeviceGetPcieThroughput(first, 1) == 2_500_000
    assert time.monotonic() - started >= 0.02


def test_a_hung_call_blocks_no_other_and_can_be_released(
    node: FakeNode, library: FakeLibrary
) -> None:
    handles = [handle(index) for index in range(8)]
    node.gpus[2].hang("nvmlDeviceGetPowerUsage")
    before = library.calls("nvmlDeviceGetPowerUsage")
    hung = InThread(pynvml.nvmlDeviceGetPowerUsage, handles[2])
    wait_until(lambda: library.calls("nvmlDeviceGetPowerUsage") == before + 1)
    assert pynvml.nvmlDeviceGetPowerUsage(handles[3]) == 615_000
    assert pynvml.nvmlDeviceGetTemperature(handles[2], 0) == 64
    assert hung.is_running()
    node.gpus[2].release("nvmlDeviceGetPowerUsage")
    assert hung.finish() == 0


def test_a_released_call_answers_by_the_new_state(node: FakeNode, library: FakeLibrary) -> None:
    first = handle(0)
    node.gpus[0].hang()
    hung = InThread(pynvml.nvmlDeviceGetName, first)
    wait_until(lambda: library.calls("nvmlDeviceGetName") == 1)
    with node.changes():
        node.gpus[0].release()
        node.gpus[0].lose()
    assert hung.finish() == pynvml.NVML_ERROR_GPU_IS_LOST


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount"])
def test_functions_of_the_library_hang_too(node: FakeNode, function: str) -> None:
    library = node.attach()
    pynvml.nvmlInit()
    before = library.calls(function)
    node.hang(function)
    hung = InThread(getattr(pynvml, function))
    wait_until(lambda: library.calls(function) == before + 1)
    assert hung.is_running()
    node.release()
    assert hung.finish() == 0


def test_a_look_up_obeys_the_rules_of_its_gpu(node: FakeNode, library: FakeLibrary) -> None:
    node.gpus[5].fail("nvmlDeviceGetHandleByIndex", 999)
    assert [code_of(handle, index) for index in range(8)] == [0, 0, 0, 0, 0, 999, 0, 0]


def test_calls_are_counted(node: FakeNode, library: FakeLibrary) -> None:
    first = handle(0)
    before = library.calls()
    for _ in range(3):
        pynvml.nvmlDeviceGetMemoryInfo(first)
    pynvml.nvmlDeviceGetMemoryInfo(first, pynvml.nvmlMemory_v2)
    assert library.calls("nvmlDeviceGetMemoryInfo") == 4
    assert library.calls("nvmlDeviceGetMemoryInfo_v1") == 3
    assert library.calls("nvmlDeviceGetMemoryInfo_v2") == 1
    assert library.calls() == before + 4


# The states of a GPU


def look_ups(gpu: FakeGpu, index: int) -> list[int]:
    return [
        code_of(pynvml.nvmlDeviceGetHandleByIndex, index),
        code_of(pynvml.nvmlDeviceGetHandleByUUID, gpu.uuid),
        code_of(pynvml.nvmlDeviceGetHandleBySerial, gpu.serial),
        code_of(pynvml.nvmlDeviceGetHandleByPciBusId, gpu.pci_bus_id),
    ]


def test_lost(node: FakeNode, library: FakeLibrary) -> None:
    fourth = handle(3)
    node.gpus[3].unsupport("nvmlDeviceGetName").lose()
    assert pynvml.nvmlDeviceGetCount() == 8
    assert look_ups(node.gpus[3], 3) == [15] * 4
    assert code_of(pynvml.nvmlDeviceGetName, fourth) == 15
    assert code_of(pynvml.nvmlDeviceGetUUID, fourth) == 15
    assert look_ups(node.gpus[4], 4) == [0] * 4
    node.gpus[3].recover()
    assert code_of(pynvml.nvmlDeviceGetUUID, fourth) == 0


def test_reset_required(node: FakeNode, library: FakeLibrary) -> None:
    node.gpus[3].require_reset()
    assert look_ups(node.gpus[3], 3) == [0] * 4
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, handle(3)) == 16


def test_hidden(node: FakeNode, library: FakeLibrary) -> None:
    fourth = handle(3)
    node.gpus[3].hide()
    assert pynvml.nvmlDeviceGetCount() == 7
    assert pynvml.nvmlDeviceGetUUID(handle(3)) == node.gpus[4].uuid
    assert look_ups(node.gpus[3], 7) == [2, 6, 6, 6]
    assert code_of(pynvml.nvmlDeviceGetName, fourth) == 15


def test_garbage_handles(library: FakeLibrary) -> None:
    buffer = ctypes.create_string_buffer(64)
    for address in (None, 1, 0xDEADBEEF, ctypes.addressof(buffer)):
        garbage = ctypes.cast(ctypes.c_void_p(address), pynvml.c_nvmlDevice_t)
        assert code_of(pynvml.nvmlDeviceGetName, garbage) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    inside = ctypes.cast(handle(0), ctypes.c_void_p).value
    assert inside
    shifted = ctypes.cast(ctypes.c_void_p(inside + 4), pynvml.c_nvmlDevice_t)
    assert code_of(pynvml.nvmlDeviceGetName, shifted) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_look_ups_of_what_is_not_there(library: FakeLibrary) -> None:
    assert code_of(handle, 8) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetHandleByUUID, "GPU-none") == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(pynvml.nvmlDeviceGetHandleByPciBusId, "0000:01:00.0") == 6


@pytest.mark.parametrize("form", ["00000000:43:00.0", "0000:43:00.0", "43:00.0"])
def test_pci_ids_in_each_form(library: FakeLibrary, form: str) -> None:
    assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(form)) == 1


# Values


def test_the_system(library: FakeLibrary, node: FakeNode) -> None:
    node.set(driver_version="580.1 beta", cuda_version=13000)
    assert pynvml.nvmlSystemGetDriverVersion() == "580.1 beta"
    assert pynvml.nvmlSystemGetNVMLVersion() == "12.570.86.15"
    assert pynvml.nvmlSystemGetCudaDriverVersion() == 13000
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 13000
    assert pynvml.nvmlErrorString(15) == "GPU is lost"
    assert pynvml.nvmlErrorString(999) == "Unknown Error"


def test_pci_info(library: FakeLibrary, node: FakeNode) -> None:
    info = pynvml.nvmlDeviceGetPciInfo(handle(0))
    assert (info.domain, info.bus, info.device) == (0, 0x1B, 0)
    assert info.busId == "00000000:1B:00.0"
    assert info.busIdLegacy == "0000:1B:00.0"
    assert info.pciDeviceId == 0x233010DE
    extended = pynvml.nvmlPciInfoExt_v1_t(version=pynvml.nvmlPciInfoExt_v1)
    pynvml.nvmlDeviceGetPciInfoExt(handle(0), ctypes.byref(extended))
    assert (extended.busId, extended.baseClass) == ("00000000:1B:00.0", 3)


def test_memory_in_both_layouts(library: FakeLibrary, node: FakeNode) -> None:
    gpu = node.gpus[1]
    total, reserved, used = gpu.memory_total_bytes, gpu.memory_reserved_bytes, gpu.memory_used_bytes
    assert total
    assert reserved
    assert used
    old = pynvml.nvmlDeviceGetMemoryInfo(handle(1))
    new = pynvml.nvmlDeviceGetMemoryInfo(handle(1), pynvml.nvmlMemory_v2)
    assert (old.total, old.used, old.free) == (total, used + reserved, total - used - reserved)
    assert (new.total, new.reserved, new.used) == (total, reserved, used)
    assert new.free == total - used - reserved


def test_plain_values(library: FakeLibrary, node: FakeNode) -> None:
    second = handle(1)
    utilization = pynvml.nvmlDeviceGetUtilizationRates(second)
    assert (utilization.gpu, utilization.memory) == (96, 60)
    answers = {
        pynvml.nvmlDeviceGetName: "NVIDIA H100 80GB HBM3",
        pynvml.nvmlDeviceGetSerial: node.gpus[1].serial,
        pynvml.nvmlDeviceGetVbiosVersion: node.gpus[1].vbios_version,
        pynvml.nvmlDeviceGetBoardPartNumber: node.gpus[1].board_part_number,
        pynvml.nvmlDeviceGetBrand: pynvml.NVML_BRAND_NVIDIA,
        pynvml.nvmlDeviceGetArchitecture: pynvml.NVML_DEVICE_ARCH_HOPPER,
        pynvml.nvmlDeviceGetCudaComputeCapability: (9, 0),
        pynvml.nvmlDeviceGetMinorNumber: 1,
        pynvml.nvmlDeviceGetPowerUsage: 613_000,
        pynvml.nvmlDeviceGetPowerManagementLimit: 700_000,
        pynvml.nvmlDeviceGetPowerManagementLimitConstraints: [200_000, 700_000],
        pynvml.nvmlDeviceGetEnforcedPowerLimit: 700_000,
        pynvml.nvmlDeviceGetPowerManagementDefaultLimit: 700_000,
        pynvml.nvmlDeviceGetTotalEnergyConsumption: 1_001_000_000,
        pynvml.nvmlDeviceGetMarginTemperature: 24,
        pynvml.nvmlDeviceGetCurrentClocksEventReasons: 0,
        pynvml.nvmlDeviceGetCurrentClocksThrottleReasons: 0,
        pynvml.nvmlDeviceGetSupportedClocksEventReasons: 0x1FF,
        pynvml.nvmlDeviceGetEncoderUtilization: [0, 166_667],
        pynvml.nvmlDeviceGetDecoderUtilization: [1, 166_667],
        pynvml.nvmlDeviceGetJpgUtilization: [2, 166_667],
        pynvml.nvmlDeviceGetOfaUtilization: [3, 166_667],
        pynvml.nvmlDeviceGetNumFans: 0,
        pynvml.nvmlDeviceGetPerformanceState: 0,
        pynvml.nvmlDeviceGetPersistenceMode: 1,
        pynvml.nvmlDeviceGetMigMode: [0, 0],
        pynvml.nvmlDeviceGetMaxMigDeviceCount: 7,
        pynvml.nvmlDeviceGetEccMode: [1, 1],
        pynvml.nvmlDeviceGetCurrPcieLinkGeneration: 5,
        pynvml.nvmlDeviceGetMaxPcieLinkWidth: 16,
        pynvml.nvmlDeviceGetPcieReplayCounter: 0,
        pynvml.nvmlDeviceGetRemappedRows: (0, 0, 0, 0),
        pynvml.nvmlDeviceGetEncoderStats: (0, 0, 0),
        pynvml.nvmlDeviceGetGspFirmwareVersion: b"570.86.15",
    }
    assert {function: function(second) for function in answers} == answers
    unsupported = [
        pynvml.nvmlDeviceGetFanSpeed,
        pynvml.nvmlDeviceGetRetiredPagesPendingStatus,
        pynvml.nvmlDeviceGetDriverModel,
    ]
    assert [code_of(function, second) for function in unsupported] == [3, 3, 3]


def test_values_that_an_argument_selects(library: FakeLibrary) -> None:
    second = handle(1)
    clocks = [pynvml.nvmlDeviceGetClockInfo(second, kind) for kind in range(4)]
    assert clocks == [1965, 1965, 2619, 1530]
    assert pynvml.nvmlDeviceGetMaxClockInfo(second, pynvml.NVML_CLOCK_MEM) == 2619
    assert code_of(pynvml.nvmlDeviceGetClockInfo, second, 4) == 2
    assert pynvml.nvmlDeviceGetTemperature(second, 0) == 63
    assert pynvml.nvmlDeviceGetTemperatureV(second, 0) == 63
    assert pynvml.nvmlDeviceGetTemperatureThreshold(second, 1) == 89
    assert code_of(pynvml.nvmlDeviceGetTemperatureThreshold, second, 4) == 3
    assert pynvml.nvmlDeviceGetPcieThroughput(second, 0) == 1_250_001
    assert pynvml.nvmlDeviceGetNvLinkState(second, 17) == 1
    assert code_of(pynvml.nvmlDeviceGetNvLinkState, second, 18) == 2
    assert pynvml.nvmlDeviceGetViolationStatus(second, 0).violationTime == 0


def test_fans(library: FakeLibrary, node: FakeNode) -> None:
    node.gpus[0].set(fan_count=2, fan_speed_percent=40)
    assert pynvml.nvmlDeviceGetNumFans(handle(0)) == 2
    assert pynvml.nvmlDeviceGetFanSpeed(handle(0)) == 40
    assert pynvml.nvmlDeviceGetFanSpeed_v2(handle(0), 1) == 40
    assert code_of(pynvml.nvmlDeviceGetFanSpeed_v2, handle(0), 2) == 2
    assert code_of(pynvml.nvmlDeviceGetFanSpeed_v2, handle(1), 0) == 3


def test_the_gpus_differ(library: FakeLibrary) -> None:
    functions = [
        pynvml.nvmlDeviceGetUUID,
        pynvml.nvmlDeviceGetPowerUsage,
        pynvml.nvmlDeviceGetTotalEnergyConsumption,
        lambda item: pynvml.nvmlDeviceGetTemperature(item, 0),
        lambda item: pynvml.nvmlDeviceGetUtilizationRates(item).gpu,
        lambda item: pynvml.nvmlDeviceGetMemoryInfo(item).used,
    ]
    for function in functions:
        assert len({function(handle(index)) for index in range(8)}) == 8


def test_structure_versions_are_checked(library: FakeLibrary) -> None:
    first = handle(0)
    assert code_of(pynvml.nvmlDeviceGetMemoryInfo, first, 0x01000028) == 25
    for structure, name in [
        (pynvml.c_nvmlTemperature_v1_t, "nvmlDeviceGetTemperatureV"),
        (pynvml.c_nvmlMarginTemperature_v1_t, "nvmlDeviceGetMarginTemperature"),
        (pynvml.c_nvmlProcessDetailList_v1_t, "nvmlDeviceGetRunningProcessDetailList"),
        (pynvml.c_nvmlProcessesUtilizationInfo_v1_t, "nvmlDeviceGetProcessesUtilizationInfo"),
        (pynvml.nvmlPciInfoExt_v1_t, "nvmlDeviceGetPciInfoExt"),
        (pynvml.c_nvmlGpmSupport_t, "nvmlGpmQueryDeviceSupport"),
    ]:
        item = structure()
        item.version = 7
        assert getattr(library.library, name)(first, ctypes.byref(item)) == 25, name


def test_short_buffers_are_refused(library: FakeLibrary) -> None:
    buffer = ctypes.create_string_buffer(4)
    assert library.library.nvmlDeviceGetName(handle(0), buffer, 4) == 7


def test_processes(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    node.gpus[0].set(
        processes=[
            FakeProcess(101, 5_000_000_000),
            FakeProcess(102, None),
            FakeProcess(103, 7, "graphics"),
            FakeProcess(104, 9, "mps", gpu_instance=1, compute_instance=0),
        ]
    )
    compute = pynvml.nvmlDeviceGetComputeRunningProcesses(first)
    assert [(item.pid, item.usedGpuMemory) for item in compute] == [
        (101, 5_000_000_000),
        (102, None),
    ]
    assert compute[0].gpuInstanceId == 0xFFFFFFFF
    assert [item.pid for item in pynvml.nvmlDeviceGetGraphicsRunningProcesses(first)] == [103]
    (mps,) = pynvml.nvmlDeviceGetMPSComputeRunningProcesses(first)
    assert (mps.pid, mps.gpuInstanceId, mps.computeInstanceId) == (104, 1, 0)
    # pynvml cannot give back memory that is not available from this call.
    node.gpus[0].processes[1].memory_bytes = 1
    node.write()
    details = pynvml.nvmlDeviceGetRunningProcessDetailList(
        first, pynvml.nvmlProcessDetailList_v1, pynvml.NVML_PROCESS_MODE_ALL
    )
    assert [item.pid for item in details] == [101, 102, 103, 104]
    node.gpus[0].set(processes=[])
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(first) == []


def test_process_utilization(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    node.gpus[0].set(
        process_utilization=[
            FakeProcessUtilization(1, 50, 40, 30, 20, 10, 5, timestamp_microseconds=1000),
            FakeProcessUtilization(2, 60, timestamp_microseconds=2000),
        ]
    )
    rows = pynvml.nvmlDeviceGetProcessUtilization(first, 0)
    assert [(row.pid, row.timeStamp, row.smUtil, row.decUtil) for row in rows] == [
        (1, 1000, 50, 20),
        (2, 2000, 60, 0),
    ]
    (row,) = pynvml.nvmlDeviceGetProcessUtilization(first, 1000)
    assert row.pid == 2
    assert code_of(pynvml.nvmlDeviceGetProcessUtilization, first, 2000) == 6
    rows = pynvml.nvmlDeviceGetProcessesUtilizationInfo(first, 0)
    assert [(row.pid, row.jpgUtil, row.ofaUtil) for row in rows] == [(1, 10, 5), (2, 0, 0)]
    node.gpus[0].set(ignore_last_seen=1)
    assert len(pynvml.nvmlDeviceGetProcessUtilization(first, 5000)) == 2


def test_a_process_row_without_a_time_is_always_new(library: FakeLibrary) -> None:
    now = time.time_ns() // 1000
    (row,) = pynvml.nvmlDeviceGetProcessUtilization(handle(0), now - 1_000_000)
    assert row.timeStamp >= now
    assert row.smUtil == 95


def test_samples(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    node.gpus[0].set(samples=[FakeSample(1, 1000, 10), FakeSample(1, 2000, 20)])
    kind, rows = pynvml.nvmlDeviceGetSamples(first, 1, 0)
    assert kind == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
    assert [(row.timeStamp, row.sampleValue.uiVal) for row in rows] == [(1000, 10), (2000, 20)]
    _, rows = pynvml.nvmlDeviceGetSamples(first, 1, 1000)
    assert [row.timeStamp for row in rows] == [2000]
    assert code_of(pynvml.nvmlDeviceGetSamples, first, 1, 2000) == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(pynvml.nvmlDeviceGetSamples, first, 2, 0) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_sample_buffers_move_on(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    period = 10_000
    node.gpus[0].set(samples=[FakeSamples(1, [1.5, 2.5], period, 20, "double")])
    started = time.time_ns() // 1000
    kind, rows = pynvml.nvmlDeviceGetSamples(first, 1, 0)
    assert kind == pynvml.NVML_VALUE_TYPE_DOUBLE
    assert len(rows) == 20
    assert started - period <= rows[-1].timeStamp <= time.time_ns() // 1000
    steps = {later.timeStamp - row.timeStamp for row, later in itertools.pairwise(rows)}
    assert steps == {period}
    assert {row.sampleValue.dVal for row in rows} == {1.5, 2.5}
    last = rows[-1].timeStamp
    wait_until(lambda: code_of(pynvml.nvmlDeviceGetSamples, first, 1, last) == 0)
    assert pynvml.nvmlDeviceGetSamples(first, 1, last)[1][0].timeStamp == last + period


def test_field_values(library: FakeLibrary, node: FakeNode) -> None:
    node.gpus[1].set(
        fields={(83, None): FakeField(0, code=15), (400, 2): FakeField(2.5, "double")},
        temperature_limit_shutdown_celsius=-7,
    )
    fields = pynvml.nvmlDeviceGetFieldValues(
        handle(1), [82, 83, 193, 91, (138, 3), (138, 0xFFFFFFFF), (400, 2), (400, 3), 0]
    )
    assert [field.nvmlReturn for field in fields] == [0, 15, 0, 0, 0, 0, 0, 3, 3]
    assert fields[0].value.uiVal == 71
    assert (fields[2].valueType, fields[2].value.siVal) == (pynvml.NVML_VALUE_TYPE_SIGNED_INT, -7)
    assert fields[3].value.uiVal == 18
    assert fields[4].value.ullVal == 50_000_001
    assert fields[5].value.ullVal == 50_000_001 * 18
    assert fields[6].value.dVal == 2.5
    assert abs(fields[0].timestamp - time.time_ns() // 1000) < DEADLINE_SECONDS * 1e6


def test_ecc(library: FakeLibrary, node: FakeNode) -> None:
    node.gpus[0].set(
        ecc_errors={(0, 0, 2): 3, (0, 0, 7): 4, (1, 1, 2): 5},
        sram_ecc=(*range(1, 12), 1),
    )
    first = handle(0)
    assert pynvml.nvmlDeviceGetTotalEccErrors(first, 0, 0) == 7
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(first, 0, 0, 7) == 4
    assert pynvml.nvmlDeviceGetDetailedEccErrors(first, 0, 0).deviceMemory == 3
    assert code_of(pynvml.nvmlDeviceGetTotalEccErrors, first, 1, 0) == 3
    assert code_of(pynvml.nvmlDeviceGetMemoryErrorCounter, first, 0, 0, 3) == 3
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(first, ctypes.byref(status))
    assert (status.aggregateUncParity, status.aggregateUncBucketOther) == (1, 11)
    assert status.bThresholdExceeded == 1


def test_retired_pages(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    assert code_of(pynvml.nvmlDeviceGetRetiredPages, first, 0) == 3
    pages = [FakeRetiredPage(0, 4096, 11), FakeRetiredPage(1, 8192, 12)]
    node.gpus[0].set(retired_pages_pending=1, retired_pages=pages)
    assert pynvml.nvmlDeviceGetRetiredPages(first, 0) == [4096]
    assert pynvml.nvmlDeviceGetRetiredPages_v2(first, 1) == [{"address": 8192, "timestamp": 12}]
    assert pynvml.nvmlDeviceGetRetiredPagesPendingStatus(first) == 1


def test_encoder_sessions(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    assert pynvml.nvmlDeviceGetEncoderSessions(first) == []
    sessions = [
        FakeEncoderSession(1, 101, codec=0, frames_per_second=60, latency_microseconds=4000),
        FakeEncoderSession(2, 102, codec=2, frames_per_second=30, latency_microseconds=8000),
    ]
    node.gpus[0].set(encoder_sessions=sessions)
    assert pynvml.nvmlDeviceGetEncoderStats(first) == (2, 45, 6000)
    found = pynvml.nvmlDeviceGetEncoderSessions(first)
    assert [(item.sessionId, item.pid, item.codecType, item.averageFps) for item in found] == [
        (1, 101, 0, 60),
        (2, 102, 2, 30),
    ]


@pytest.mark.parametrize("form", ["", "_v3", "_v4"])
def test_licensable_features(library: FakeLibrary, node: FakeNode, form: str) -> None:
    function = getattr(library.library, f"nvmlDeviceGetGridLicensableFeatures{form}")
    first = handle(0)

    def ask() -> tuple[int, list[tuple[int, int]]]:
        told = getattr(pynvml, f"c_nvmlGridLicensableFeatures{form}_t")()
        # Whatever was there before is written over.
        ctypes.memset(ctypes.byref(told), 0xFF, ctypes.sizeof(told))
        assert function(first, ctypes.byref(told)) == 0
        features = told.gridLicensableFeatures[: told.licensableFeaturesCount]
        return told.isGridLicenseSupported, [
            (feature.featureCode, feature.featureState) for feature in features
        ]

    assert ask() == (0, [])
    features = [FakeLicensableFeature(1, 0), FakeLicensableFeature(4, 1)]
    node.gpus[0].set(vgpu_license_supported=1, licensable_features=features)
    assert ask() == (1, [(1, 0), (4, 1)])
    # The structure has room for three.
    node.gpus[0].set(licensable_features=[FakeLicensableFeature(code) for code in range(1, 5)])
    assert ask() == (1, [(1, 0), (2, 0), (3, 0)])
    node.gpus[0].set(vgpu_license_supported=None)
    buffer = ctypes.create_string_buffer(4096)
    assert function(first, buffer) == 3


def test_mig(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, first, 0) == 6
    mig = FakeMigDevice(2, "MIG-aaaa", 5, 0, 10 << 30, 4 << 30)
    processes = [FakeProcess(7, 1, gpu_instance=5, compute_instance=0), FakeProcess(8, 1)]
    node.gpus[0].set(mig_mode=1, mig_devices=[mig], processes=processes)
    assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, first, 0) == 6
    assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, first, 7) == 2
    device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(first, 2)
    assert pynvml.nvmlDeviceGetUUID(device) == "MIG-aaaa"
    assert pynvml.nvmlDeviceGetName(device) == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    assert pynvml.nvmlDeviceGetGpuInstanceId(device) == 5
    assert pynvml.nvmlDeviceGetMemoryInfo(device).used == 4 << 30
    assert pynvml.nvmlDeviceIsMigDeviceHandle(device).value == 1
    assert [item.pid for item in pynvml.nvmlDeviceGetComputeRunningProcesses(device)] == [7]
    assert code_of(pynvml.nvmlDeviceGetUtilizationRates, device) == 3
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    assert pynvml.nvmlDeviceGetUUID(parent) == node.gpus[0].uuid
    assert code_of(pynvml.nvmlDeviceGetHandleByUUID, "MIG-aaaa") == 0


def test_events(library: FakeLibrary, node: FakeNode) -> None:
    node.send_xid(0, 13)
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(handle(0), pynvml.nvmlEventTypeXidCriticalError, events)
    assert code_of(pynvml.nvmlEventSetWait_v2, events, 0) == pynvml.NVML_ERROR_TIMEOUT
    node.send_event(0, pynvml.nvmlEventTypePState)
    node.send_xid(1, 31)
    node.send_xid(0, 79)
    event = pynvml.nvmlEventSetWait_v2(events, 1000)
    assert (event.eventType, event.eventData) == (8, 79)
    assert pynvml.nvmlDeviceGetIndex(event.device) == 0
    assert event.gpuInstanceId == 0xFFFFFFFF
    calls = library.calls("nvmlEventSetWait")
    waiting = InThread(pynvml.nvmlEventSetWait_v2, events, int(DEADLINE_SECONDS * 1000))
    wait_until(lambda: library.calls("nvmlEventSetWait") > calls)
    node.send_xid(0, 94)
    assert waiting.finish() == 0
    assert library.calls("nvmlEventSetWait") == calls + 1
    pynvml.nvmlEventSetFree(events)
    assert code_of(pynvml.nvmlEventSetWait_v2, events, 0) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_gpm(library: FakeLibrary, node: FakeNode) -> None:
    first = handle(0)
    assert pynvml.nvmlGpmQueryDeviceSupport(first).isSupportedDevice == 1
    samples = [pynvml.nvmlGpmSampleGet(first, pynvml.nvmlGpmSampleAlloc()) for _ in range(2)]
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = 2
    request.sample1, request.sample2 = samples
    request.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
    request.metrics[1].metricId = 300
    pynvml.nvmlGpmMetricsGet(request)
    assert (request.metrics[0].nvmlReturn, request.metrics[0].value) == (0, 88.25)
    assert request.metrics[1].nvmlReturn == 3
    node.gpus[0].set(gpm_codes={2: 999})
    pynvml.nvmlGpmMetricsGet(request)
    assert request.metrics[0].nvmlReturn == 999
    mig = FakeMigDevice(0, "MIG-aaaa", 5, 0, 10 << 30, 4 << 30)
    node.gpus[0].set(mig_mode=1, mig_devices=[mig], mig_gpm={(5, 2): 12.5})
    assert code_of(pynvml.nvmlGpmMigSampleGet, first, 4, samples[0]) == 2
    for sample in samples:
        pynvml.nvmlGpmMigSampleGet(first, 5, sample)
    pynvml.nvmlGpmMetricsGet(request)
    assert (request.metrics[0].nvmlReturn, request.metrics[0].value) == (0, 12.5)
    for sample in samples:
        pynvml.nvmlGpmSampleFree(sample)
    node.gpus[0].set(gpm_supported=0)
    assert pynvml.nvmlGpmQueryDeviceSupport(first).isSupportedDevice == 0


# The node's own doings


def test_changes_are_written_together(node: FakeNode, library: FakeLibrary) -> None:
    before = node.scenario_path.read_text()
    with node.changes():
        node.gpus[0].set(temperature_celsius=80)
        node.gpus[1].lose()
        assert node.scenario_path.read_text() == before
    assert pynvml.nvmlDeviceGetTemperature(handle(0), 0) == 80
    assert code_of(handle, 1) == 15


def test_every_change_is_seen_by_the_next_call(node: FakeNode, library: FakeLibrary) -> None:
    first = handle(0)
    for temperature in range(40, 80):
        node.gpus[0].set(temperature_celsius=temperature)
        assert pynvml.nvmlDeviceGetTemperature(first, 0) == temperature


def test_many_threads_during_changes(node: FakeNode, library: FakeLibrary) -> None:
    stop = threading.Event()

    def call(index: int) -> int:
        device, expected, calls = handle(index), node.gpus[index].uuid, 0
        while not stop.is_set():
            assert pynvml.nvmlDeviceGetUUID(device) == expected
            assert code_of(pynvml.nvmlDeviceGetFieldValues, device, [82, 83]) == 0
            calls += 1
        return calls

    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(call, index) for index in range(4)]
        for temperature in range(20):
            node.gpus[0].set(temperature_celsius=temperature)
        stop.set()
        assert all(result.result() > 0 for result in results)


def test_sysfs(node: FakeNode, tmp_path: Path) -> None:
    root = tmp_path / "sys"
    node.gpus[1].lose()
    node.gpus[2].hide()
    node.write_sysfs(root)
    driver = root / "bus/pci/drivers/nvidia"
    address = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
    links = sorted(path.name for path in driver.iterdir() if address.fullmatch(path.name))
    assert links == sorted(gpu.sysfs_address for gpu in node.gpus)
    assert "0000:1b:00.0" in links
    device = driver / "0000:1b:00.0"
    assert device.is_symlink()
    assert device.resolve().is_relative_to(root / "devices")
    assert (device / "vendor").read_text() == "0x10de\n"
    assert (device / "device").read_text() == "0x2330\n"
    assert (device / "class").read_text() == "0x030200\n"
    assert "PCI_SLOT_NAME=0000:1b:00.0" in (device / "uevent").read_text()
    node.unload_driver()
    node.write_sysfs(root)
    assert not driver.exists()
    assert len(list((root / "bus/pci/devices").iterdir())) == 8


def test_another_number_of_gpus(tmp_path: Path) -> None:
    node = FakeNode(tmp_path / "scenario", gpus=16)
    node.attach()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 16
    assert len({pynvml.nvmlDeviceGetPciInfo(handle(index)).busId for index in range(16)}) == 16


def test_no_gpus(tmp_path: Path) -> None:
    node = FakeNode(tmp_path / "scenario", gpus=0)
    node.attach()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 0
    assert code_of(handle, 0) == 2
