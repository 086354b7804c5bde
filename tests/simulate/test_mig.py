# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The scenario in which a GPU is divided."""

import pytest

from tests.simulate.nodes import Simulated, begun
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.capability import capabilities_missing
from veo_exporter.gpu.gpm import Gpm
from veo_exporter.gpu.gpm_signals import USUAL
from veo_exporter.gpu.readings import Cadence, Device, Reading
from veo_exporter.gpu.samples import read_samples
from veo_exporter.gpu.session import open_session
from veo_exporter.simulate import load_scenario

PROFILES = ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]


def rows(reading: Reading, name: str) -> list[tuple[tuple[str, ...], float]]:
    return [(labels, value) for spec, labels, value in reading.rows if spec.name == name]


@pytest.fixture
def node() -> Simulated:
    return begun("mig")


@pytest.fixture
def divided(node: Simulated) -> Device:
    return node.device(7)


def test_no_other_scenario_divides_a_gpu() -> None:
    divided = {
        name: [division.gpu for division in load_scenario(name).mig]
        for name in ("busy", "driver-reload", "gpu-hung", "gpu-lost", "mig", "node-lost")
    }
    assert {name for name, gpus in divided.items() if gpus} == {"mig"}
    assert divided["mig"] == [7]


def test_its_parts_have_profiles_and_uuids_of_their_own(node: Simulated, divided: Device) -> None:
    found = [labels for labels, _ in rows(node.survey(divided), "veo_gpu_mig_info")]
    assert [profile for _, profile, _, _ in found] == PROFILES
    assert [instance for _, _, instance, _ in found] == ["1", "2", "3", "4"]
    assert {compute for _, _, _, compute in found} == {"0"}
    uuids = [uuid for uuid, _, _, _ in found]
    assert len(set(uuids)) == 4
    assert uuids[0] == "MIG-51000000-0000-4000-8000-000007000001"
    assert rows(node.survey(node.device(0)), "veo_gpu_mig_info") == []


def test_their_memory_adds_up_to_that_of_the_gpu(node: Simulated, divided: Device) -> None:
    reading = node.survey(divided)
    totals = [value for _, value in rows(reading, "veo_gpu_mig_memory_total_bytes")]
    usable = 79.5 * 1024**3
    assert totals == [usable / 2, usable / 4, usable / 8, usable / 8]
    used = [value for _, value in rows(reading, "veo_gpu_mig_memory_used_bytes")]
    assert sum(used) == node.read(7).values[catalog.MEMORY_USED]


def test_what_a_divided_gpu_does_not_tell(node: Simulated, divided: Device) -> None:
    def missing(device: Device) -> set[str]:
        readings = [
            read_samples(node.line, device, node.read(device.index, cadence), (), node.clock)
            for cadence in Cadence
        ]
        assert [reading.failures for reading in readings] == [(), (), ()]
        return set(capabilities_missing(reading.missing for reading in readings))

    utilization = "|".join(
        f"veo_gpu_{name}_ratio"
        for name in (
            "utilization",
            "memory_copy_utilization",
            "encoder_utilization",
            "decoder_utilization",
        )
    )
    assert missing(divided) - missing(node.device(0)) == {
        "veo_gpu_utilization_ratio",
        "veo_gpu_memory_copy_utilization_ratio",
        "veo_gpu_decoder_utilization_ratio",
        "veo_gpu_jpeg_utilization_ratio",
        "veo_gpu_ofa_utilization_ratio",
        f'veo_gpu_sample_gaps_total{{metric=~"{utilization}"}}',
    }


def test_counters_of_each_part(node: Simulated, divided: Device) -> None:
    gpm = Gpm(node.clock, USUAL)
    # The first sweep finds the parts.
    node.survey(divided)
    node.survey(divided, gpm.survey)
    node.at(5)
    reading = node.survey(divided, gpm.survey)
    assert reading.failures == ()
    occupancy = rows(reading, "veo_gpu_mig_profiling_sm_occupancy_ratio")
    assert [labels[0] for labels, _ in occupancy] == ["1", "2", "3", "4"]
    assert all(0 < value < 0.4 for _, value in occupancy)
    sent = [
        value for _, value in rows(reading, "veo_gpu_mig_profiling_pcie_transmit_bytes_per_second")
    ]
    # Of half, a quarter and two eighths of the memory.
    assert [value / sent[0] for value in sent] == pytest.approx([1, 0.5, 0.25, 0.25])


def test_a_slot_beyond_the_parts_is_empty(node: Simulated) -> None:
    assert node.line.call("nvmlDeviceGetMaxMigDeviceCount", 7) == 7
    with pytest.raises(Exception, match="NOT_FOUND"):
        node.line.call("nvmlDeviceGetMigDeviceHandleByIndex", 7, 4)


def test_two_nodes_are_divided_alike() -> None:
    one, two = begun("mig"), begun("mig")
    assert open_session(two.line).code == 0
    handles = [node.line.call("nvmlDeviceGetMigDeviceHandleByIndex", 7, 0) for node in (one, two)]
    assert handles[0] == handles[1]
