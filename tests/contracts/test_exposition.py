# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the whole program says, against what the catalogue declares."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.conftest import QUICK
from tests.daemon import Daemon, Page
from tests.fake_nvml import FakeNode
from tests.gpu.boards import divide, with_everything
from tests.kubernetes.kubelet import FakeKubelet, Held
from veo_exporter.catalog import CATALOG, Kind

GOLDEN = Path(__file__).parent.parent / "golden/metrics.txt"

# What differs from run to run and from machine to machine; the series themselves do not.
VOLATILE = re.compile(
    r"^((?:process_|veo_exporter_(?:build_info|.*timestamp|http_requests)|veo_gpu_(?:xid_last_seen|nvml_call|pod_mapping_age|(?:en|de)coder_busy|busy|[a-z_]+_sample_))"
    r"[^ ]*(?:\{.*\})?) \S+$",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A node on which everything that can be said is said."""
    folder = tmp_path_factory.mktemp("full")
    node = FakeNode(folder / "scenario", gpus=3)
    node.write_sysfs(folder / "sys")
    with_everything(node.gpus[0])
    node.gpus[1].unsupport("nvmlDeviceGetEncoderUtilization")
    divide(node.gpus[1])
    node.gpus[2].hang("nvmlDeviceGetMaxClockInfo")
    kubelet = FakeKubelet(folder / "kubelet.sock").holds(
        Held("render-0", {"nvidia.com/gpu": [node.gpus[0].uuid, f"{node.gpus[1].uuid}::0"]}),
        Held("upscale-0", {"nvidia.com/gpu": [f"{node.gpus[1].uuid}::1"]}),
        Held("web-0", {"example.com/nic": ["0"]}),
    )
    command = ["serve", *QUICK, f"--gpu.sysfs-root={folder / 'sys'}"]
    command += [f"--kubernetes.kubelet-socket={kubelet.path}"]
    (folder / "kern.log").touch()
    command += [f"--kernel.log-path={folder / 'kern.log'}"]
    with kubelet, Daemon(command, node.environment()) as running:
        running.wait_for(
            lambda page: (
                page.states() == {"0": "ok", "1": "ok", "2": "hung"}
                and page.value("veo_gpu_nvml_call_in_flight_seconds", gpu="2") is not None
                # All that was measured of the one that hangs is withdrawn.
                and len(page.values("veo_gpu_energy_joules_total")) == 2
                and len(page.values("veo_gpu_utilization_sample_ratio_count")) >= 1
                and page.values("veo_gpu_power_watts", gpu="2") == []
                and page.values("veo_gpu_power_limit_watts", gpu="2") == []
                and len(page.values("veo_gpu_board_info")) == 2
                and len(page.values("veo_gpu_pod_info")) == 3
                and page.values("veo_gpu_mig_profiling_active_ratio") != []
                and page.values("veo_gpu_profiling_active_ratio", gpu="0") != []
                and len(page.values("veo_gpu_recommended_frame_rate_hertz")) == 2
            )
        )
        node.send_xid(0, 79)
        running.wait_for(
            lambda page: page.value("veo_gpu_xid_errors_total", gpu="0", xid="79") == 1
        )
        yield running


def test_everything_declared_is_said_and_nothing_else(full: Daemon) -> None:
    page = full.scrape()
    said = {name for name, _ in page.series}
    declared = {name for spec in CATALOG for name in spec.series_names}
    assert said - declared == set(), "said, but not in the catalogue"
    assert declared - said == set(), "in the catalogue, but never said"


def test_labels_are_those_declared(full: Daemon) -> None:
    page = full.scrape()
    declared = {name: set(spec.label_names) for spec in CATALOG for name in spec.series_names}
    for name, labels in page.series:
        if name in declared:
            # An empty label is an absent one to Prometheus, and the parser keeps it.
            own = {"le"} if name.endswith("_bucket") else set()
            assert {label for label, _ in labels} - own == declared[name], name


def test_types_are_those_declared(full: Daemon) -> None:
    text = full.scrape().text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    assert types == {spec.name: spec.kind.value for spec in CATALOG}


def test_no_series_is_said_twice(full: Daemon) -> None:
    lines = [line for line in full.scrape().text.splitlines() if not line.startswith("#")]
    series = [line.rpartition(" ")[0] for line in lines]
    assert len(series) == len(set(series))


def test_openmetrics_is_read_by_the_reference_parser(full: Daemon) -> None:
    _, body = full.get("/metrics", {"Accept": "application/openmetrics-text;version=1.0.0"})
    parsed = text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
    families = {family.name: family for family in parsed}
    for spec in CATALOG:
        name = spec.name.removesuffix("_total") if spec.kind is Kind.COUNTER else spec.name
        assert families[name].unit == spec.unit.openmetrics, name


def test_values_are_never_nan(full: Daemon) -> None:
    page: Page = full.scrape()
    assert [series for series, value in page.series.items() if value != value] == []


def test_golden_exposition(full: Daemon) -> None:
    """The page as a reviewer reads it; UPDATE_GOLDEN=1 writes it anew, and the diff is the review."""
    # Asked once before: the count of these requests is then on the page.
    full.scrape()
    full.get("/-/ready")
    text = VOLATILE.sub(r"\1 ~", full.scrape().text)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "if this is meant, run: make golden"
