# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's performance counters, through the real bindings."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fake_nvml.gpu import FakeMigDevice
from tests.gpu.conftest import FakeClock, wait_until
from tests.gpu.surveying import Rows, Surveyed, missing, surveying, told
from veo_exporter.gpu.answers import NOTHING
from veo_exporter.gpu.capability import capabilities_missing
from veo_exporter.gpu.gpm import Gpm
from veo_exporter.gpu.gpm_signals import ALL, USUAL, number_of
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.readings import Failure, Reading, WhyNot
from veo_exporter.gpu.session import close_session

PREFIX = "veo_gpu_profiling_"
MIG_PREFIX = "veo_gpu_mig_profiling_"
OCCUPANCY = ("veo_gpu_profiling_sm_occupancy_ratio",)
GIB = 1 << 30
# 1220 and 2441 MiB/s.
H100: Rows = {
    ('veo_gpu_profiling_active_ratio{part="graphics"}',): 0.965,
    ('veo_gpu_profiling_active_ratio{part="sm"}',): 0.8825,
    ('veo_gpu_profiling_active_ratio{part="tensor"}',): 0.6275,
    ('veo_gpu_profiling_active_ratio{part="dram"}',): 0.5725,
    OCCUPANCY: 0.415,
    ("veo_gpu_profiling_pcie_transmit_bytes_per_second",): 1_279_262_720,
    ("veo_gpu_profiling_pcie_receive_bytes_per_second",): 2_559_574_016,
}


class Profiled:
    """Sweeps that ask for GPM."""

    def __init__(self, surveyed: Surveyed, gpm: Gpm) -> None:
        self.surveyed = surveyed
        self.gpm = gpm

    def sweep(self, seconds: float = 5.0) -> Reading:
        self.surveyed.clock.now += seconds
        return self.surveyed.read(self.gpm.survey)

    def alive(self) -> int:
        """Samples that are allocated."""
        calls = self.surveyed.library.calls
        return calls("nvmlGpmSampleAlloc") - calls("nvmlGpmSampleFree")


@pytest.fixture
def profiled(tmp_path: Path, clock: FakeClock) -> Iterator[Profiled]:
    with surveying(tmp_path, clock) as surveyed:
        yield Profiled(surveyed, Gpm(clock))


def test_two_sweeps_make_the_numbers(profiled: Profiled) -> None:
    first = profiled.sweep()
    assert (told(first, PREFIX), missing(first, PREFIX)) == ({}, set())
    for _ in range(3):
        reading = profiled.sweep()
        assert told(reading, PREFIX) == H100
        assert (reading.failures, reading.implausible, reading.code) == ((), 0, 0)
    # Allocated once, and asked once in a session whether it is supported.
    assert profiled.surveyed.library.calls("nvmlGpmSampleAlloc") == 2
    assert profiled.surveyed.library.calls("nvmlGpmQueryDeviceSupport") == 1


def test_an_older_board(profiled: Profiled) -> None:
    profiled.surveyed.gpu.set(gpm_supported=0)
    for _ in range(2):
        reading = profiled.sweep()
        assert told(reading, PREFIX) == {}
        named = capabilities_missing([reading.missing])
        assert {name for name in named if name.startswith(PREFIX)} == {
            'veo_gpu_profiling_active_ratio{part=~"graphics|sm|tensor|dram"}',
            "veo_gpu_profiling_sm_occupancy_ratio",
            "veo_gpu_profiling_pcie_transmit_bytes_per_second",
            "veo_gpu_profiling_pcie_receive_bytes_per_second",
        }
    assert profiled.alive() == 0
    assert profiled.surveyed.library.calls("nvmlGpmQueryDeviceSupport") == 1


def test_a_library_that_does_not_know_it(profiled: Profiled) -> None:
    profiled.surveyed.gpu.fail("nvmlGpmQueryDeviceSupport", 13)
    reading = profiled.sweep()
    assert len(missing(reading, PREFIX)) == len(USUAL)
    assert missing(reading, MIG_PREFIX) == set()


def test_rights_may_come_later(profiled: Profiled) -> None:
    profiled.surveyed.gpu.fail("nvmlGpmQueryDeviceSupport", 4)
    assert set(profiled.sweep().missing.values()) >= {WhyNot.NOT_PERMITTED}
    profiled.surveyed.gpu.forget_rules()
    profiled.sweep()
    assert told(profiled.sweep(), PREFIX) == H100


def test_a_row_with_a_code_of_its_own_costs_that_row(profiled: Profiled) -> None:
    """The call as a whole succeeds."""
    profiled.surveyed.gpu.set(gpm_codes={3: 999, 5: 3})
    profiled.sweep()
    reading = profiled.sweep()
    tensor = 'veo_gpu_profiling_active_ratio{part="tensor"}'
    expected = {key: value for key, value in H100.items() if key not in (OCCUPANCY, (tensor,))}
    assert told(reading, PREFIX) == expected
    assert reading.failures == (Failure(function="nvmlGpmMetricsGet", code=999),)
    assert missing(reading, PREFIX) == {tensor}


def test_what_is_no_number_yet_is_absent_and_no_fault(profiled: Profiled) -> None:
    gpu = profiled.surveyed.gpu
    gpu.set(gpm={**gpu.gpm, 3: math.nan})
    profiled.sweep()
    reading = profiled.sweep()
    expected = {key: value for key, value in H100.items() if key != OCCUPANCY}
    assert told(reading, PREFIX) == expected
    assert (reading.failures, missing(reading, PREFIX), reading.implausible) == ((), set(), 0)


def test_more_than_there_is_cannot_be_true(profiled: Profiled) -> None:
    gpu = profiled.surveyed.gpu
    gpu.set(gpm={**gpu.gpm, 2: 130.0})
    profiled.sweep()
    reading = profiled.sweep()
    assert ('veo_gpu_profiling_active_ratio{part="sm"}',) not in told(reading, PREFIX)
    assert reading.implausible == 1


def test_looks_too_close_together_say_what_the_last_said(profiled: Profiled) -> None:
    profiled.sweep()
    profiled.sweep()
    taken = profiled.surveyed.library.calls("nvmlGpmSampleGet")
    gpu = profiled.surveyed.gpu
    gpu.set(gpm={**gpu.gpm, 3: 99.0})
    assert told(profiled.sweep(0.0625), PREFIX) == H100
    assert profiled.surveyed.library.calls("nvmlGpmSampleGet") == taken
    assert told(profiled.sweep(0.0625), PREFIX)[OCCUPANCY] == 0.99


def test_a_pair_that_is_too_far_apart_is_thrown_away(profiled: Profiled) -> None:
    profiled.sweep()
    assert told(profiled.sweep(601), PREFIX) == {}
    assert told(profiled.sweep(600), PREFIX) == H100


def test_all_of_it_when_it_is_asked_for(profiled: Profiled) -> None:
    gpu = profiled.surveyed.gpu
    # Two video decoders, of which the busier counts, and no more of them.
    gpu.set(gpm={**gpu.gpm, 11: 1, 12: 20, 13: 30, 30: 12.5, 31: 75, 40: 0})
    profiled.gpm.signals = ALL
    profiled.sweep()
    reading = profiled.sweep()
    further = {"fp64": 0.01, "fp32": 0.2, "fp16": 0.3, "nvdec": 0.75, "nvjpg": 0}
    expected = dict(H100)
    for part, ratio in further.items():
        expected[(f'veo_gpu_profiling_active_ratio{{part="{part}"}}',)] = ratio
    assert told(reading, PREFIX) == expected
    assert missing(reading, PREFIX) == {
        'veo_gpu_profiling_active_ratio{part="nvenc"}',
        'veo_gpu_profiling_active_ratio{part="ofa"}',
    }
    profiled.gpm.signals = ()
    taken = profiled.surveyed.library.calls("nvmlGpmSampleGet")
    assert told(profiled.sweep(), PREFIX) == {}
    assert profiled.surveyed.library.calls("nvmlGpmSampleGet") == taken


def test_samples_are_freed_before_the_session_ends(profiled: Profiled) -> None:
    surveyed = profiled.surveyed
    profiled.sweep()
    assert profiled.alive() == 2
    close_session(surveyed.line, closing_calls=[profiled.gpm.free])
    assert profiled.alive() == 0
    surveyed.device = surveyed.find()
    # Those of before are not the older half of a pair.
    assert told(profiled.sweep(), PREFIX) == {}
    assert told(profiled.sweep(), PREFIX) == H100
    assert profiled.alive() == 2


def test_a_session_that_is_over_leaves_nothing_behind(profiled: Profiled) -> None:
    surveyed = profiled.surveyed
    profiled.sweep()
    surveyed.node.unload_driver()
    assert profiled.sweep().code == 1
    close_session(surveyed.line, closing_calls=[profiled.gpm.free])
    surveyed.node.load_driver()
    surveyed.device = surveyed.find()
    assert told(profiled.sweep(), PREFIX) == {}
    assert told(profiled.sweep(), PREFIX) == H100


def test_samples_in_the_hands_of_a_call_that_hangs(profiled: Profiled) -> None:
    """They are not freed under its feet; whoever asks next begins with others."""
    surveyed = profiled.surveyed
    profiled.sweep()
    surveyed.gpu.hang("nvmlGpmSampleGet")
    surveyed.clock.now += 5
    line = Line(surveyed.line.library, surveyed.clock)
    left_behind = threading.Thread(target=profiled.gpm.ask, args=(line, surveyed.device))
    left_behind.start()
    try:
        wait_until(lambda: line.flight is not None and line.function == "nvmlGpmSampleGet")
        profiled.gpm.free(surveyed.line)
        assert profiled.alive() == 2
    finally:
        surveyed.gpu.release()
        left_behind.join(10)
    assert told(profiled.sweep(), PREFIX) == {}
    assert told(profiled.sweep(), PREFIX) == H100
    profiled.gpm.free(surveyed.line)
    # Those of the call that hung stay allocated: who could tell when it is done with them.
    assert profiled.alive() == 2


def divide(profiled: Profiled, *devices: tuple[int, str, int]) -> None:
    numbers = dict.fromkeys(((1, metric) for metric in (1, 2, 3, 5, 10, 20, 21)), 10.0)
    numbers |= dict.fromkeys(((2, metric) for metric in (1, 2, 3, 5, 10)), 20.0)
    profiled.surveyed.gpu.set(
        mig_mode=1,
        mig_devices=[
            FakeMigDevice(slot, uuid, instance, 0, 10 * GIB, GIB)
            for slot, uuid, instance in devices
        ],
        mig_gpm=numbers,
    )


def of_instance(gpu_instance: str, uuid: str, ratio: float) -> Rows:
    active = "veo_gpu_mig_profiling_active_ratio"
    parts = ("graphics", "sm", "tensor", "dram")
    rows: Rows = {(active, gpu_instance, uuid, part): ratio for part in parts}
    rows["veo_gpu_mig_profiling_sm_occupancy_ratio", gpu_instance, uuid] = ratio
    return rows


def test_instances_of_a_divided_gpu(profiled: Profiled) -> None:
    divide(profiled, (0, "MIG-a", 1), (1, "MIG-b", 2))
    assert told(profiled.sweep(), MIG_PREFIX) == {}
    reading = profiled.sweep()
    pcie = "veo_gpu_mig_profiling_pcie_{}_bytes_per_second"
    # 10 MiB/s each way.
    rates: Rows = {(pcie.format(way), "1", "MIG-a"): 10_485_760 for way in ("transmit", "receive")}
    assert told(reading, MIG_PREFIX) == {
        **of_instance("1", "MIG-a", 0.1),
        **of_instance("2", "MIG-b", 0.2),
        **rates,
    }
    assert told(reading, PREFIX) == H100


def test_instances_answer_where_the_divided_gpu_does_not(profiled: Profiled) -> None:
    profiled.gpm.signals = ALL
    divide(profiled, (0, "MIG-b", 2))
    profiled.surveyed.gpu.unsupport("nvmlGpmSampleGet")
    first = profiled.sweep()
    assert len(missing(first, PREFIX)) == len(ALL)
    profiled.surveyed.clock.now += 5
    second = profiled.surveyed.read(profiled.gpm.survey, skipped=first.missing)
    assert told(second, MIG_PREFIX) == of_instance("2", "MIG-b", 0.2)


def test_another_instance_with_the_same_id_begins_anew(profiled: Profiled) -> None:
    divide(profiled, (0, "MIG-a", 1))
    profiled.sweep()
    profiled.sweep()
    divide(profiled, (0, "MIG-c", 1))
    assert told(profiled.sweep(), MIG_PREFIX) == {}
    assert {labels[2] for labels in told(profiled.sweep(), MIG_PREFIX)} == {"MIG-c"}
    # Of the GPU and of the one instance; those of the other were given back.
    assert profiled.alive() == 4


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 3, 999]),
            st.one_of(st.floats(0, 100), st.just(math.nan)),
        ),
        min_size=8,
        max_size=8,
    )
)
def test_of_several_engines_the_busiest_counts(answers: list[tuple[int, float]]) -> None:
    decoder = next(one for one in ALL if len(one.ids) == 8)
    number = number_of(decoder, dict(zip(decoder.ids, answers, strict=True)))
    succeeded = [value for code, value in answers if code == 0]
    known = [value for value in succeeded if value == value]
    if known:
        assert number == max(known) / 100
    elif succeeded:
        assert number is NOTHING
    else:
        assert isinstance(number, NvmlError)
        # One engine that fails is worth telling, among others that are not there.
        assert number.code == (999 if 999 in dict(answers) else 3)
