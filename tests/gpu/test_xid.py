# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Each Xid counts once, whoever tells of it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from veo_exporter.catalog import xid as catalog
from veo_exporter.gpu.xid import MAX_GPUS, MAX_UNKNOWN, PAIR_SECONDS, Road, Sighting, XidTallies
from veo_exporter.gpu.xid_families import XidSource
from veo_exporter.gpu.xid_intake import MAX_LOGGED, GpuName, XidIntake

A = "0000:1b:00.0"
B = "0000:43:00.0"


def sighting(road: Road, at: float, code: int = 79, address: str = A) -> Sighting:
    return Sighting(
        road=road, pci_bus_id=address, code=code, at_unix_seconds=at + 1e6, at_monotonic_seconds=at
    )


def count(*sightings: Sighting) -> int:
    tallies = XidTallies([79])
    return sum(tallies.take(one) for one in sightings)


NVML, KERNEL = Road.NVML, Road.KERNEL


def test_one_road_alone_counts_each() -> None:
    assert count(sighting(NVML, 0), sighting(NVML, 0)) == 2
    assert count(sighting(KERNEL, 0), sighting(KERNEL, 0.1)) == 2


@pytest.mark.parametrize("first", Road)
def test_both_roads_tell_of_one(first: Road) -> None:
    other = next(road for road in Road if road is not first)
    assert count(sighting(first, 0), sighting(other, PAIR_SECONDS)) == 1
    assert count(sighting(first, 0), sighting(other, PAIR_SECONDS + 0.001)) == 2


@pytest.mark.parametrize(
    "order",
    [(NVML, NVML, KERNEL, KERNEL), (NVML, KERNEL, NVML, KERNEL), (KERNEL, NVML, NVML, KERNEL)],
)
def test_two_real_ones_by_both_roads_are_two(order: tuple[Road, ...]) -> None:
    assert count(*(sighting(road, place / 10) for place, road in enumerate(order))) == 2


def test_other_numbers_and_other_gpus_are_others() -> None:
    assert count(sighting(NVML, 0), sighting(KERNEL, 0, code=78)) == 2
    assert count(sighting(NVML, 0), sighting(KERNEL, 0, address=B)) == 2


@given(st.lists(st.tuples(st.sampled_from(Road), st.floats(0, 0.1)), max_size=40))
def test_within_the_time_the_road_that_told_more_decides(told: list[tuple[Road, float]]) -> None:
    at = 0.0
    sightings = []
    for road, step in told:
        at += step
        sightings.append(sighting(road, at))
    # Forty steps of a tenth of a second are four seconds: all within the pairing time.
    by_road = [sum(one.road is road for one in sightings) for road in Road]
    # Never fewer than what one road alone saw, never more than both together.
    assert max(by_road) <= count(*sightings) <= sum(by_road)


def test_the_newest_time_is_kept() -> None:
    tallies = XidTallies([79])
    tallies.take(sighting(NVML, 5))
    tallies.take(sighting(NVML, 3))
    assert (tallies.by_gpu[A]["79"].count, tallies.by_gpu[A]["79"].last_unix_seconds) == (
        2,
        1e6 + 5,
    )


def test_unknown_numbers_beyond_the_bound_are_other() -> None:
    tallies = XidTallies([79])
    for code in range(1000, 1000 + MAX_UNKNOWN + 3):
        tallies.take(sighting(NVML, 0, code=code))
    labels = tallies.by_gpu[A]
    assert len(labels) == MAX_UNKNOWN + 1
    assert labels[catalog.OTHER].count == 3
    assert tallies.label_of(79) == "79"


def test_addresses_are_bounded() -> None:
    tallies = XidTallies([79])
    for number in range(MAX_GPUS + 5):
        tallies.take(sighting(KERNEL, 0, address=f"{number:04x}:00:00.0"))
    assert tallies.by_gpu[""]["79"].count == 5


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[float, str, Mapping[str, Any]]] = []
        self.dropped: list[tuple[str, str, int]] = []

    def __call__(self, at: float, kind: str, fields: Mapping[str, Any]) -> None:
        self.events.append((at, kind, fields))

    def drop(self, kind: str, reason: str, number: int) -> None:
        self.dropped.append((kind, reason, number))


def intake_of(heard: Heard) -> XidIntake:
    names = {A: GpuName(pci_bus_id=A, gpu="0", uuid="GPU-a")}
    return XidIntake(
        name_of=lambda address: names.get(address, GpuName(pci_bus_id=address)),
        happened=heard,
        dropped=heard.drop,
    )


def test_an_xid_is_logged_and_handed_on_with_its_meaning_and_action() -> None:
    heard = Heard()
    intake = intake_of(heard)
    with capture_logs() as logs:
        intake.take(sighting(NVML, 10), gpu_instance=None, compute_instance=None)
        intake.take(sighting(KERNEL, 11), process="python3")
    assert heard.events == [
        (
            1e6 + 10,
            "xid",
            {
                "xid": 79,
                "meaning": "the GPU has fallen off the bus",
                "tier": "page",
                "action": "reboot_node",
                "gpu": "0",
                "uuid": "GPU-a",
                "pci_bus_id": A,
                "source": "nvml",
            },
        )
    ]
    [line] = logs
    assert (line["event"], line["log_level"]) == ("Xid", "warning")
    assert (line["xid"], line["action"]) == (79, "reboot_node")


def test_an_application_s_own_fault_is_no_warning() -> None:
    with capture_logs() as logs:
        intake_of(Heard()).take(sighting(KERNEL, 0, code=31), pid=7, process="python3")
    assert (logs[0]["log_level"], logs[0]["pid"], logs[0]["process"]) == ("info", 7, "python3")


def test_a_storm_is_a_line_each_ten_seconds() -> None:
    heard = Heard()
    intake = intake_of(heard)
    with capture_logs() as logs:
        for at in range(25):
            intake.take(sighting(NVML, at, code=13))
    # At 0, 10 and 20 s.
    assert [line["unsaid_before"] for line in logs] == [0, 9, 9]
    assert len(heard.events) == 25


def test_what_was_logged_is_forgotten_before_it_is_too_much() -> None:
    intake = intake_of(Heard())
    with capture_logs() as logs:
        for place in range(MAX_LOGGED + 1):
            intake.take(
                Sighting(
                    road=KERNEL,
                    pci_bus_id=f"{place:04x}:00:00.0",
                    code=13,
                    at_unix_seconds=1e6,
                    at_monotonic_seconds=0.0,
                )
            )
    assert len(logs) == MAX_LOGGED + 1
    assert len(intake._logged) == 1


def test_an_unknown_number_is_told_as_such_and_counted_beyond_the_bound() -> None:
    heard = Heard()
    intake = intake_of(heard)
    for code in range(1000, 1000 + MAX_UNKNOWN + 1):
        intake.take(sighting(NVML, 0, code=code))
    assert heard.dropped == [("xid_label", "other", 1)]
    assert heard.events[0][2]["meaning"] == catalog.UNKNOWN_MEANING


def rows(source: XidSource) -> dict[tuple[str, ...], float]:
    errors, last = source.families(0.0)
    assert (errors.spec, last.spec) == (catalog.XID_ERRORS, catalog.XID_LAST_SEEN)
    return {labels: value for labels, value in errors.rows if value} | {
        (*labels, "last"): value for labels, value in last.rows
    }


def source_of(tallies: XidTallies, *gpus: GpuName, watched: bool = True) -> XidSource:
    return XidSource(tallies, gpus=lambda: gpus, watched=lambda gpu: watched)


NAMED = GpuName(pci_bus_id=A, gpu="0", uuid="GPU-a")


def test_the_codes_one_acts_on_start_at_zero_where_somebody_would_tell() -> None:
    zero, _ = source_of(XidTallies([]), NAMED).families(0.0)
    assert zero.rows == [(("0", "GPU-a", str(code)), 0) for code in catalog.seeded_xids()]
    absent, _ = source_of(XidTallies([]), NAMED, watched=False).families(0.0)
    assert absent.rows == []


def test_rows_carry_the_names_of_now() -> None:
    tallies = XidTallies([79])
    tallies.take(sighting(KERNEL, 0))
    assert rows(source_of(tallies)) == {("", "", "79"): 1, ("", "", "79", "last"): 1e6}
    assert rows(source_of(tallies, NAMED)) == {
        ("0", "GPU-a", "79"): 1,
        ("0", "GPU-a", "79", "last"): 1e6,
    }


def test_gpus_that_nobody_knows_share_a_row() -> None:
    tallies = XidTallies([79])
    tallies.take(sighting(KERNEL, 0))
    tallies.take(sighting(KERNEL, 1, address=B))
    assert rows(source_of(tallies)) == {("", "", "79"): 2, ("", "", "79", "last"): 1e6 + 1}


def test_a_new_name_and_a_new_xid_are_a_new_revision() -> None:
    tallies = XidTallies([79])
    nameless, named = source_of(tallies), source_of(tallies, NAMED)
    before = nameless.revision(0.0)
    assert nameless.revision(1.0) == before
    assert named.revision(0.0) != before
    tallies.take(sighting(KERNEL, 0))
    assert nameless.revision(0.0) != before
