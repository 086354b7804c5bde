# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Xids and OOM kills end to end: the real daemon on the fake NVML, with a kernel log that a test writes."""

import signal
import time
from pathlib import Path

import pytest

from tests.conftest import StartDaemon
from tests.daemon import NOT_GIVEN_BACK, Daemon, Page
from tests.fake_nvml import FakeNode
from tests.test_gpu_life import post
from veo_exporter.catalog.xid import seeded_xids
from veo_exporter.gpu.presence import kernel_pci_address

ERRORS = "veo_gpu_xid_errors_total"
LAST_SEEN = "veo_gpu_xid_last_seen_timestamp_seconds"
UP = "veo_exporter_event_source_up"
KILLS = "veo_node_oom_kills_total"
LINES = "veo_exporter_kernel_log_lines_total"
MISSING = "veo_gpu_capability_missing"


class KernelLog:
    """A file in the place of the kernel's log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_text(
            "Nov 30 20:00:00 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 48, of before\n"
        )

    def write(self, message: str) -> None:
        with self.path.open("a") as file:
            file.write(f"Nov 30 20:27:45 n1 kernel: {message}\n")

    def write_xid(self, address: str, code: int, rest: str = "pid=7, name=python3, x") -> None:
        # Without a function, as the driver writes it.
        self.write(f"NVRM: Xid (PCI:{address.removesuffix('.0')}): {code}, {rest}")


@pytest.fixture
def kernel(tmp_path: Path) -> KernelLog:
    return KernelLog(tmp_path / "kern.log")


def address(node: FakeNode, number: int) -> str:
    return kernel_pci_address(node.gpus[number].pci_bus_id)


def with_log(kernel: KernelLog) -> str:
    return f"--kernel.log-path={kernel.path}"


def begun(daemon: Daemon, gpus: int = 8) -> Page:
    """All GPUs are seen, and both sources are heard."""
    return daemon.wait_for(
        lambda page: (
            len(page.values(ERRORS, xid="79")) == gpus
            and all(dict(labels)["uuid"] for name, labels in page.series if name == ERRORS)
            and page.value(UP, event_source="nvml_events") == 1
            and page.value(UP, event_source="kernel_log") != 0
        )
    )


def total(page: Page) -> float:
    return sum(page.values(ERRORS))


def test_the_codes_one_acts_on_start_at_zero(
    node: FakeNode, start: StartDaemon, kernel: KernelLog
) -> None:
    page = begun(start(with_log(kernel)))
    assert page.values(ERRORS) == [0] * (8 * len(seeded_xids())), "nothing of before the start"
    assert page.values(LAST_SEEN) == []
    assert page.values(KILLS) == [0] * 4
    assert page.value(LINES, message="other") == 0
    assert page.values(MISSING, signal=ERRORS) == []


def test_xid_79_by_an_event_by_a_line_and_by_both(
    node: FakeNode, start: StartDaemon, kernel: KernelLog
) -> None:
    daemon = start(with_log(kernel))
    begun(daemon)
    began = time.time()
    node.send_xid(1, 79)
    kernel.write_xid(address(node, 2), 79)
    with node.changes():
        node.send_xid(3, 79).send_xid(3, 79)
        kernel.write_xid(address(node, 3), 79)
        kernel.write_xid(address(node, 3), 79)
    # Last, so that everything before it was read when it has been.
    kernel.write_xid(address(node, 7), 31)
    page = daemon.wait_for(
        lambda page: (
            page.value(ERRORS, gpu="7", xid="31") == 1
            and page.value(ERRORS, gpu="1", xid="79") == 1
            and page.value(ERRORS, gpu="3", xid="79") == 2
        )
    )
    assert page.value(ERRORS, gpu="2", uuid=node.gpus[2].uuid, xid="79") == 1
    # One, one and two of Xid 79; one of Xid 31.
    assert total(page) == 5
    assert page.value(LINES, message="xid") == 4
    seen = page.value(LAST_SEEN, gpu="1", uuid=node.gpus[1].uuid, xid="79")
    assert seen is not None
    assert began - 1 <= seen <= time.time()
    # One each of the GPUs 1, 2, 3 and 7.
    lines = [line for line in daemon.told("Xid", 4) if line["gpu"] == "1"]
    assert [(line["xid"], line["action"], line["source"]) for line in lines] == [
        (79, "reboot_node", "nvml")
    ]
    assert lines[0]["meaning"] == "the GPU has fallen off the bus"


def test_a_lost_gpu_keeps_its_name_in_the_kernels_lines(
    node: FakeNode, start: StartDaemon, kernel: KernelLog
) -> None:
    daemon = start(with_log(kernel))
    begun(daemon)
    node.gpus[4].lose()
    daemon.wait_for(lambda page: page.states()["4"] == "lost")
    kernel.write_xid(address(node, 4), 79)
    daemon.wait_for(lambda page: page.value(ERRORS, uuid=node.gpus[4].uuid, xid="79") == 1)


def test_a_wait_that_answers_gpu_is_lost_for_ever_costs_nothing_else(
    node: FakeNode, start: StartDaemon, kernel: KernelLog
) -> None:
    node.fail("nvmlEventSetWait", 15)
    daemon = start(with_log(kernel))
    daemon.wait_for(
        lambda page: (
            len(page.values(ERRORS, xid="79")) == 8
            and page.value(UP, event_source="nvml_events") == 0
            and page.values("veo_gpus_usable") == [8]
        )
    )
    # The kernel log tells what NVML does not.
    kernel.write_xid(address(node, 0), 79)
    daemon.wait_for(lambda page: page.value(ERRORS, gpu="0", xid="79") == 1)
    node.forget_rules()
    daemon.wait_for(lambda page: page.value(UP, event_source="nvml_events") == 1)
    node.send_xid(5, 62)
    page = daemon.wait_for(lambda page: page.value(ERRORS, gpu="5", xid="62") == 1)
    assert set(page.states().values()) == {"ok"}


def test_xids_are_heard_again_after_the_driver_was_loaded_anew(
    node: FakeNode, start: StartDaemon, kernel: KernelLog
) -> None:
    daemon = start(with_log(kernel))
    begun(daemon)
    node.send_xid(0, 79)
    daemon.wait_for(lambda page: page.value(ERRORS, uuid=node.gpus[0].uuid, xid="79") == 1)
    node.unload_driver()
    daemon.wait_for(lambda page: page.value(UP, event_source="nvml_events") == 0)
    node.load_driver(order=[7, 0, 1, 2, 3, 4, 5, 6])
    daemon.wait_for(
        lambda page: (
            page.values("veo_gpus_usable") == [8]
            and page.value(UP, event_source="nvml_events") == 1
        )
    )
    node.send_xid(0, 79)
    page = daemon.wait_for(lambda page: page.value(ERRORS, uuid=node.gpus[0].uuid, xid="79") == 2)
    assert page.value(ERRORS, gpu="1", uuid=node.gpus[0].uuid, xid="79") == 2, "under its new index"


def test_a_pause_gives_the_event_set_back_and_hears_again_afterwards(
    node: FakeNode, start: StartDaemon, kernel: KernelLog, tmp_path: Path
) -> None:
    daemon = start(with_log(kernel), f"--web.unix-socket={tmp_path / 'veo.sock'}")
    begun(daemon)
    status, said = post(tmp_path / "veo.sock", "/-/pause?for=10m")
    assert (status, said.endswith("the driver is released\n")) == (200, True), said
    daemon.wait_for(lambda page: page.value(UP, event_source="nvml_events") == 0)
    # The kernel log is no part of the driver's session.
    kernel.write_xid(address(node, 6), 79)
    daemon.wait_for(lambda page: page.value(ERRORS, uuid=node.gpus[6].uuid, xid="79") == 1)
    assert post(tmp_path / "veo.sock", "/-/resume")[0] == 200
    begun(daemon)
    node.send_xid(6, 62)
    daemon.wait_for(lambda page: page.value(ERRORS, gpu="6", xid="62") == 1)
    assert daemon.events("the thread that hears NVML's events is left behind") == []


def test_one_gpu_without_events_is_told_only_where_nobody_else_tells_its_xids(
    node: FakeNode, start: StartDaemon, kernel: KernelLog
) -> None:
    node.gpus[2].unsupport("nvmlDeviceRegisterEvents")
    alone = start("--kernel.log=off")
    page = alone.wait_for(
        lambda page: (
            page.value(MISSING, gpu="2", signal=ERRORS, why="not_supported") == 1
            and len(page.values(ERRORS, xid="79")) == 7
        )
    )
    assert page.values(ERRORS, gpu="2") == [], "absent, and not zero"
    assert page.values(KILLS) == []
    assert page.value(UP, event_source="kernel_log") is None, "switched off"
    both = start(with_log(kernel))
    page = begun(both)
    assert page.values(MISSING, signal=ERRORS) == []


def test_oom_kills_are_counted_by_whose_memory_ran_out(
    start: StartDaemon, kernel: KernelLog
) -> None:
    daemon = start(with_log(kernel))
    begun(daemon)
    kernel.write("python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0")
    kernel.write("Out of memory: Killed process 7 (a) total-vm:1kB, anon-rss:1kB")
    kernel.write(
        "Memory cgroup out of memory: Killed process 8 (veo (b)) total-vm:1kB, anon-rss:1kB"
    )
    kernel.write("oom_reaper: reaped process 8 (veo (b)), now anon-rss:0kB")
    page = daemon.wait_for(lambda page: page.value(LINES, message="other") == 2)
    assert page.value(KILLS, scope="global") == 1
    assert page.value(KILLS, scope="memory_cgroup") == 1
    assert sum(page.values(KILLS)) == 2
    [_, line] = daemon.told("the kernel killed a process for want of memory", 2)
    assert (line["process"], line["pid"]) == ("veo (b)", 8)


def test_without_a_kernel_log_there_is_one_line_and_a_zero(
    start: StartDaemon, tmp_path: Path
) -> None:
    daemon = start(f"--kernel.log-path={tmp_path}/nowhere")
    page = daemon.wait_for(
        lambda page: (
            page.value(UP, event_source="nvml_events") == 1
            and page.value(UP, event_source="kernel_log") == 0
        )
    )
    assert page.values(KILLS) == []
    [line] = daemon.told("the kernel log is not read")
    assert line["level"] == "info", "auto: it is no fault"
    assert line["fault"] == f"{tmp_path}/nowhere: No such file or directory"


def test_it_ends_within_two_seconds_with_both_sources(
    start: StartDaemon, kernel: KernelLog
) -> None:
    # Once more if the machine stood still for as long as the driver has to take its session back.
    for _ in range(2):
        daemon = start(with_log(kernel))
        begun(daemon)
        assert daemon.end(signal.SIGTERM) < 2
        assert daemon.process.returncode == 0
        if not daemon.events(NOT_GIVEN_BACK):
            return
    raise AssertionError(f"{NOT_GIVEN_BACK}, twice")
