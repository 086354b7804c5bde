# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Advice from snapshot to snapshot: as metrics, as JSON, and not at all where memory is not read."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tests.gpu.conftest import reading_of, snapshot_of, view_of
from veo_exporter.catalog import advice as catalog
from veo_exporter.catalog.gpu import MEMORY_FREE, MEMORY_USED, POWER
from veo_exporter.gpu.advice import GIB, Advice, Ladder
from veo_exporter.gpu.advisor import AdviceSource, Advisor, advice_document, why
from veo_exporter.gpu.readings import GpuView, Signal, Snapshot, State

FULL_GIB = 100


def gpu(used_gib: float, at: float, uuid: str = "GPU-1", index: int = 0, **more: object) -> GpuView:
    values: dict[Signal, float] = {
        MEMORY_USED: used_gib * GIB,
        MEMORY_FREE: (FULL_GIB - used_gib) * GIB,
    }
    return view_of(uuid, index, readings=(reading_of(at=at, values=values),), **more)


def taken(at: float, *gpus: GpuView) -> Snapshot:
    return replace(snapshot_of(*gpus), taken_monotonic_seconds=at, sequence=int(at))


def advised(*used_gib: float, begin: float = 1000.0) -> tuple[Advisor, Snapshot]:
    """After a sweep with each of these, and the last snapshot."""
    advisor = Advisor(Ladder())
    snapshot = taken(begin)
    for place, used in enumerate(used_gib):
        at = begin + 5 * place
        snapshot = taken(at, gpu(used, at))
        advisor.take(snapshot)
    return advisor, snapshot


def page(
    advisor: Advisor, snapshot: Snapshot, now: float
) -> dict[str, dict[tuple[str, ...], float]]:
    source = AdviceSource(lambda: snapshot, lambda: advisor.latest)
    return {family.spec.name: dict(family.rows) for family in source.families(now) if family.rows}


RATE, PRESSURE = catalog.RECOMMENDED_FRAME_RATE.name, catalog.MEMORY_PRESSURE.name


def test_rate_and_pressure_as_metrics() -> None:
    advisor, snapshot = advised(70, 70)
    assert page(advisor, snapshot, 1005.0) == {PRESSURE: {("0", "GPU-1"): 0}}
    advisor, snapshot = advised(70, 70, 70)
    assert page(advisor, snapshot, 1010.0) == {
        RATE: {("0", "GPU-1"): 60},
        PRESSURE: {("0", "GPU-1"): 0},
    }
    advisor, snapshot = advised(99, 99, 99)
    assert page(advisor, snapshot, 1010.0) == {
        RATE: {("0", "GPU-1"): 30},
        PRESSURE: {("0", "GPU-1"): 1},
    }


def test_a_withdrawn_reading_advises_nothing() -> None:
    advisor, snapshot = advised(70, 70, 70)
    assert page(advisor, snapshot, 1015.0)[RATE] == {("0", "GPU-1"): 60}
    assert page(advisor, snapshot, 1015.1) == {}


def test_a_gpu_that_is_lost_advises_nothing_and_begins_anew() -> None:
    advisor, _ = advised(70, 70, 70)
    lost = taken(1011.0, view_of(state=State.LOST, code=15))
    advisor.take(lost)
    assert page(advisor, lost, 1011.0) == {}
    back = taken(1012.0, gpu(70, 1012.0))
    advisor.take(back)
    assert page(advisor, back, 1012.0) == {PRESSURE: {("0", "GPU-1"): 0}}


def test_memory_that_fails_alone_advises_nothing() -> None:
    advisor, _ = advised(70, 70, 70)
    without = taken(1011.0, view_of(readings=(reading_of(at=1011.0, values={POWER: 1.0}),)))
    advisor.take(without)
    assert page(advisor, without, 1011.0) == {}


def test_a_reading_that_was_old_when_it_was_published_advises_nothing() -> None:
    advisor = Advisor(Ladder())
    advisor.take(taken(1005.1, gpu(70, 1000.0)))
    assert advisor.latest == {}


def test_a_board_with_no_memory_to_have_is_not_advised_on() -> None:
    advisor = Advisor(Ladder())
    values: dict[Signal, float] = {MEMORY_USED: 0.0, MEMORY_FREE: 0.0}
    advisor.take(taken(1000.0, view_of(readings=(reading_of(at=1000.0, values=values),))))
    assert advisor.latest == {}


def test_a_snapshot_with_the_same_reading_is_no_sweep() -> None:
    advisor = Advisor(Ladder())
    for at in (1000.0, 1001.0, 1002.0, 1003.0):
        advisor.take(taken(at, gpu(70, 1000.0)))
    assert advisor.latest["GPU-1"].streak.sweeps == 1


def test_each_gpu_has_its_own_advice_by_uuid() -> None:
    advisor = Advisor(Ladder())
    for place in range(4):
        at = 1000.0 + 5 * place
        # Their indexes change when the driver is loaded anew.
        first, second = (0, 1) if place < 2 else (1, 0)
        snapshot = taken(at, gpu(10, at, "GPU-1", first), gpu(90, at, "GPU-2", second))
        advisor.take(snapshot)
    assert page(advisor, snapshot, 1015.0)[RATE] == {("1", "GPU-1"): 120, ("0", "GPU-2"): 30}


def test_other_thresholds_hold_from_the_next_reading_on() -> None:
    advisor, _ = advised(70, 70, 70)
    advisor.ladder = replace(advisor.ladder, low_above=Fraction(65, 100))
    for at in (1015.0, 1020.0, 1025.0):
        snapshot = taken(at, gpu(70, at))
        advisor.take(snapshot)
    assert page(advisor, snapshot, 1025.0)[RATE] == {("0", "GPU-1"): 30}


def test_the_revision_changes_with_what_is_said() -> None:
    advisor, snapshot = advised(70, 70)
    source = AdviceSource(lambda: snapshot, lambda: advisor.latest)
    revision = source.revision(1005.0)
    assert source.revision(1006.0) == revision
    advisor.take(taken(1010.0, gpu(70, 1010.0)))
    said = source.revision(1010.0)
    assert said != revision
    assert source.revision(1015.1) != said


def test_the_document() -> None:
    advisor, _ = advised(70, 70, 70)
    snapshot = taken(1011.0, gpu(71, 1011.0), view_of("GPU-2", 1, state=State.LOST, code=15))
    advisor.take(snapshot)
    document = advice_document(snapshot, advisor.latest, advisor.ladder, 1012.0, simulated=True)
    assert document == {
        "schema": "veo.gpu.advice/1",
        "simulated": True,
        "thresholds": {
            "medium_from": 0.6,
            "low_above": 0.85,
            "hysteresis": 0.03,
            "sweeps": 3,
            "sweep_seconds": 5.0,
            "pressure_free_bytes": 1_610_612_736,
        },
        "gpus": [
            {
                "gpu": 0,
                "uuid": "GPU-1",
                "pci_bus_id": "0000:01:00.0",
                "state": "ok",
                "recommended_frame_rate_hertz": 60,
                "since_timestamp_seconds": 1_001_010.0,
                "why": "71 % of memory is used: from 60 % to 85 %",
                "memory_used_ratio": 0.71,
                "memory_used_bytes": 76_235_669_504,
                "memory_free_bytes": 31_138_512_896,
                "memory_pressure": False,
                "memory_pressure_since_timestamp_seconds": None,
            },
            {
                "gpu": 1,
                "uuid": "GPU-2",
                "pci_bus_id": "0000:02:00.0",
                "state": "lost",
                "recommended_frame_rate_hertz": None,
                "since_timestamp_seconds": None,
                "why": "its memory is not read: it is lost",
                "memory_used_ratio": None,
                "memory_used_bytes": None,
                "memory_free_bytes": None,
                "memory_pressure": None,
                "memory_pressure_since_timestamp_seconds": None,
            },
        ],
    }


def test_the_page_on_it_shows_a_document_of_this_form() -> None:
    page = (Path(__file__).parent.parent.parent / "docs/advice.md").read_text()
    block = re.search(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert block
    shown = json.loads(block[1])
    advisor, snapshot = advised(71, 71, 71)
    document = advice_document(snapshot, advisor.latest, advisor.ladder, 1010.0, simulated=False)
    assert {**shown, "gpus": []} == {**document, "gpus": []}
    own = {"uuid", "pci_bus_id", "since_timestamp_seconds"}
    (of_page,), (of_document,) = shown["gpus"], document["gpus"]
    assert list(of_page) == list(of_document)
    for key in set(of_page) - own:
        assert of_page[key] == of_document[key], key


@pytest.mark.parametrize(
    ("used_gib", "sentence"),
    [
        ([12.34], "12.34 % of memory is used: 120 Hz if it stays so (sweep 1 of 3)"),
        ([10, 10, 10], "10 % of memory is used: below 60 %"),
        ([70, 70, 70, 58, 58, 58], "58 % of memory is used: 120 Hz again below 57 %"),
        ([70, 70, 70, 50, 50], "50 % of memory is used: 120 Hz if it stays so (sweep 2 of 3)"),
        ([90, 90, 90], "90 % of memory is used: above 85 %"),
        ([90, 90, 90, 83], "83 % of memory is used: 60 Hz again at 82 % or less"),
    ],
)
def test_why(used_gib: list[float], sentence: str) -> None:
    advisor, _ = advised(*used_gib)
    advice: Advice = advisor.latest["GPU-1"]
    assert why(advice, advisor.ladder) == sentence
