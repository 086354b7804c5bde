# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated library, asked as the sampler asks."""

import threading

import pytest

from tests.gpu.conftest import wait_until
from tests.simulate.nodes import Simulated, simulated
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu.capability import SIGNALS, capabilities_missing
from veo_exporter.gpu.inspection import inspect_driver
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.presence import kernel_pci_address
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Raw, Reading, signal_name
from veo_exporter.gpu.session import Found, count_gpus, find_gpu, open_session
from veo_exporter.simulate import Scenario, SimulatedNvml, load_scenario
from veo_exporter.simulate.nvml import pci_address
from veo_exporter.simulate.session import SimulatedNvmlError


def many(gpus: int) -> Simulated:
    return Simulated(load_scenario("busy").model_copy(update={"gpus": gpus}))


def test_it_answers_everything_that_is_asked() -> None:
    node = simulated("busy")
    assert open_session(node.line).texts == {
        "driver_version": "simulated",
        "nvml_version": "simulated",
        "cuda_version": "13.0",
    }
    readings = [node.read(0, cadence) for cadence in Cadence]
    for reading in readings:
        assert (reading.failures, reading.implausible, reading.code) == ((), 0, 0)
    answered = {signal for reading in readings for signal in (*reading.values, *reading.missing)}
    assert set(SIGNALS) - answered == set()
    # The board has no encoder, no fan, and neither what came before its generation nor after it.
    older = "l1_cache|l2_cache|register_file|texture_memory|texture_shared_memory|cbu"
    assert set(capabilities_missing(reading.missing for reading in readings)) == {
        "veo_gpu_encoder_utilization_ratio",
        "veo_gpu_encoder_sessions",
        "veo_gpu_encoder_frame_rate_hertz",
        "veo_gpu_encoder_latency_seconds",
        "veo_gpu_encoder_codec_sessions",
        "veo_gpu_encoder_codec_frame_rate_hertz",
        "veo_gpu_encoder_codec_latency_seconds",
        "veo_gpu_fan_speed_ratio",
        f'veo_gpu_ecc_errors_total{{location=~"{older}"}}',
        f'veo_gpu_ecc_aggregate_errors_total{{location=~"{older}"}}',
        "veo_gpu_retired_pages_total",
        "veo_gpu_page_retirement_pending",
        "veo_gpu_nvlink_packet_errors_total",
    }


def test_no_value_looks_impossible_over_a_whole_story() -> None:
    node = simulated("busy")
    open_session(node.line)
    for seconds in range(0, 240, 3):
        node.at(seconds)
        for index in range(8):
            reading = node.read(index)
            values = reading.values
            assert reading.implausible == 0
            memory = [
                values[signal]
                for signal in (catalog.MEMORY_USED, catalog.MEMORY_FREE, catalog.MEMORY_RESERVED)
            ]
            assert sum(memory) == values[catalog.MEMORY_TOTAL] == 80 * 1024**3
            assert values[catalog.POWER] <= 700


def test_nothing_fake_looks_real() -> None:
    node = simulated("busy")
    open_session(node.line)
    assert node.read(0, Cadence.STATIC).texts["name"].startswith("Simulated ")
    assert inspect_driver(node.library, node.clock).driver_version == "simulated"


def test_identities_are_unique_and_in_the_order_of_the_bus() -> None:
    node = many(64)
    open_session(node.line)
    assert count_gpus(node.line).count == 64
    devices = [node.device(index) for index in range(64)]
    assert len({device.uuid for device in devices}) == 64
    addresses = [device.pci_bus_id for device in devices]
    # NVML lists in that order; a GPU that is lost before the start is named by it.
    assert addresses == sorted(set(addresses))
    assert frozenset(addresses) == node.library.pci_functions()
    assert addresses == [kernel_pci_address("0000" + pci_address(n).upper()) for n in range(64)]


def test_without_a_session_nothing_is_answered() -> None:
    node = simulated("busy")
    assert count_gpus(node.line).code == 1
    assert node.find(0).code == 1
    open_session(node.line)
    assert count_gpus(node.line).count == 8
    node.line.call("nvmlShutdown")
    assert count_gpus(node.line).code == 1


def test_an_index_beyond_the_list() -> None:
    node = simulated("busy")
    open_session(node.line)
    assert node.find(8) == Found(index=8, code=2, function="nvmlDeviceGetHandleByIndex")


def test_a_function_that_it_does_not_know_is_not_found() -> None:
    node = simulated("busy")
    open_session(node.line)
    with pytest.raises(NvmlError, match="FUNCTION_NOT_FOUND"):
        node.line.call("nvmlDeviceGetViolationStatus", 0, 0)


def test_a_driver_that_is_unloaded_and_loaded_again() -> None:
    node = simulated("driver-reload")
    assert open_session(node.line).code == 0
    device = node.device(0)
    node.at(60)
    assert read_gpu(node.line, device, Cadence.FAST, (), node.clock).code == 1
    assert open_session(node.line).code == 9
    assert node.library.pci_functions() == frozenset()
    node.at(120)
    assert open_session(node.line).code == 0
    assert len(node.library.pci_functions()) == 8
    assert node.read(0).code == 0


def test_a_lost_gpu_stays_on_the_bus_and_comes_back() -> None:
    node = simulated("gpu-lost")
    open_session(node.line)
    device = node.device(3)
    node.at(61)
    assert read_gpu(node.line, device, Cadence.FAST, (), node.clock).code == 15
    assert node.find(3).code == 15
    assert node.find(2).code == 0
    assert device.pci_bus_id in node.library.pci_functions()
    node.at(301)
    assert node.device(3) == device


def test_a_whole_node_lost() -> None:
    node = simulated("node-lost")
    open_session(node.line)
    node.at(61)
    assert {node.find(index).code for index in range(8)} == {15}
    assert count_gpus(node.line).count == 8


def test_a_hidden_gpu_is_on_the_bus_alone() -> None:
    scenario = load_scenario("busy")
    hide = {"at": "10s", "what": "hide", "gpus": [1]}
    story = Scenario.model_validate(
        {**scenario.model_dump(exclude={"happenings"}), "happenings": [hide]}
    )
    node = Simulated(story)
    open_session(node.line)
    uuids = [node.device(index).uuid for index in range(8)]
    node.at(10)
    assert count_gpus(node.line).count == 7
    assert [node.device(index).uuid for index in range(7)] == [uuids[0], *uuids[2:]]
    assert len(node.library.pci_functions()) == 8


def test_a_call_that_hangs_returns_when_the_story_says_so() -> None:
    node = simulated("gpu-hung")
    open_session(node.line)
    device = node.device(3)
    node.at(61)
    readings: list[Reading] = []
    thread = threading.Thread(
        target=lambda: readings.append(read_gpu(node.line, device, Cadence.FAST, (), node.clock)),
        daemon=True,
    )
    thread.start()
    wait_until(lambda: node.line.flight)
    # The other GPUs answer meanwhile, on another line.
    other = Line(node.library, node.clock)
    assert find_gpu(other, 0).code == 0
    assert readings == []
    node.at(301)
    thread.join(10)
    assert [reading.code for reading in readings] == [0]


def test_throttling_shows_in_reasons_and_clock() -> None:
    node = simulated("busy")
    open_session(node.line)
    node.at(59)
    assert node.read(6).values[Raw.CLOCK_EVENT_REASONS] == 0
    node.at(70)
    values = node.read(6).values
    # Held down to six tenths of 1980 MHz by a hot board (NVML's bit 0x40).
    assert values[Raw.CLOCK_EVENT_REASONS] == 0x40
    assert values[catalog.SM_CLOCK] == 1_188e6
    assert node.read(5).values[Raw.CLOCK_EVENT_REASONS] == 0
    node.at(81)
    assert node.read(6).values[Raw.CLOCK_EVENT_REASONS] == 0


def test_counters_of_the_driver_go_with_the_story() -> None:
    node = simulated("busy")
    open_session(node.line)
    reason = 'veo_gpu_throttle_driver_seconds_total{reason="hw_thermal_slowdown"}'

    def told(index: int, name: str) -> float:
        return {signal_name(s): v for s, v in node.read(index, Cadence.FULL).values.items()}[name]

    node.at(60)
    assert told(6, reason) == 0
    before = told(6, links.PCIE_RECEIVE.name)
    node.at(70)
    assert told(6, reason) == 10
    assert told(5, reason) == 0
    assert told(6, links.PCIE_RECEIVE.name) > before > 0
    # Twenty seconds of each story of two minutes, and five of the fourth.
    node.at(3 * 120 + 65)
    assert told(6, reason) == 65
    assert told(6, links.NVLINK_LINKS_UP.name) == told(6, links.NVLINK_LINKS.name) == 18


def test_errors_are_of_the_bindings_shape() -> None:
    assert issubclass(SimulatedNvml.NVMLError, Exception)
    with pytest.raises(SimulatedNvml.NVMLError) as caught:
        simulated("busy").library.nvmlDeviceGetCount()
    assert isinstance(caught.value, SimulatedNvmlError)
    assert caught.value.value == 1


def test_two_nodes_do_not_know_each_other() -> None:
    one, two = simulated("busy"), simulated("busy")
    open_session(one.line)
    assert count_gpus(two.line).code == 1
