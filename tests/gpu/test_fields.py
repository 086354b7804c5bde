# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Many numbers in one call: each has its own code, type and meaning."""

import ctypes
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pynvml
import pytest

from tests.fake_nvml import FakeField, FakeNode
from tests.gpu import boards
from tests.gpu.conftest import FakeClock, ScriptedNvml
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu.answers import Part
from veo_exporter.gpu.codes import UNREADABLE
from veo_exporter.gpu.field_table import FIELDS, MAX_LINKS
from veo_exporter.gpu.fields import (
    ALL_LINKS,
    FUNCTION,
    ROW,
    TYPES,
    Ask,
    Field,
    FieldQuestions,
    first_of,
    unsigned_value,
    wide_value,
)
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import (
    Cadence,
    Device,
    Failure,
    Reading,
    Signal,
    WhyNot,
    signal_name,
)
from veo_exporter.gpu.session import find_gpu, open_session

NOT_SUPPORTED = NvmlError(FUNCTION, 3)

Answer = tuple[int, int, int | float]
"""Type, code and value."""


class Answering:
    """A library that gives these rows, whatever is asked."""

    NVMLError = ScriptedNvml.NVMLError

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[int, int]] = []

    def nvmlDeviceGetFieldValues(self, _gpu: object, asked: list[tuple[int, int]]) -> bytes:  # noqa: N802
        self.asked = asked
        return b"".join(
            ROW.pack(*ask, 0, 0, value_type, code, TYPES[min(value_type, 6)].pack(value))
            for ask, (value_type, code, value) in zip(asked, self.answers, strict=True)
        )


def ask(clock: FakeClock, fields: Sequence[Field], *answers: Answer) -> list[Part]:
    told = FieldQuestions(fields, set()).ask(Line(Answering(*answers), clock), object())
    return [part for _checks, parts in told for part in parts]


def one(value: Callable[[int, bytes], float] | None = None) -> Field:
    row = Ask(1) if value is None else Ask(1, value=value)
    return Field((catalog.POWER,), (row,), first_of())


def failed(part: Part) -> int:
    assert isinstance(part, NvmlError)
    assert part.function == FUNCTION
    return part.code


def test_rows_lie_in_memory_as_the_bindings_say() -> None:
    structure = pynvml.c_nvmlFieldValue_t
    assert ROW.size == ctypes.sizeof(structure)
    filled = structure(fieldId=1, scopeId=2, timestamp=3, latencyUsec=4, valueType=5, nvmlReturn=6)
    filled.value.ullVal = 7
    assert ROW.unpack(bytes(filled)) == (1, 2, 3, 4, 5, 6, struct.pack("=Q", 7))


@pytest.mark.parametrize(
    ("value_type", "value"),
    [
        (pynvml.NVML_VALUE_TYPE_DOUBLE, 12.5),
        (pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, 2**32 - 1),
        (pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG, 2**63),
        (pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 2**63),
        (pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG, -(2**40)),
        (pynvml.NVML_VALUE_TYPE_SIGNED_INT, -8),
        (pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT, 65_535),
    ],
)
def test_the_type_that_an_answer_names_is_honoured(
    clock: FakeClock, value_type: int, value: float
) -> None:
    assert ask(clock, [one()], (value_type, 0, value)) == [value]


def test_a_type_that_nobody_knows_costs_that_number(clock: FakeClock) -> None:
    bad, good = ask(clock, [one(), one()], (7, 0, 1), (1, 0, 60))
    assert failed(bad) == UNREADABLE
    assert good == 60


def test_memory_temperature_is_unsigned_whatever_the_driver_says(clock: FakeClock) -> None:
    # 70 in the low half; as the double that the driver names it would be next to nothing.
    as_double = struct.unpack("@d", struct.pack("@II", 70, 0))[0]
    assert ask(clock, [one(unsigned_value)], (0, 0, as_double)) == [70]


def test_a_counter_of_bytes_of_32_bits_tells_nothing(clock: FakeClock) -> None:
    wide, narrow = ask(clock, [one(wide_value)] * 2, (3, 0, 2**40), (1, 0, 4_000_000_000))
    assert wide == 2**40
    assert failed(narrow) == 3


def test_what_is_unsupported_is_asked_for_once(clock: FakeClock) -> None:
    library = Answering((1, 0, 60), (1, 3, 0), (1, 2, 0), (1, 999, 0))
    fields = [Field((catalog.POWER,), (Ask(n), Ask(n, ALL_LINKS)), first_of()) for n in (1, 2)]
    unsupported: set[tuple[int, int]] = set()
    line = Line(library, clock)
    first = [parts for _, parts in FieldQuestions(fields, unsupported).ask(line, object())]
    assert unsupported == {(1, ALL_LINKS), (2, 0)}
    library.answers = ((1, 0, 61), (1, 999, 0))
    again = [parts for _, parts in FieldQuestions(fields, unsupported).ask(line, object())]
    assert library.asked == [(1, 0), (2, ALL_LINKS)]
    assert (first[0], again[0]) == ((60,), (61,))
    assert failed(first[1][0]) == failed(again[1][0]) == 999
    # Where all are, there is nothing to call for.
    unsupported |= {(1, 0), (2, ALL_LINKS)}
    library.asked = []
    told = [
        failed(parts[0]) for _, parts in FieldQuestions(fields, unsupported).ask(line, object())
    ]
    assert (told, library.asked) == ([3, 3], [])


@pytest.mark.parametrize(("code", "seen"), [(2, 3), (3, 3), (4, 4), (15, 15), (999, 999)])
def test_each_row_has_its_own_code(clock: FakeClock, code: int, seen: int) -> None:
    bad, good = ask(clock, [one(), one()], (1, code, 0), (1, 0, 5))
    # An id that the driver does not know is INVALID_ARGUMENT.
    assert failed(bad) == seen
    assert good == 5


def test_the_first_that_answers_wins() -> None:
    combine = first_of(lambda number: number * 2)
    assert combine([1.0, 2.0]) == (2.0,)
    assert combine([NOT_SUPPORTED, 2.0]) == (4.0,)
    lost = NvmlError(FUNCTION, 15)
    # What failed says more than what is not supported.
    assert combine([NOT_SUPPORTED, lost]) == (lost,)
    assert combine([lost, NOT_SUPPORTED]) == (lost,)
    assert combine([NOT_SUPPORTED, NOT_SUPPORTED]) == (NOT_SUPPORTED,)


def test_a_source_that_failed_is_not_made_good_by_another() -> None:
    """Another counter began elsewhere: what is shown would fall."""
    combine = first_of()
    not_ready = NvmlError(FUNCTION, 27)
    assert combine([not_ready, 0.0]) == (not_ready,)
    assert combine([NOT_SUPPORTED, not_ready]) == (not_ready,)


def test_each_source_has_a_unit_of_its_own() -> None:
    combine = field_of(links.NVLINK_TRANSMIT.name).combine
    # KiB, then bytes.
    assert combine([3.0, 7.0]) == (3072.0,)
    assert combine([NOT_SUPPORTED, 7.0]) == (7.0,)


def test_the_source_that_answered_is_believed_from_then_on(clock: FakeClock) -> None:
    fields = [
        Field((catalog.POWER,), (Ask(1), Ask(2)), first_of(lambda one: one, lambda two: -two))
    ]
    sources: dict[tuple[Signal, ...], int] = {}
    library = Answering((1, 3, 0), (1, 0, 7))
    line = Line(library, clock)

    def told(*answers: Answer) -> Part:
        # Everything is asked for again, as with the static sweep.
        library.answers = answers
        questions = FieldQuestions(fields, set(), sources)
        [(_checks, [part])] = questions.ask(line, object())
        return part

    assert told((1, 3, 0), (1, 27, 0)) is not None
    assert sources == {}, "no source has answered yet"
    assert told((1, 3, 0), (1, 0, 7)) == -7
    assert sources == {(catalog.POWER,): 1}
    # The first would answer now.
    assert told((1, 0, 8)) == -8
    assert library.asked == [(2, 0)]
    assert failed(told((1, 999, 0))) == 999
    # It ends without the other taking its place.
    assert failed(told((1, 3, 0))) == 3
    assert told((1, 0, 9)) == -9


def test_questions_are_worked_out_anew_once_a_source_is_known(clock: FakeClock) -> None:
    fields = [Field((catalog.POWER,), (Ask(1), Ask(2)), first_of())]
    library = Answering((1, 0, 5), (1, 0, 6))
    questions = FieldQuestions(fields, set())
    assert questions.unchanged
    assert [parts for _, parts in questions.ask(Line(library, clock), object())] == [(5,)]
    assert not questions.unchanged


def field_of(name: str) -> Field:
    (found,) = [
        one
        for fields in FIELDS.values()
        for one in fields
        if name in {signal_name(signal) for signal in one.signals}
    ]
    return found


LINKS_UP = field_of(links.NVLINK_LINKS_UP.name).combine


def test_links_that_are_up_are_counted() -> None:
    absent: list[float | NvmlError] = [NOT_SUPPORTED] * (MAX_LINKS - 3)
    states = [1.0, 0.0, 1.0, *absent]
    assert LINKS_UP([3.0, *states]) == (3.0, 2)


def test_a_link_whose_state_fails_leaves_no_count_of_those_up() -> None:
    """One fewer than there are would look like a link that is down."""
    error = NvmlError(FUNCTION, 999)
    assert LINKS_UP([2.0, 1.0, error, *[NOT_SUPPORTED] * (MAX_LINKS - 2)]) == (2.0, error)


def test_a_board_without_links_has_none_up_and_one_that_says_nothing_of_them_none_at_all() -> None:
    silent: list[float | NvmlError] = [NOT_SUPPORTED] * MAX_LINKS
    assert LINKS_UP([0.0, *silent]) == (0.0, 0)
    assert LINKS_UP([NOT_SUPPORTED, *silent]) == (NOT_SUPPORTED, NOT_SUPPORTED)


@pytest.mark.parametrize(
    ("number", "action"),
    [(0, "none"), (1, "gpu_reset"), (2, "node_reboot"), (7, "system_reboot"), (8, "other")],
)
def test_one_action_holds(number: int, action: str) -> None:
    field = field_of('veo_gpu_recovery_action{action="none"}')
    holds = dict(zip(map(signal_name, field.signals), field.combine([number]), strict=True))
    assert sum(value for value in holds.values() if isinstance(value, float)) == 1
    assert holds[f'veo_gpu_recovery_action{{action="{action}"}}'] == 1


def test_field_numbers_are_those_of_the_header() -> None:
    pcie = [
        *("CORRECTABLE_ERRORS", "NAKS_RECEIVED", "RECEIVER_ERROR", "BAD_TLP", "NAKS_SENT"),
        *("BAD_DLLP", "NON_FATAL_ERROR", "FATAL_ERROR", "UNSUPPORTED_REQ", "LCRC_ERROR"),
        "LANE_ERROR",
    ]
    packets = [
        *("MALFORMED_PACKET_ERRORS", "BUFFER_OVERRUN_ERRORS", "RCV_ERRORS", "RCV_REMOTE_ERRORS"),
        *("RCV_GENERAL_ERRORS", "LOCAL_LINK_INTEGRITY_ERRORS", "XMIT_DISCARDS"),
        *("LINK_RECOVERY_FAILED_EVENTS", "EFFECTIVE_ERRORS", "SYMBOL_ERRORS"),
    ]
    reason = "CLOCKS_EVENT_REASON"
    header = {
        catalog.MEMORY_TEMPERATURE.name: ["MEMORY_TEMP"],
        board.POWER_INSTANT.name: ["POWER_INSTANT"],
        series(health.THROTTLE_DRIVER_SECONDS, "sw_power_cap"): [f"{reason}_SW_POWER_CAP"],
        series(health.THROTTLE_DRIVER_SECONDS, "sync_boost"): [f"{reason}_SYNC_BOOST"],
        series(health.THROTTLE_DRIVER_SECONDS, "sw_thermal_slowdown"): [
            f"{reason}_SW_THERM_SLOWDOWN"
        ],
        series(health.THROTTLE_DRIVER_SECONDS, "hw_thermal_slowdown"): [
            f"{reason}_HW_THERM_SLOWDOWN"
        ],
        series(health.THROTTLE_DRIVER_SECONDS, "hw_power_brake_slowdown"): [
            f"{reason}_HW_POWER_BRAKE_SLOWDOWN"
        ],
        series(health.REMAPPED_ROWS, "correctable"): ["REMAPPED_COR"],
        series(health.REMAPPED_ROWS, "uncorrectable"): ["REMAPPED_UNC"],
        health.REMAP_PENDING.name: ["REMAPPED_PENDING"],
        health.REMAP_FAILURE.name: ["REMAPPED_FAILURE"],
        series(health.RECOVERY_ACTION, "none"): ["GET_GPU_RECOVERY_ACTION"],
        links.PCIE_TRANSMIT.name: ["PCIE_COUNT_TX_BYTES"],
        links.PCIE_RECEIVE.name: ["PCIE_COUNT_RX_BYTES"],
        links.PCIE_REPLAYS.name: ["PCIE_REPLAY_COUNTER"],
        links.PCIE_REPLAY_ROLLOVERS.name: ["PCIE_REPLAY_ROLLOVER_COUNTER"],
        links.PCIE_RECOVERIES.name: ["PCIE_L0_TO_RECOVERY_COUNTER"],
        **{
            series(links.PCIE_ERRORS, error): [f"PCIE_COUNT_{name}"]
            for error, name in zip(links.PCIE_ERRORS_KNOWN, pcie, strict=True)
        },
        links.NVLINK_LINKS.name: ["NVLINK_LINK_COUNT", *["NVLINK_GET_STATE"] * MAX_LINKS],
        links.NVLINK_TRANSMIT.name: ["NVLINK_THROUGHPUT_DATA_TX", "NVLINK_COUNT_XMIT_BYTES"],
        links.NVLINK_RECEIVE.name: ["NVLINK_THROUGHPUT_DATA_RX", "NVLINK_COUNT_RCV_BYTES"],
        links.NVLINK_RAW_TRANSMIT.name: ["NVLINK_THROUGHPUT_RAW_TX"],
        links.NVLINK_RAW_RECEIVE.name: ["NVLINK_THROUGHPUT_RAW_RX"],
        series(links.NVLINK_ERRORS, "replay"): [
            "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            "NVLINK_ERROR_DL_REPLAY",
        ],
        series(links.NVLINK_ERRORS, "recovery"): [
            "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
            "NVLINK_ERROR_DL_RECOVERY",
        ],
        series(links.NVLINK_ERRORS, "crc_flit"): [
            "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
            "NVLINK_ERROR_DL_CRC",
        ],
        series(links.NVLINK_ERRORS, "crc_data"): ["NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"],
        series(links.NVLINK_ERRORS, "ecc_data"): ["NVLINK_ECC_DATA_ERROR_COUNT_TOTAL"],
        **{
            series(links.NVLINK_PACKET_ERRORS, error): [f"NVLINK_COUNT_{name}"]
            for error, name in zip(links.NVLINK_PACKET_ERRORS_KNOWN, packets, strict=True)
        },
        series(board.TEMPERATURE_MARGIN_THRESHOLD, "shutdown"): ["TEMPERATURE_SHUTDOWN_TLIMIT"],
        series(board.TEMPERATURE_MARGIN_THRESHOLD, "slowdown"): ["TEMPERATURE_SLOWDOWN_TLIMIT"],
        series(board.TEMPERATURE_MARGIN_THRESHOLD, "memory_max"): ["TEMPERATURE_MEM_MAX_TLIMIT"],
        series(board.TEMPERATURE_MARGIN_THRESHOLD, "gpu_max"): ["TEMPERATURE_GPU_MAX_TLIMIT"],
        series(health.RETIRED_PAGES, "single_bit"): ["RETIRED_SBE"],
        series(health.RETIRED_PAGES, "double_bit"): ["RETIRED_DBE"],
        health.RETIREMENT_PENDING.name: ["RETIRED_PENDING"],
    }
    asked = {
        signal_name(one.signals[0]): [row.field_id for row in one.asks]
        for fields in FIELDS.values()
        for one in fields
    }
    assert asked == {
        name: [getattr(pynvml, f"NVML_FI_DEV_{suffix}") for suffix in suffixes]
        for name, suffixes in header.items()
    }
    assert MAX_LINKS == pynvml.NVML_NVLINK_MAX_LINKS


def series(spec: MetricSpec, *labels: str) -> str:
    return str(spec.series(*labels))


Read = Callable[..., Reading]


@pytest.fixture
def read_full(tmp_path: Path, clock: FakeClock) -> Read:
    """Reads an H100's full sweep, with rows of fields as a test says."""

    def read(cadence: Cadence = Cadence.FULL, **fields: FakeField) -> Reading:
        gpu = boards.data_centre()
        gpu.fields = {(int(name[1:]), None): value for name, value in fields.items()}
        FakeNode(tmp_path / "scenario", gpus=[gpu]).attach()
        line = Line(pynvml, clock)
        assert open_session(line).code == 0
        device = find_gpu(line, 0).device
        assert device is not None
        return read_gpu(line, device, cadence, (), clock)

    return read


def test_a_row_that_fails_costs_that_row(read_full: Read) -> None:
    reading = read_full(_82=FakeField(0, code=999))
    assert catalog.MEMORY_TEMPERATURE not in reading.values
    assert catalog.MEMORY_TEMPERATURE not in reading.missing
    assert reading.failures == (Failure(function=FUNCTION, code=999),)
    assert reading.code == 0
    assert reading.values[board.POWER_INSTANT] == 615


def test_rows_that_fail_alike_are_one_failed_call(read_full: Read) -> None:
    fields = {f"_{field_id}": FakeField(0, code=999) for field_id in range(173, 184)}
    assert read_full(**fields).failures == (Failure(function=FUNCTION, code=999),)


def test_a_row_without_rights(read_full: Read) -> None:
    reading = read_full(_94=FakeField(0, code=4))
    assert reading.missing[links.PCIE_REPLAYS] is WhyNot.NOT_PERMITTED
    assert reading.failures == ()


def test_a_row_that_says_that_the_gpu_is_lost(read_full: Read) -> None:
    reading = read_full(_145=FakeField(0, code=15))
    assert (reading.values, reading.code) == ({}, 15)


def test_a_memory_temperature_that_cannot_be(read_full: Read) -> None:
    reading = read_full(_82=FakeField(255, "uint"))
    assert reading.implausible == 1
    assert catalog.MEMORY_TEMPERATURE not in reading.values


def test_a_library_without_field_values(
    line: Line, first: Device, nvml: ScriptedNvml, clock: FakeClock
) -> None:
    nvml.absent.add(FUNCTION)
    reading = read_gpu(line, first, Cadence.FULL, (), clock)
    assert reading.missing[links.PCIE_REPLAYS] is WhyNot.NOT_SUPPORTED
    assert reading.failures == ()


def test_a_call_that_fails_as_a_whole_costs_the_fields(tmp_path: Path, clock: FakeClock) -> None:
    gpu = boards.data_centre().fail(FUNCTION, 999)
    FakeNode(tmp_path / "scenario", gpus=[gpu]).attach()
    line = Line(pynvml, clock)
    open_session(line)
    device = find_gpu(line, 0).device
    assert device is not None
    reading = read_gpu(line, device, Cadence.FULL, (), clock)
    assert reading.failures == (Failure(function=FUNCTION, code=999),)
    assert (reading.code, reading.values[catalog.ENERGY]) == (0, 1_000_000)
    assert board.POWER_INSTANT not in reading.values


def test_scopes_are_links_sums_or_nothing() -> None:
    scopes = {
        signal_name(one.signals[0]): {row.scope for row in one.asks} for one in FIELDS[Cadence.FULL]
    }
    assert scopes[links.NVLINK_TRANSMIT.name] == {ALL_LINKS}
    assert scopes[series(links.NVLINK_PACKET_ERRORS, "symbol")] == {ALL_LINKS}
    # The older total, and the sum of the newer field.
    assert scopes[series(links.NVLINK_ERRORS, "replay")] == {0, ALL_LINKS}
    assert scopes[links.NVLINK_LINKS.name] == set(range(MAX_LINKS))
    assert scopes[links.PCIE_TRANSMIT.name] == {0}
