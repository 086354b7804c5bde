# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The fault table: each fault done to a real daemon on the fake driver, and what its page then says.

Every row is held to the same: the GPUs that the fault does not touch show all that they showed
before, with the values that the driver gives, and no label set stands twice on any page. The rows
of docs/faults.md bear the same names.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import StartDaemon
from tests.daemon import Daemon, Page
from tests.fake_nvml import FakeGpu, FakeMigDevice, FakeNode, FakeProcess

DOCS = Path(__file__).parent.parent / "docs/faults.md"
ILL = 3
"""The GPU that faults are done to, if it is one."""
ALL = frozenset(range(8))

Told = Callable[[Page], bool]

STAY = {
    "veo_gpu_state",
    "veo_gpu_info",
    "veo_gpu_board_info",
    "veo_gpu_nvml_return_code",
    "veo_gpu_nvml_errors_total",
    "veo_gpu_nvml_call_in_flight_seconds",
    "veo_gpu_implausible_readings_total",
    "veo_gpu_capability_missing",
    "veo_gpu_xid_errors_total",
    "veo_gpu_xid_last_seen_timestamp_seconds",
}
"""What may be said of a GPU that does not answer: what it is, how it is, and what was counted."""


@dataclass(frozen=True)
class Fault:
    """What happens, when the page tells of it, and what then holds of the GPUs that are touched."""

    name: str
    happens: Callable[[FakeNode], object]
    told: Told
    holds: Callable[[Page, FakeNode], None]
    touched: frozenset[int] = frozenset({ILL})
    arguments: tuple[str, ...] = ()


def silent_as(state: str, *gpus: int) -> Told:
    """In this state, and all that was measured is withdrawn: the static group last."""

    def told(page: Page) -> bool:
        states = page.states()
        ill = {("gpu", str(gpu)) for gpu in gpus or (ILL,)}
        shown = {name for name, labels in page.series if labels & ill}
        return all(states.get(gpu) == state for _, gpu in ill) and shown <= STAY

    return told


def ill(page: Page, name: str, **labels: str) -> float | None:
    return page.value(name, gpu=str(ILL), **labels)


def is_silent(page: Page, node: FakeNode, *gpus: int) -> None:
    """Nothing that was measured is shown of these GPUs, and nothing is 0 in its place."""
    for gpu in gpus or (ILL,):
        uuid = node.gpus[gpu].uuid
        shown = {name for name, labels in page.series if ("uuid", uuid) in labels}
        assert shown <= STAY, shown - STAY
        assert page.value("veo_gpu_state", uuid=uuid, state="ok") == 0


def lost(page: Page, node: FakeNode) -> None:
    is_silent(page, node)
    assert ill(page, "veo_gpu_nvml_return_code") == 15
    assert page.value("veo_gpus_usable") == 7
    assert page.value("veo_gpus_expected") == 8


def one_hung(page: Page, node: FakeNode) -> None:
    is_silent(page, node)
    waited = ill(page, "veo_gpu_nvml_call_in_flight_seconds", function="nvmlDeviceGetPowerUsage")
    assert waited is not None
    assert waited > 0.3
    assert ill(page, "veo_gpu_nvml_errors_total", code="OVERDUE") == 1


def all_hung(page: Page, node: FakeNode) -> None:
    is_silent(page, node, *ALL)
    assert page.value("veo_gpus_usable") == 0


def all_slow(page: Page, node: FakeNode) -> None:
    # Each call takes 20 ms: late, but within its deadline, and nothing is withdrawn.
    assert list(page.states().values()) == ["ok"] * 8
    spent = page.value("veo_gpu_nvml_call_seconds_total", function="nvmlDeviceGetPowerUsage")
    calls = page.value("veo_gpu_nvml_calls_total", function="nvmlDeviceGetPowerUsage")
    assert spent
    assert calls
    assert len(page.values("veo_gpu_power_watts")) == 8


def one_value_failed(page: Page, node: FakeNode) -> None:
    assert ill(page, "veo_gpu_power_watts") is None
    assert ill(page, "veo_gpu_utilization_ratio") == node.gpus[ILL].utilization_gpu_percent / 100  # type: ignore[operator]
    assert page.states()[str(ILL)] == "ok"


def one_value_unsupported(page: Page, node: FakeNode) -> None:
    one_value_failed(page, node)
    row = {"signal": "veo_gpu_power_watts", "why": "not_supported"}
    assert ill(page, "veo_gpu_capability_missing", **row) == 1


def one_value_forbidden(page: Page, node: FakeNode) -> None:
    one_value_failed(page, node)
    row = {"signal": "veo_gpu_power_watts", "why": "not_permitted"}
    assert ill(page, "veo_gpu_capability_missing", **row) == 1


def no_gpu_known(page: Page, node: FakeNode) -> None:
    is_silent(page, node, *ALL)
    assert page.value("veo_gpus_visible") == 0
    assert page.value("veo_gpus_usable") == 0


def indexes_moved(page: Page, node: FakeNode) -> None:
    for index, gpu in enumerate(reversed(node.gpus)):
        row = {"gpu": str(index), "uuid": gpu.uuid}
        assert page.value("veo_gpu_state", state="ok", **row) == 1
        assert page.value("veo_gpu_power_watts", **row) == gpu.power_usage_milliwatts / 1000  # type: ignore[operator]


def impossible_left_out(name: str) -> Callable[[Page, FakeNode], None]:
    def holds(page: Page, node: FakeNode) -> None:
        assert ill(page, name) is None
        assert page.states()[str(ILL)] == "ok"
        assert ill(page, "veo_gpu_power_watts") is not None

    return holds


def implausible(page: Page) -> bool:
    return (ill(page, "veo_gpu_implausible_readings_total") or 0) > 0


def row_failed(page: Page, node: FakeNode) -> None:
    assert ill(page, "veo_gpu_row_remap_pending") is None
    assert ill(page, "veo_gpu_row_remap_failure") == 0
    assert page.states()[str(ILL)] == "ok"


def start_many(node: FakeNode) -> None:
    pid = 4_300_000
    node.gpus[ILL].set(processes=[FakeProcess(pid + n, (n + 1) << 20) for n in range(200)])


def processes_bounded(page: Page, node: FakeNode) -> None:
    rows = page.values("veo_gpu_processes", gpu=str(ILL))
    assert sum(rows) == 200
    assert len(rows) <= 6
    # 1 + 2 + ... + 200 MiB
    memory = page.values("veo_gpu_process_memory_used_bytes", gpu=str(ILL))
    assert sum(memory) == 20_100 << 20


def divide(node: FakeNode) -> None:
    gpu = node.gpus[ILL]
    gpu.set(
        mig_mode=1,
        mig_mode_pending=1,
        utilization_gpu_percent=None,
        utilization_memory_percent=None,
        mig_devices=[
            FakeMigDevice(slot, f"MIG-{slot}", slot + 1, 0, 20 << 30, (slot + 1) << 30)
            for slot in range(2)
        ],
    )


def divided(page: Page, node: FakeNode) -> None:
    assert ill(page, "veo_gpu_mig_mode") == 1
    assert len(page.values("veo_gpu_mig_info", gpu=str(ILL))) == 2
    assert ill(page, "veo_gpu_utilization_ratio") is None
    assert ill(page, "veo_gpu_power_watts") is not None
    # What the instances use is under names of its own: a sum of the parents' memory counts once.
    assert len(page.values("veo_gpu_memory_used_bytes")) == 8


def fails(code: int, function: str = "nvmlDeviceGetPowerUsage") -> Callable[[FakeNode], object]:
    return lambda node: node.gpus[ILL].fail(function, code)


def without_power(page: Page) -> bool:
    return ill(page, "veo_gpu_power_watts") is None


FAULTS = (
    Fault("GPU lost", lambda node: node.gpus[ILL].lose(), silent_as("lost"), lost),
    Fault(
        "A call hangs",
        lambda node: node.gpus[ILL].hang("nvmlDeviceGetPowerUsage"),
        silent_as("hung"),
        one_hung,
    ),
    Fault(
        "Two calls hang",
        lambda node: [node.gpus[gpu].hang("nvmlDeviceGetPowerUsage") for gpu in (ILL, ILL + 1)],
        silent_as("hung", *ALL),
        all_hung,
        touched=ALL,
    ),
    Fault(
        "All calls slow",
        lambda node: node.delay("nvmlDeviceGetPowerUsage", 0.02),
        lambda page: (
            (page.value("veo_gpu_nvml_call_seconds_total", function="nvmlDeviceGetPowerUsage") or 0)
            > 1
        ),
        all_slow,
        touched=frozenset(),
    ),
    Fault("UNKNOWN from one device", fails(999), without_power, one_value_failed),
    Fault(
        "NOT_SUPPORTED for one field",
        lambda node: node.gpus[ILL].set(power_usage_milliwatts=None),
        without_power,
        one_value_unsupported,
    ),
    Fault("NO_PERMISSION", fails(4), without_power, one_value_forbidden),
    Fault(
        "Driver gone",
        lambda node: node.unload_driver(),
        lambda page: page.value("veo_gpus_visible") == 0,
        no_gpu_known,
        touched=ALL,
    ),
    Fault(
        "Driver gone and back with other indexes",
        lambda node: (node.unload_driver(), node.load_driver(order=[7, 6, 5, 4, 3, 2, 1, 0])),
        lambda page: (
            list(page.states().values()) == ["ok"] * 8
            and len(page.values("veo_gpu_power_watts")) == 8
            and page.value("veo_gpu_power_watts", gpu="0") == 619
        ),
        indexes_moved,
        touched=ALL,
    ),
    Fault(
        "Utilization above 100",
        lambda node: node.gpus[ILL].set(utilization_gpu_percent=101),
        implausible,
        impossible_left_out("veo_gpu_utilization_ratio"),
    ),
    Fault(
        "Temperature 255",
        lambda node: node.gpus[ILL].set(temperature_celsius=255),
        implausible,
        impossible_left_out("veo_gpu_temperature_celsius"),
    ),
    Fault(
        "A field value with a bad row",
        lambda node: node.gpus[ILL].set(remapped_rows_pending=None),
        lambda page: ill(page, "veo_gpu_row_remap_pending") is None,
        row_failed,
    ),
    Fault(
        "200 processes",
        start_many,
        lambda page: sum(page.values("veo_gpu_processes", gpu=str(ILL))) == 200,
        processes_bounded,
    ),
    Fault(
        "MIG switched on while running",
        divide,
        lambda page: (
            ill(page, "veo_gpu_mig_mode") == 1
            and ill(page, "veo_gpu_utilization_ratio") is None
            and len(page.values("veo_gpu_mig_info", gpu=str(ILL))) == 2
        ),
        divided,
    ),
)

TOLD_ELSEWHERE = {
    "Library missing": "tests/test_daemon.py",
    "INSUFFICIENT_SIZE race": "tests/gpu/test_samples.py",
    "Xid 79 twice by both roads": "tests/test_xid.py",
    "An event wait that returns GPU_IS_LOST for ever": "tests/test_xid.py",
}
"""Rows of the table that want another stage than this one."""


def label_sets_once(text: str) -> None:
    series = re.findall(r"^([a-z_]+(?:\{.*\})?) \S+$", text, re.MULTILINE)
    assert len(series) == len(set(series))


def measured(gpu: FakeGpu) -> dict[str, float]:
    """What the page must say of a healthy GPU of the fake node, whose values stand still."""
    return {
        "veo_gpu_utilization_ratio": (gpu.utilization_gpu_percent or 0) / 100,
        "veo_gpu_memory_used_bytes": gpu.memory_used_bytes or 0,
        "veo_gpu_power_watts": (gpu.power_usage_milliwatts or 0) / 1000,
        "veo_gpu_temperature_celsius": gpu.temperature_celsius or 0,
        "veo_gpu_sm_clock_hertz": (gpu.clock_sm_mhz or 0) * 1e6,
        "veo_gpu_energy_joules_total": (gpu.energy_millijoules or 0) / 1000,
    }


@contextmanager
def others_untouched(daemon: Daemon, node: FakeNode, touched: frozenset[int]) -> Iterator[None]:
    """What is shown of all others is shown afterwards, with the driver's values."""

    def shown(page: Page) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        others = {("uuid", node.gpus[gpu].uuid) for gpu in ALL - touched}
        return {series for series in page.series if series[1] & others}

    before = shown(daemon.scrape())
    yield
    page = daemon.scrape()
    assert before <= shown(page)
    for gpu in ALL - touched:
        row = {"gpu": str(gpu), "uuid": node.gpus[gpu].uuid}
        assert page.value("veo_gpu_state", state="ok", **row) == 1
        for name, value in measured(node.gpus[gpu]).items():
            assert page.value(name, **row) == value, (name, gpu)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault(fault: Fault, node: FakeNode, start: StartDaemon) -> None:
    daemon = start(*fault.arguments)
    daemon.wait_for(
        lambda page: (
            list(page.states().values()) == ["ok"] * 8
            and len(page.values("veo_gpu_energy_joules_total")) == 8
            and len(page.values("veo_gpu_power_limit_watts")) == 8
        )
    )
    with others_untouched(daemon, node, fault.touched):
        fault.happens(node)

        def told(page: Page) -> bool:
            label_sets_once(page.text)
            return fault.told(page)

        fault.holds(daemon.wait_for(told), node)
    assert daemon.get("/-/healthy")[0] == 200
    node.release()


def test_the_documented_table_has_the_same_rows() -> None:
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", DOCS.read_text(), re.MULTILINE)
    assert rows == sorted(rows, key=rows.index)
    assert set(rows) == {fault.name for fault in FAULTS} | set(TOLD_ELSEWHERE)
