# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The names of dcgm-exporter end to end: a board's values worked out by hand, and a real Prometheus that is
asked what the dashboards of dcgm-exporter ask."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as read_openmetrics,
)

from alerts.generation import rule_files
from tests.conftest import QUICK
from tests.daemon import PATIENCE_SECONDS, Daemon, Page, wait_until
from tests.dashboards.prometheus import Prometheus
from tests.fake_nvml import FakeLicensableFeature, FakeNode

GOLDEN = Path(__file__).parent / "golden"
LAST_SUCCESS = "veo_exporter_last_success_timestamp_seconds"
NAMES = re.compile(r"^DCGM_", re.MULTILINE)


def hand_chosen(folder: Path) -> FakeNode:
    """One H100 whose every value is chosen; tests/golden/dcgm_*.txt has them in DCGM's units."""
    node = FakeNode(folder / "scenario", gpus=1)
    node.write_sysfs(folder / "sys")
    node.gpus[0].set(
        clock_sm_mhz=1755,
        clock_memory_mhz=2619,
        memory_temperature_celsius=71,
        temperature_celsius=58,
        power_usage_milliwatts=431_250,
        energy_millijoules=123_456_789,
        pcie_replays=4,
        utilization_gpu_percent=93,
        utilization_memory_percent=29,
        encoder_capacity_h264_percent=100,
        encoder_utilization_percent=12,
        decoder_utilization_percent=34,
        # 81,559 MiB in all. Used: 47,683 MiB and 750,592 bytes. Free: 33,373 MiB and 297,984 bytes.
        memory_total_bytes=85_520_809_984,
        memory_reserved_bytes=526_385_152,
        memory_used_bytes=50_000_000_000,
        remapped_rows_uncorrectable=1,
        remapped_rows_correctable=2,
        remapped_rows_failure=0,
        # A virtual GPU with a licence for the second of two features.
        vgpu_license_supported=1,
        licensable_features=[FakeLicensableFeature(1, 0), FakeLicensableFeature(4, 1)],
        # Percent, and MiB a second.
        gpm={1: 96.5, 2: 88.25, 3: 41.5, 5: 62.75, 10: 57.25, 20: 1220, 21: 2441},
    )
    return node


def start(node: FakeNode, folder: Path, *flags: str, **environment: str) -> Daemon:
    (folder / "kern.log").touch()
    command = ["serve", *QUICK, f"--gpu.sysfs-root={folder / 'sys'}"]
    command += [f"--kernel.log-path={folder / 'kern.log'}", *flags]
    return Daemon(command, {**node.environment(), "NODE_NAME": "render-7", **environment})


def rows_of(page: Page) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (name.removesuffix("_total"), labels): value
        for (name, labels), value in page.series.items()
        if name.startswith("DCGM_")
    }


def types_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (DCGM_\S+) (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("golden", "flags"),
    [
        ("dcgm_classic.txt", ("--gpu.dcgm-names=classic",)),
        (
            "dcgm_new.txt",
            (
                "--gpu.dcgm-names=new",
                "--gpu.dcgm-uuid-label=uuid",
                "--gpu.dcgm-hostname-label=hostname",
            ),
        ),
    ],
)
def test_every_counter_of_a_board_worked_out_by_hand(
    tmp_path: Path, golden: str, flags: tuple[str, ...]
) -> None:
    wanted = Page((GOLDEN / golden).read_text())
    node = hand_chosen(tmp_path)
    with start(node, tmp_path, *flags) as daemon:
        daemon.wait_for(
            lambda page: page.value("veo_exporter_event_source_up", event_source="nvml_events") == 1
        )
        node.send_xid(0, 31)
        page = daemon.wait_for(
            lambda page: (
                len(rows_of(page)) == len(rows_of(wanted))
                and page.value("veo_gpu_xid_errors_total", xid="31") == 1
            )
        )
        assert rows_of(page) == rows_of(wanted)
        assert types_of(page.text) == types_of((GOLDEN / golden).read_text())
        # Ours are there all the same.
        assert page.value("veo_gpu_power_watts", gpu="0") == 431.25

        _, body = daemon.get("/metrics", {"Accept": "application/openmetrics-text;version=1.0.0"})
        families = {
            family.name: family
            for family in read_openmetrics(body.decode())  # type: ignore[no-untyped-call]
            if family.name.startswith("DCGM_")
        }
        counters = {name for name, kind in types_of(page.text).items() if kind == "counter"}
        assert set(families) == set(types_of(page.text))
        assert {name for name, family in families.items() if family.type == "unknown"} == counters


@pytest.mark.parametrize(
    ("names", "metric"),
    [
        ("classic", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"),
        ("new", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"),
    ],
)
def test_the_rate_of_the_links_is_what_passed_between_two_sweeps(
    tmp_path: Path, names: str, metric: str
) -> None:
    """The goldens have 0: their links stand still. Here they are moved once, between two sweeps.

    18 links send 100,000 KiB more each and receive 50,000: 2,700,000 KiB in all, hence 2,700 of
    DCGM's thousands of KiB, over the time between two sweeps. That time is about a second, and
    exactly what the page says of the two: when the group was last read.
    """
    node = hand_chosen(tmp_path)
    links = node.gpus[0]
    assert links.nvlink_count == 18
    sent, received = links.nvlink_transmit_kib or 0, links.nvlink_receive_kib or 0
    with start(node, tmp_path, f"--gpu.dcgm-names={names}") as daemon:

        def rate(page: Page) -> float | None:
            # Typed as a counter, which the reader of the text format gives its suffix.
            return page.value(f"{metric}_total", gpu="0")

        def move() -> tuple[Page, Page, float] | None:
            """The last page at rest, the first that is not, and the time between their sweeps; None if
            it took us so long to look that there may have been a sweep between them."""
            nonlocal sent, received
            last = daemon.wait_for(lambda page: rate(page) == 0)
            asked = time.monotonic()
            sent, received = sent + 100_000, received + 50_000
            links.set(nvlink_transmit_kib=sent, nvlink_receive_kib=received)
            while not rate(page := daemon.scrape()):
                assert time.monotonic() < begun + PATIENCE_SECONDS
                if rate(page) == 0:
                    last, asked = page, time.monotonic()
            seconds = (page.value(LAST_SUCCESS, group="gpu_full") or 0) - (
                last.value(LAST_SUCCESS, group="gpu_full") or 0
            )
            return (last, page, seconds) if time.monotonic() - asked < 0.4 else None

        begun = time.monotonic()
        before, page, seconds = wait_until(move)
        assert 0.5 < seconds < 5
        # What is measured is some milliseconds off between the two clocks.
        assert rate(page) == pytest.approx(2700 / seconds, rel=0.03)
        # Ours of the same: 18 times 100,000 and 50,000 KiB.
        for name, kib in (("transmit", 1_800_000), ("receive", 900_000)):
            total = f"veo_gpu_nvlink_{name}_bytes_total"
            assert (page.value(total) or 0) - (before.value(total) or 0) == kib * 1024
        # And 0 again as soon as nothing passes.
        daemon.wait_for(lambda page: rate(page) == 0)


def test_they_are_off_by_default(tmp_path: Path) -> None:
    with start(hand_chosen(tmp_path), tmp_path) as daemon:
        page = daemon.wait_for(lambda page: bool(page.values("veo_gpu_energy_joules_total")))
        assert not NAMES.search(page.text)
        assert "DCGM_" not in page.text


def test_what_a_board_lacks_is_absent_and_not_zero(tmp_path: Path) -> None:
    """As a GeForce: neither performance counters nor NVLinks, memory sensor, spare rows, licences."""
    node = hand_chosen(tmp_path)
    node.gpus[0].set(
        gpm_supported=0,
        nvlink_count=0,
        nvlink_active_mask=0,
        memory_temperature_celsius=None,
        remapped_rows_uncorrectable=None,
        remapped_rows_correctable=None,
        remapped_rows_failure=None,
        vgpu_license_supported=None,
    )
    lacking = re.compile(r"PROF|NVLINK|MEMORY_TEMP|REMAP|LICENSE")
    wanted = {
        name
        for name, _ in Page((GOLDEN / "dcgm_classic.txt").read_text()).series
        if not lacking.search(name)
    }
    with start(node, tmp_path, "--gpu.dcgm-names=classic") as daemon:

        def said(page: Page) -> set[str]:
            return {name for name, _ in page.series if name.startswith("DCGM_")}

        page = daemon.wait_for(lambda page: said(page) >= wanted)
        assert said(page) == wanted


def test_values_go_with_the_gpu_and_its_last_xid_stays(tmp_path: Path) -> None:
    node = hand_chosen(tmp_path)
    with start(node, tmp_path, "--gpu.dcgm-names=classic") as daemon:
        daemon.wait_for(
            lambda page: (
                bool(page.values("DCGM_FI_DEV_GPU_TEMP"))
                and page.value("veo_exporter_event_source_up", event_source="nvml_events") == 1
            )
        )
        node.send_xid(0, 79)
        daemon.wait_for(lambda page: page.value("DCGM_FI_DEV_XID_ERRORS", gpu="0") == 79)
        node.gpus[0].lose()
        page = daemon.wait_for(lambda page: page.states() == {"0": "lost"})
        assert {name for name, _ in page.series if name.startswith("DCGM_")} == {
            "DCGM_FI_DEV_XID_ERRORS"
        }


class Scraped:
    """A Prometheus that scrapes a node which has both, and one that runs dcgm-exporter's names alone."""

    def __init__(self, prometheus: Prometheus, address: str) -> None:
        self.prometheus = prometheus
        self.address = address

    def answer(self, expr: str) -> dict[str, float]:
        """The values by GPU; of a single one, by nothing."""
        found = self.prometheus.ask("query", query=expr)
        rows = [] if found is None else found["result"]
        return {row["metric"].get("gpu", ""): float(row["value"][1]) for row in rows}


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    folder = tmp_path_factory.mktemp("dcgm")
    node = FakeNode(folder / "scenario", gpus=2)
    node.write_sysfs(folder / "sys")
    with ExitStack() as running:
        daemon = running.enter_context(start(node, folder, "--gpu.dcgm-names=classic"))
        daemon.wait_for(lambda page: len(page.values("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")) == 2)
        address = daemon.url.removeprefix("http://")
        prometheus = running.enter_context(
            Prometheus(
                folder,
                {"veo": {address: {"node": "render-7"}}},
                rule_files(times_faster=30)["veo-recording.yaml"],
            )
        )
        wait_until(lambda: prometheus.series("veo:gpu_power_watts") or None, 2 * PATIENCE_SECONDS)
        yield Scraped(prometheus, address)


# What the panels of dcgm-exporter's dashboard (12239) show, of the two boards of the fake node.
PANELS: Mapping[str, tuple[str, dict[str, float]]] = {
    "temperature of each GPU": ("DCGM_FI_DEV_GPU_TEMP{<<>>}", {"0": 62, "1": 63}),
    "mean temperature": ("avg(DCGM_FI_DEV_GPU_TEMP{<<>>})", {"": 62.5}),
    "power of each GPU": ("DCGM_FI_DEV_POWER_USAGE{<<>>}", {"0": 612, "1": 613}),
    "power in all": ("sum(DCGM_FI_DEV_POWER_USAGE{<<>>})", {"": 1225}),
    "SM clock in hertz": (
        "DCGM_FI_DEV_SM_CLOCK{<<>>} * 1000000",
        {"0": 1_980_000_000, "1": 1_965_000_000},
    ),
    "utilization": ("DCGM_FI_DEV_GPU_UTIL{<<>>}", {"0": 97, "1": 96}),
    "memory copies": ("DCGM_FI_DEV_MEM_COPY_UTIL{<<>>}", {"0": 61, "1": 60}),
    # 61,440 MiB, and 256 more.
    "memory used": ("DCGM_FI_DEV_FB_USED{<<>>}", {"0": 61_440, "1": 61_696}),
    # Bare metal needs no licence, which DCGM calls 0.
    "licence of a virtual GPU": ("DCGM_FI_DEV_VGPU_LICENSE_STATUS{<<>>}", {"0": 0, "1": 0}),
    "tensor cores": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{<<>>}", {"0": 0.6275, "1": 0.6275}),
}


@pytest.mark.parametrize("panel", PANELS)
def test_dashboards_of_dcgm_exporter_have_their_answers(scraped: Scraped, panel: str) -> None:
    expr, wanted = PANELS[panel]
    chosen = f'instance=~"{re.escape(scraped.address)}", gpu=~"(0|1)"'.replace("\\", "\\\\")
    assert scraped.answer(expr.replace("<<>>", chosen)) == wanted


def test_a_dashboards_variables_offer_instance_and_gpu(scraped: Scraped) -> None:
    offered = {
        label: scraped.prometheus.ask(
            f"label/{label}/values", **{"match[]": "DCGM_FI_DEV_GPU_TEMP"}
        )
        for label in ("instance", "gpu", "Hostname")
    }
    assert offered == {
        "instance": [scraped.address],
        "gpu": ["0", "1"],
        "Hostname": ["render-7"],
    }


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        ("veo:gpu_utilization_ratio", {"0": 0.97, "1": 0.96}),
        ("veo:gpu_memory_copy_utilization_ratio", {"0": 0.61, "1": 0.60}),
        ("veo:gpu_memory_used_bytes", {"0": 64_424_509_440, "1": 64_692_944_896}),
        ("veo:gpu_power_watts", {"0": 612, "1": 613}),
        ("veo:gpu_energy_joules_total", {"0": 1_000_000, "1": 1_001_000}),
        ("veo:gpu_temperature_celsius", {"0": 62, "1": 63}),
        ("veo:gpu_sm_clock_hertz", {"0": 1.98e9, "1": 1.965e9}),
        ("veo:gpu_info", {"0": 1, "1": 1}),
    ],
)
def test_a_node_that_has_both_is_counted_once(
    scraped: Scraped, record: str, wanted: dict[str, float]
) -> None:
    wait_until(lambda: scraped.answer(record) or None)
    assert scraped.answer(record) == wanted
    assert scraped.answer(f"count({record})") == {"": 2}
