# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The fault table: each fault done to a real daemon on the fake driver, and what its page then says.

Every row is held to the same: the GPUs that the fault does not touch show all that they showed
before, with the values that the driver gives, and no label set stands twice on any page. The rows
of docs/faults.md bear the same names.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import CALL_DEADLINE_SECONDS, StartDaemon
from tests.daemon import PATIENCE_SECONDS, Daemon, Page, all_ok
from tests.fake_nvml import FakeGpu, FakeMigDevice, FakeNode, FakeProcess, FakeSamples
from tests.test_xid import KernelLog, address

DOCS = Path(__file__).parent.parent / "docs/faults.md"
ILL = 3
"""The GPU that faults are done to, if it is one."""
ALL = frozenset(range(8))
SLOW_SECONDS = 0.02
GROWN_STALE_SECONDS = 2 * PATIENCE_SECONDS
"""Static values stay for three sweeps, which are 15 s here."""
MOST_KEPT_WAITING_SECONDS = 1.5
"""What a busy machine may take of the daemon's time before it can keep time no more."""
OF_FULL_SWEEP = "nvmlDeviceGetDecoderUtilization"
DECODER_SAMPLES = 4
"""NVML_DEC_UTILIZATION_SAMPLES."""
FAST = (
    "veo_gpu_utilization_ratio",
    "veo_gpu_memory_copy_utilization_ratio",
    "veo_gpu_memory_used_bytes",
    "veo_gpu_power_watts",
    "veo_gpu_temperature_celsius",
    "veo_gpu_sm_clock_hertz",
)

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


def kernel_log(node: FakeNode) -> Path:
    """The file that the daemon reads in the place of the kernel's log."""
    return node.scenario_path.with_name("kern.log")


@dataclass(frozen=True)
class Fault:
    """What happens, when the page tells of it, and what then holds of the GPUs that are touched."""

    name: str
    happens: Callable[[FakeNode], object]
    told: Told
    holds: Callable[[Page, FakeNode], None]
    touched: frozenset[int] = frozenset({ILL})
    arguments: tuple[str, ...] = ()
    always: Callable[[Page], None] = lambda page: None
    """What holds of every page from the fault on, as long as the machine lets the daemon keep time."""
    patience_seconds: float = PATIENCE_SECONDS


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
    assert waited > CALL_DEADLINE_SECONDS
    assert ill(page, "veo_gpu_nvml_errors_total", code="OVERDUE") == 1


def all_hung(page: Page, node: FakeNode) -> None:
    is_silent(page, node, *ALL)
    assert page.value("veo_gpus_usable") == 0


def all_stay(page: Page) -> None:
    """As all calls are slow: late, but within their deadline, and no fast value is withdrawn."""
    assert list(page.states().values()) == ["ok"] * 8
    for name in FAST:
        assert len(page.values(name)) == 8, name


def slow_sweep_done(page: Page) -> bool:
    """Eight GPUs were each asked for something of the full sweep, in 20 ms at least, and for more than
    two fast samples meanwhile. The sweep takes longer than fast values may stay without being read; all
    of those are there."""
    spent = page.value("veo_gpu_nvml_call_seconds_total", function=OF_FULL_SWEEP)
    spent_fast = page.value("veo_gpu_nvml_call_seconds_total", function="nvmlDeviceGetPowerUsage")
    all_there = all(len(page.values(name)) == 8 for name in FAST)
    asked = (spent or 0) >= 8 * SLOW_SECONDS and (spent_fast or 0) > 2 * 8 * SLOW_SECONDS
    return asked and all_there


def all_slow(page: Page, node: FakeNode) -> None:
    all_stay(page)
    for gpu in node.gpus:
        for name, value in measured(gpu).items():
            if name in FAST:
                assert page.value(name, uuid=gpu.uuid) == value, name
    assert page.values("veo_gpu_nvml_errors_total", code="OVERDUE") == []


def one_unknown(page: Page, node: FakeNode) -> None:
    is_silent(page, node)
    assert ill(page, "veo_gpu_nvml_return_code") == 999
    assert page.value("veo_gpus_usable") == 7
    assert page.value("veo_gpus_visible") == 8


def one_value_failed(page: Page, node: FakeNode) -> None:
    assert ill(page, "veo_gpu_power_watts") is None
    assert ill(page, "veo_gpu_utilization_ratio") == node.gpus[ILL].utilization_gpu_percent / 100  # type: ignore[operator]
    assert page.states()[str(ILL)] == "ok"


def one_value_unknown(page: Page, node: FakeNode) -> None:
    one_value_failed(page, node)
    row = {"function": "nvmlDeviceGetPowerUsage", "code": "UNKNOWN"}
    assert (ill(page, "veo_gpu_nvml_errors_total", **row) or 0) >= 1


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
    """As a divided board answers: what it does is told by its instances, if at all."""
    gpu = node.gpus[ILL]
    with node.changes():
        for function in (
            "nvmlDeviceGetSamples",
            "nvmlDeviceGetProcessUtilization",
            "nvmlDeviceGetProcessesUtilizationInfo",
        ):
            gpu.unsupport(function)
        gpu.set(
            mig_mode=1,
            mig_mode_pending=1,
            utilization_gpu_percent=None,
            utilization_memory_percent=None,
            encoder_utilization_percent=None,
            decoder_utilization_percent=None,
            jpeg_utilization_percent=None,
            ofa_utilization_percent=None,
            mig_devices=[
                FakeMigDevice(slot, f"MIG-{slot}", slot + 1, 0, 20 << 30, (slot + 1) << 30)
                for slot in range(2)
            ],
        )


UNDIVIDED = (
    "veo_gpu_utilization_ratio",
    "veo_gpu_memory_copy_utilization_ratio",
    "veo_gpu_encoder_utilization_ratio",
    "veo_gpu_decoder_utilization_ratio",
    "veo_gpu_jpeg_utilization_ratio",
    "veo_gpu_ofa_utilization_ratio",
)
"""What a divided board does not tell."""


def is_divided(page: Page) -> bool:
    missing = {
        dict(labels)["signal"]
        for name, labels in page.series
        if name == "veo_gpu_capability_missing" and ("gpu", str(ILL)) in labels
    }
    return (
        ill(page, "veo_gpu_mig_mode") == 1
        and len(page.values("veo_gpu_mig_info", gpu=str(ILL))) == 2
        and missing >= set(UNDIVIDED)
    )


def divided(page: Page, node: FakeNode) -> None:
    assert page.states()[str(ILL)] == "ok"
    for name in UNDIVIDED:
        assert ill(page, name) is None, name
        assert ill(page, "veo_gpu_capability_missing", signal=name, why="not_supported") == 1, name
    for name, value in measured(node.gpus[ILL]).items():
        if name not in UNDIVIDED:
            assert ill(page, name) == value, name
    # What the instances use is under names of its own: a sum of the parents' memory counts once.
    assert len(page.values("veo_gpu_memory_used_bytes")) == 8
    assert sorted(page.values("veo_gpu_mig_memory_used_bytes", gpu=str(ILL))) == [1 << 30, 2 << 30]


def outgrow(node: FakeNode) -> None:
    """A sample each 20 microseconds: there is one more by the time that there is room for all."""
    gpu = node.gpus[ILL]
    others = [samples for samples in gpu.samples if samples.sampling_type != DECODER_SAMPLES]
    gpu.set(samples=[*others, FakeSamples(DECODER_SAMPLES, [ILL], 20, 100_000)])


def race_lost(page: Page) -> bool:
    row = {"function": "nvmlDeviceGetSamples", "code": "INSUFFICIENT_SIZE"}
    return (ill(page, "veo_gpu_nvml_errors_total", **row) or 0) >= 1


def race_costs_no_value(page: Page, node: FakeNode) -> None:
    assert page.states()[str(ILL)] == "ok"
    assert ill(page, "veo_gpu_decoder_utilization_ratio") == ILL / 100
    for name, value in measured(node.gpus[ILL]).items():
        assert ill(page, name) == value, name


def fall_off_by_both_roads(node: FakeNode) -> None:
    """Xid 79 twice by NVML's events and twice by the kernel log, and another one last by each."""
    log = KernelLog(kernel_log(node))
    with node.changes():
        node.send_xid(ILL, 79).send_xid(ILL, 79).send_xid(ILL, 62)
    for xid in (79, 79, 31):
        log.write_xid(address(node, ILL), xid)


def both_roads_heard(page: Page) -> bool:
    return all(ill(page, "veo_gpu_xid_errors_total", xid=xid) == 1 for xid in ("62", "31"))


def counted_twice(page: Page, node: FakeNode) -> None:
    assert ill(page, "veo_gpu_xid_errors_total", xid="79") == 2
    # Of all GPUs and codes: 79 twice, 62 and 31 once.
    assert sum(page.values("veo_gpu_xid_errors_total")) == 4


def lose_in_the_event_set(node: FakeNode) -> None:
    with node.changes():
        node.gpus[ILL].lose()
        node.fail("nvmlEventSetWait", 15)


def lost_and_deaf(page: Page) -> bool:
    heard = page.value("veo_exporter_event_source_up", event_source="nvml_events")
    return silent_as("lost")(page) and heard == 0


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
        patience_seconds=GROWN_STALE_SECONDS,
    ),
    Fault(
        "Two calls hang",
        lambda node: [node.gpus[gpu].hang("nvmlDeviceGetPowerUsage") for gpu in (ILL, ILL + 1)],
        silent_as("hung", *ALL),
        all_hung,
        touched=ALL,
        patience_seconds=GROWN_STALE_SECONDS,
    ),
    Fault(
        "All calls slow",
        lambda node: node.delay("*", SLOW_SECONDS),
        slow_sweep_done,
        all_slow,
        # Some 200 calls of a fast and a full sweep take longer than there is: what is read in full
        # sweeps may grow too old here and there, on any GPU.
        touched=ALL,
        # As by default: at the other rows' intervals there would be ten times the calls.
        arguments=(
            "--gpu.fast-interval=1s",
            "--gpu.full-interval=5s",
            "--gpu.static-interval=60s",
        ),
        always=all_stay,
        patience_seconds=60.0,
    ),
    Fault(
        "UNKNOWN from one device",
        lambda node: node.gpus[ILL].fail("*", 999),
        silent_as("unknown"),
        one_unknown,
    ),
    Fault("UNKNOWN from one call", fails(999), without_power, one_value_unknown),
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
        is_divided,
        divided,
    ),
    Fault("INSUFFICIENT_SIZE race", outgrow, race_lost, race_costs_no_value),
    Fault(
        "Xid 79 twice by both roads",
        fall_off_by_both_roads,
        both_roads_heard,
        counted_twice,
        touched=frozenset(),
    ),
    Fault(
        "An event wait that returns GPU_IS_LOST for ever",
        lose_in_the_event_set,
        lost_and_deaf,
        lost,
    ),
)

TOLD_ELSEWHERE = {
    "Library missing": "tests/test_daemon.py",
}
"""Rows of the table that want another stage than this one."""


def label_sets_once(text: str) -> None:
    """No two samples are of one name with one set of labels, in whatever order those stand."""
    seen = Counter(
        (sample.name, frozenset(sample.labels.items()))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    )
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert seen.total() == len(lines), "each line is one sample"
    assert [series for series, times in seen.items() if times > 1] == []


@pytest.mark.parametrize("name", ["veo_gpu_bar1_used_bytes", "DCGM_FI_DEV_GPU_TEMP", "up"])
def test_a_label_set_that_stands_twice_is_noticed(name: str) -> None:
    # With a bracket and a space in a value, which are no end of the labels.
    once = name + '{gpu="0",uuid="} 7"} 1\n' + name + '{gpu="1",uuid="} 7"} 1\n'
    label_sets_once(once)
    with pytest.raises(AssertionError, match=name):
        label_sets_once(once + name + '{uuid="} 7",gpu="1"} 2\n')


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
    daemon = start(f"--kernel.log-path={KernelLog(kernel_log(node)).path}", *fault.arguments)
    daemon.wait_for(
        lambda page: all_ok(page) and page.values("veo_exporter_event_source_up") == [1, 1]
    )
    with others_untouched(daemon, node, fault.touched):
        fault.happens(node)
        waited_before = daemon.seconds_kept_waiting()

        def told(page: Page) -> bool:
            label_sets_once(page.text)
            if daemon.seconds_kept_waiting() - waited_before < MOST_KEPT_WAITING_SECONDS:
                fault.always(page)
            return fault.told(page)

        fault.holds(daemon.wait_for(told, fault.patience_seconds), node)
    assert daemon.get("/-/healthy")[0] == 200
    node.release()


def test_the_documented_table_has_the_same_rows() -> None:
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", DOCS.read_text(), re.MULTILINE)
    assert rows == sorted(rows, key=rows.index)
    assert set(rows) == {fault.name for fault in FAULTS} | set(TOLD_ELSEWHERE)
