# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the exporter says of itself."""

import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import GaugeMetricFamily

import veo_exporter
from veo_exporter.exposition import OwnSource


def values(source: OwnSource, now: float = 0.0) -> dict[str, float]:
    return {family.spec.name: value for family in source.families(now) for _, value in family.rows}


@pytest.fixture
def own() -> OwnSource:
    return OwnSource(simulated=False, configured_unix_seconds=1_790_000_000.0)


def test_it_says_what_runs(own: OwnSource) -> None:
    [build] = [family for family in own.families(0) if "build_info" in family.spec.name]
    assert build.spec.label_names == ("version", "python_version")
    assert build.rows == [((veo_exporter.__version__, platform.python_version()), 1)]


@pytest.mark.parametrize("simulated", [False, True])
def test_it_says_whether_it_is_simulated(simulated: bool) -> None:
    source = OwnSource(simulated=simulated, configured_unix_seconds=0)
    assert values(source)["veo_exporter_simulated"] == float(simulated)


def test_a_refused_configuration_leaves_the_time_of_the_one_in_force(own: OwnSource) -> None:
    successful = "veo_exporter_config_last_reload_successful"
    at = "veo_exporter_config_last_reload_success_timestamp_seconds"
    assert (values(own)[successful], values(own)[at]) == (1, 1_790_000_000)
    own.reloaded(False, 1_790_000_100)
    assert (values(own)[successful], values(own)[at]) == (0, 1_790_000_000)
    own.reloaded(True, 1_790_000_200)
    assert (values(own)[successful], values(own)[at]) == (1, 1_790_000_200)


def test_it_is_read_once_a_second_and_at_each_reload(own: OwnSource) -> None:
    assert own.revision(5.0) == own.revision(5.9)
    assert own.revision(5.9) != own.revision(6.0)
    before = own.revision(5.0)
    own.reloaded(False, 1)
    refused = own.revision(5.0)
    own.reloaded(True, 2)
    assert len({before, refused, own.revision(5.0)}) == 3


def test_the_process_is_this_one(own: OwnSource) -> None:
    found = values(own)
    assert found["process_open_fds"] == pytest.approx(
        len(list(Path("/proc/self/fd").iterdir())), abs=3
    )
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"] > 1e6
    assert 0 < found["process_cpu_seconds_total"] <= time.process_time() + 1
    assert found["process_start_time_seconds"] < time.time()
    assert found["process_max_fds"] > 0


def test_a_newer_client_that_tells_more_breaks_nothing(
    own: OwnSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collect() -> Iterator[Any]:
        yield GaugeMetricFamily("process_network_receive_bytes", "New.", value=1)
        yield GaugeMetricFamily("process_open_fds", "Open.", value=7)

    monkeypatch.setattr(own._process, "collect", collect)
    found = values(own)
    assert found["process_open_fds"] == 7
    assert "process_network_receive_bytes" not in found
