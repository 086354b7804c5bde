# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who is who, and what is published of it."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gpu.conftest import address_of, device_of, reading_of
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.account import Folding
from veo_exporter.gpu.codes import OVERDUE
from veo_exporter.gpu.ledger import DRIVER, Ledger
from veo_exporter.gpu.nvml import Flight
from veo_exporter.gpu.readings import Cadence, Device, GpuView, Raw, Signal, Snapshot, State, WhyNot
from veo_exporter.gpu.roster import subject_of
from veo_exporter.gpu.session import Answer, Counted, Found, Opened

STALE_AFTER = {Cadence.FAST: 5.0, Cadence.FULL: 15.0, Cadence.STATIC: 180.0}
NOW = 1000.0
ONE, TWO, THREE = "GPU-1", "GPU-2", "GPU-3"
BUS = frozenset(map(address_of, (ONE, TWO, THREE)))


@dataclass
class Node:
    """A ledger that is told what a driver would say."""

    ledger: Ledger = field(default_factory=lambda: Ledger(Folding(30, 3), STALE_AFTER))
    bus: frozenset[str] | None = BUS
    expected: int | None = None
    devices: dict[str, Device] = field(default_factory=dict)

    def lists(self, *gpus: str | int) -> None:
        """A session is opened and GPUs are looked up in this order; a code is one that fails."""
        self.ledger.opened(Opened(code=0, texts={"driver_version": "570"}))
        self.count(len(gpus))
        for index, gpu in enumerate(gpus):
            self.look_up(index, gpu)

    def count(self, gpus: int, at: float = NOW) -> tuple[int, ...]:
        return self.ledger.counted(Counted(code=0, count=gpus), at)

    def look_up(self, index: int, gpu: str | int) -> None:
        if isinstance(gpu, int):
            self.ledger.found(Found(index=index, code=gpu, function="nvmlDeviceGetHandleByIndex"))
        else:
            self.devices[gpu] = device_of(gpu, index)
            assert self.ledger.found(Found(index=index, device=self.devices[gpu])) is not None

    def read(
        self, gpu: str, at: float = NOW, *, code: int = 0, mask: int = 0, power: float = 7.0
    ) -> None:
        values: dict[Signal, float] = {}
        if not code:
            values = {catalog.POWER: power, Raw.CLOCK_EVENT_REASONS: mask}
        reading = reading_of(at=at, values=values, code=code)
        self.ledger.answered(Answer(device=self.devices[gpu], reading=reading))

    def hang(self, subject: str, function: str = "nvmlDeviceGetPowerUsage") -> Flight:
        flight = Flight(function, NOW - 2)
        self.ledger.overdue(subject, flight, NOW + 5)
        return flight

    def snapshot(self, at: float = NOW) -> Snapshot:
        return self.ledger.snapshot(at, self.bus, self.expected)

    def states(self, at: float = NOW) -> dict[tuple[int | None, str, str], State]:
        gpus = self.snapshot(at).gpus
        rows = {(gpu.index, gpu.uuid, gpu.pci_bus_id): gpu.state for gpu in gpus}
        assert len(rows) == len(gpus), "two rows of one identity"
        return rows


@pytest.fixture
def node() -> Node:
    return Node()


def row(index: int | None, uuid: str, address: str | None = None) -> tuple[int | None, str, str]:
    return index, uuid, address_of(uuid) if address is None else address


def view(snapshot: Snapshot, uuid: str) -> GpuView:
    (found,) = [gpu for gpu in snapshot.gpus if gpu.uuid == uuid]
    return found


def test_before_the_driver_was_asked(node: Node) -> None:
    snapshot = node.snapshot()
    assert snapshot.driver.fault == "the driver was not asked yet"
    assert snapshot.driver.visible == 0
    assert snapshot.expected == 3
    # On the bus they are; whether NVML hides them nobody can say yet.
    assert node.states() == {(None, "", address): State.UNKNOWN for address in sorted(BUS)}
    assert snapshot.last_success_unix_seconds == dict.fromkeys(Cadence, 0.0)


def test_gpus_that_answer(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu)
    assert node.states() == {
        row(0, ONE): State.OK,
        row(1, TWO): State.OK,
        row(2, THREE): State.OK,
    }
    snapshot = node.snapshot()
    assert snapshot.driver.fault == ""
    assert snapshot.driver.visible == 3
    assert snapshot.driver.texts == {"driver_version": "570"}
    assert snapshot.last_success_unix_seconds[Cadence.FAST] == NOW + 1e6
    assert view(snapshot, ONE).readings[0].values[catalog.POWER] == 7.0


def test_sequence_numbers_grow(node: Node) -> None:
    assert node.snapshot().sequence < node.snapshot().sequence


def test_what_is_expected_can_be_configured(node: Node) -> None:
    node.expected = 8
    assert node.snapshot().expected == 8
    node.expected, node.bus = None, None
    assert node.snapshot().expected is None


def test_while_look_ups_are_under_way_no_gpu_is_called_hidden(node: Node) -> None:
    """Without persistence mode each takes seconds, and pages are written meanwhile."""
    node.ledger.opened(Opened(code=0))
    assert set(node.states().values()) == {State.UNKNOWN}
    node.count(2)
    node.look_up(0, ONE)
    node.read(ONE)
    assert node.states() == {
        row(0, ONE): State.OK,
        (None, "", address_of(TWO)): State.UNKNOWN,
        (None, "", address_of(THREE)): State.UNKNOWN,
    }
    node.look_up(1, TWO)
    node.read(TWO)
    assert node.states()[None, "", address_of(THREE)] is State.HIDDEN


def test_likewise_when_a_session_is_opened_again(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu)
    node.ledger.closed(1)
    assert set(node.states().values()) == {State.UNKNOWN}
    node.ledger.opened(Opened(code=0))
    node.count(3)
    node.look_up(0, ONE)
    node.read(ONE)
    assert node.states()[row(0, ONE)] is State.OK
    assert node.states()[row(2, THREE)] is State.UNKNOWN


def test_a_gpu_that_is_not_listed_is_hidden_or_gone(node: Node) -> None:
    node.lists(ONE, TWO)
    assert node.states()[None, "", address_of(THREE)] is State.HIDDEN
    node.bus = BUS - {address_of(TWO)}
    node.lists(ONE)
    # Known from before: it keeps its name.
    assert node.states()[row(1, TWO)] is State.LOST
    node.bus = BUS
    assert node.states()[row(1, TWO)] is State.HIDDEN


def test_a_lost_gpu_keeps_its_row_and_comes_back(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    node.read(TWO)
    node.read(TWO, NOW + 1, code=15)
    assert node.states(NOW + 1)[row(1, TWO)] is State.LOST
    assert view(node.snapshot(NOW + 1), TWO).code == 15
    # It is looked up at each sweep; that fails, and it is one row all the same.
    for _ in range(3):
        assert 1 in node.count(3)
        node.look_up(1, 15)
        assert node.states(NOW + 2)[row(1, TWO)] is State.LOST
        assert len(node.states(NOW + 2)) == 3
    errors = view(node.snapshot(), TWO).errors
    assert errors == {("nvmlDeviceGetHandleByIndex", 15): 3}
    node.look_up(1, TWO)
    node.read(TWO, NOW + 3)
    assert node.states(NOW + 3)[row(1, TWO)] is State.OK


def test_a_gpu_lost_before_the_start_is_named_by_elimination(node: Node) -> None:
    node.lists(ONE, 15, THREE)
    assert node.states()[1, "", address_of(TWO)] is State.LOST
    assert len(node.states()) == 3
    # When it comes back it is the same row with its UUID, and its errors go on.
    node.look_up(1, TWO)
    node.read(TWO)
    assert node.states()[row(1, TWO)] is State.OK
    assert len(node.states()) == 3
    assert view(node.snapshot(), TWO).errors == {("nvmlDeviceGetHandleByIndex", 15): 1}


def test_two_lost_before_the_start_are_named_in_the_order_of_the_bus(node: Node) -> None:
    node.lists(15, TWO, 15)
    assert set(node.states()) == {
        (0, "", address_of(ONE)),
        row(1, TWO),
        (2, "", address_of(THREE)),
    }


@pytest.mark.parametrize("bus", [None, frozenset({address_of(ONE)})])
def test_without_the_bus_it_stays_nameless(node: Node, bus: frozenset[str] | None) -> None:
    node.bus = bus
    node.lists(ONE, 15)
    assert node.states()[1, "", ""] is State.LOST


def test_more_left_over_on_the_bus_than_nameless_names_nobody(node: Node) -> None:
    # One of the two is lost and the other hidden, but which?
    node.lists(ONE, 15)
    assert node.states() == {
        row(0, ONE): State.UNKNOWN,
        (1, "", ""): State.LOST,
        (None, "", address_of(TWO)): State.HIDDEN,
        (None, "", address_of(THREE)): State.HIDDEN,
    }


def test_nobody_is_named_before_all_are_looked_up(node: Node) -> None:
    # The lost one is off the bus; what is left over there is the one to be looked up next.
    node.bus = BUS - {address_of(THREE)}
    node.ledger.opened(Opened(code=0))
    node.count(3)
    node.look_up(0, ONE)
    node.look_up(1, 15)
    assert (1, "", "") in node.states()
    node.look_up(2, TWO)
    assert row(2, TWO) in node.states()
    assert (1, "", "") in node.states()


def test_indexes_of_an_earlier_session_name_nobody(node: Node) -> None:
    """One is hidden now, and the list moved up: index 0 is another GPU, and which is not known."""
    node.lists(ONE, TWO, THREE)
    node.lists(15, THREE)
    node.read(THREE)
    found = node.states()
    assert found[0, "", ""] is State.LOST
    assert found[row(0, ONE)] is State.HIDDEN
    assert found[row(1, TWO)] is State.HIDDEN
    assert found[row(1, THREE)] is State.OK
    assert view(node.snapshot(), ONE).errors == {}


def test_a_reordered_list_is_resolved_by_uuid(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    for at in (NOW, NOW + 1):
        node.read(ONE, at, mask=0x4)
    node.ledger.closed(1)
    node.lists(THREE, TWO, ONE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu, NOW + 60, mask=0x4)
    assert node.states(NOW + 60) == {
        row(0, THREE): State.OK,
        row(1, TWO): State.OK,
        row(2, ONE): State.OK,
    }
    found = view(node.snapshot(NOW + 60), ONE)
    # Its counter goes on; the time without a session counts for nothing.
    assert found.throttle_seconds["sw_power_cap"] == 1.0


def test_a_known_gpu_that_is_lost_in_a_new_session_keeps_its_name(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    for at in (NOW, NOW + 1):
        node.read(TWO, at, mask=0x4)
    node.ledger.closed(1)
    # In another order: what was at 1 is at 0 now.
    node.lists(15, ONE, THREE)
    assert node.states()[row(0, TWO)] is State.LOST
    assert len(node.states()) == 3
    # It comes back within the session and is what it was.
    node.look_up(0, TWO)
    node.read(TWO, NOW + 60)
    found = view(node.snapshot(NOW + 60), TWO)
    assert (found.index, found.state) == (0, State.OK)
    assert found.throttle_seconds["sw_power_cap"] == 1.0
    assert len(node.states()) == 3


def test_named_by_elimination_and_back_at_another_index_it_is_one_gpu(node: Node) -> None:
    node.lists(ONE, 15, THREE)
    node.snapshot()
    node.ledger.closed(1)
    node.lists(TWO, ONE, THREE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu)
    assert node.states() == {
        row(0, TWO): State.OK,
        row(1, ONE): State.OK,
        row(2, THREE): State.OK,
    }
    assert view(node.snapshot(), TWO).errors == {("nvmlDeviceGetHandleByIndex", 15): 1}
    assert view(node.snapshot(), ONE).errors == {}


def test_named_by_elimination_from_an_earlier_session_and_reordered(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    node.lists(ONE, 15, THREE)
    node.snapshot()
    node.lists(TWO, ONE, THREE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu)
    assert sorted(node.states()) == [row(0, TWO), row(1, ONE), row(2, THREE)]
    assert view(node.snapshot(), ONE).errors == {}


@pytest.mark.parametrize("code", [9, 12, 18, 999])
def test_without_a_session_no_gpu_is_well(node: Node, code: int) -> None:
    node.lists(ONE, TWO, THREE)
    node.read(ONE)
    node.ledger.closed(1)
    node.ledger.opened(Opened(code=code))
    snapshot = node.snapshot()
    assert {gpu.state for gpu in snapshot.gpus} == {State.UNKNOWN}
    assert {gpu.code for gpu in snapshot.gpus} == {code}
    assert all(gpu.readings == () for gpu in snapshot.gpus)
    assert snapshot.driver.fault
    assert (snapshot.driver.visible, snapshot.driver.texts) == (0, {})
    assert snapshot.driver.errors == {("nvmlInit", code): 1}


def test_an_answer_of_an_earlier_session_is_not_believed(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    earlier = node.devices[ONE]
    node.lists(ONE, TWO, THREE)
    node.ledger.answered(Answer(device=earlier, reading=reading_of(values={catalog.POWER: 9.0})))
    assert view(node.snapshot(), ONE).readings == ()


def test_a_gpu_whose_newest_reading_is_old_is_not_known_to_be_well(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    node.read(ONE)
    assert node.states(NOW + 5)[row(0, ONE)] is State.OK
    assert node.states(NOW + 5.1)[row(0, ONE)] is State.UNKNOWN


def test_counting_gives_whom_to_look_up(node: Node) -> None:
    node.ledger.opened(Opened(code=0))
    assert node.count(3) == (0, 1, 2)
    for index, gpu in enumerate((ONE, TWO, THREE)):
        node.look_up(index, gpu)
        node.read(gpu)
    assert node.count(3) == ()
    node.read(TWO, code=15)
    assert node.count(3) == (1,)
    # The list has changed: every index may mean another GPU.
    assert node.count(2) == (0, 1)


def test_a_changed_list_makes_no_healthy_gpu_ill_meanwhile(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu)
    node.count(2)
    assert node.states()[row(0, ONE)] is State.OK
    node.look_up(0, ONE)
    node.look_up(1, TWO)
    assert node.states()[row(2, THREE)] is State.HIDDEN


def test_errors_of_a_nameless_gpu_are_counted_on_in_the_next_session(node: Node) -> None:
    node.bus = None
    for session in (1, 2, 3):
        node.lists(15, TWO)
        [nameless] = [gpu for gpu in node.snapshot().gpus if not gpu.uuid]
        assert nameless.errors == {("nvmlDeviceGetHandleByIndex", 15): session}
    # Found to be of a GPU, they are that one's, once.
    node.look_up(0, ONE)
    assert view(node.snapshot(), ONE).errors == {("nvmlDeviceGetHandleByIndex", 15): 3}
    node.lists(15, TWO)
    [nameless] = [gpu for gpu in node.snapshot().gpus if not gpu.uuid]
    assert nameless.errors == {("nvmlDeviceGetHandleByIndex", 15): 1}


def test_counting_that_fails_changes_nothing_but_the_count_of_errors(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    node.read(ONE)
    assert node.ledger.counted(Counted(code=999), NOW) == ()
    assert node.states()[row(0, ONE)] is State.OK
    assert node.snapshot().driver.errors == {("nvmlDeviceGetCount", 999): 1}


def test_a_hung_gpu_keeps_its_last_reading(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    node.read(ONE)
    node.read(TWO)
    node.hang(ONE)
    snapshot = node.snapshot()
    found = view(snapshot, ONE)
    assert (found.state, found.code) == (State.HUNG, None)
    assert found.readings[0].values[catalog.POWER] == 7.0
    assert found.overdue_call is not None
    assert found.overdue_call.function == "nvmlDeviceGetPowerUsage"
    # It began two seconds before NOW.
    assert found.overdue_call.seconds == 2.0
    assert found.errors == {("nvmlDeviceGetPowerUsage", OVERDUE): 1}
    assert view(snapshot, TWO).state is State.OK
    # Until it is stale: 5 s for the fast group.
    assert snapshot.current_values(found, NOW + 5)
    assert not snapshot.current_values(found, NOW + 5.1)


def test_a_hung_gpu_is_asked_again_after_it_returned_and_a_while(node: Node) -> None:
    node.lists(ONE, TWO, THREE)
    for gpu in (ONE, TWO, THREE):
        node.read(gpu)
    flight = node.hang(ONE)
    # Not while its call has not returned, however late it is.
    assert node.count(3, NOW + 1000) == ()
    node.ledger.returned(flight)
    assert node.states()[row(0, ONE)] is State.HUNG
    assert view(node.snapshot(), ONE).overdue_call is None
    assert node.count(3, NOW + 4.9) == ()
    assert node.count(3, NOW + 5) == (0,)
    node.look_up(0, ONE)
    node.read(ONE, NOW + 5)
    assert node.states(NOW + 5)[row(0, ONE)] is State.OK


def test_a_look_up_that_hangs_has_a_row(node: Node) -> None:
    node.ledger.opened(Opened(code=0))
    node.count(3)
    node.look_up(0, ONE)
    assert node.ledger.roster.subject_at(1) == subject_of(1)
    flight = node.hang(subject_of(1), "nvmlDeviceGetHandleByIndex")
    node.look_up(2, THREE)
    # What is left over on the bus is its address.
    assert node.states()[1, "", address_of(TWO)] is State.HUNG
    found = [gpu for gpu in node.snapshot().gpus if gpu.index == 1]
    assert found[0].overdue_call is not None
    assert node.count(3, NOW + 1000) == ()
    node.ledger.returned(flight)
    assert node.count(3, NOW + 1000) == (1,)
    node.look_up(1, TWO)
    node.read(TWO)
    assert node.states()[row(1, TWO)] is State.OK
    assert len(node.states()) == 3
    assert view(node.snapshot(), TWO).errors == {("nvmlDeviceGetHandleByIndex", OVERDUE): 1}


def test_blame_finds_a_gpu_that_got_its_name_since(node: Node) -> None:
    node.lists(ONE, 15, THREE)
    subject = node.ledger.roster.subject_at(1)
    node.snapshot()
    node.hang(subject, "nvmlDeviceGetHandleByIndex")
    assert node.states()[1, "", address_of(TWO)] is State.HUNG
    assert len(node.states()) == 3


def test_a_hung_gpu_stays_hung_while_a_session_is_opened_again(node: Node) -> None:
    """Its thread is still in the driver; a session for the others changes nothing for it."""
    node.lists(ONE, TWO, THREE)
    flight = node.hang(TWO)
    node.ledger.closed(1)
    assert node.states()[row(1, TWO)] is State.HUNG
    assert node.states()[row(0, ONE)] is State.UNKNOWN
    node.ledger.opened(Opened(code=0))
    assert node.count(3) == (0, 2)
    node.look_up(0, ONE)
    node.look_up(2, THREE)
    assert node.states()[row(1, TWO)] is State.HUNG
    node.ledger.returned(flight)
    assert node.count(3) == (1,)


def test_the_driver_as_a_whole_may_hang(node: Node) -> None:
    node.lists(ONE, TWO)
    node.read(ONE)
    node.ledger.judge_driver(hung=True)
    # Also the one that only the bus knows.
    assert set(node.states().values()) == {State.HUNG}


def test_a_start_that_hangs_is_named(node: Node) -> None:
    node.hang(DRIVER, "nvmlInit")
    node.ledger.judge_driver(hung=True)
    driver = node.snapshot().driver
    assert "nvmlInit has not returned" in driver.fault
    assert driver.overdue_call is not None
    assert (driver.overdue_call.function, driver.overdue_call.seconds) == ("nvmlInit", 2.0)
    assert driver.errors == {("nvmlInit", OVERDUE): 1}


def test_capabilities_are_merged_from_the_groups(node: Node) -> None:
    node.lists(ONE)
    for cadence, signal in ((Cadence.FAST, catalog.POWER), (Cadence.FULL, catalog.ENERGY)):
        reading = reading_of(cadence, missing={signal: WhyNot.NOT_SUPPORTED})
        node.ledger.answered(Answer(device=node.devices[ONE], reading=reading))
    assert set(view(node.snapshot(), ONE).missing) == {catalog.POWER.name, catalog.ENERGY.name}


def test_a_snapshot_does_not_change_any_more(node: Node) -> None:
    node.lists(ONE)
    node.read(ONE, NOW, mask=0x4)
    before = view(node.snapshot(), ONE)
    kept = before.readings, dict(before.throttle_seconds), dict(before.errors)
    node.read(ONE, NOW + 1, mask=0x4)
    node.look_up(0, 15)
    assert kept == (before.readings, before.throttle_seconds, before.errors)


def test_other_staleness_holds_from_now_on(node: Node) -> None:
    node.lists(ONE)
    node.read(ONE)
    node.ledger.refold(Folding(30, 3), dict.fromkeys(Cadence, 60.0))
    assert node.states(NOW + 59)[row(0, ONE)] is State.OK


GPUS = (ONE, TWO, THREE)
EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("list"),
            st.permutations(GPUS).flatmap(
                lambda order: st.lists(
                    st.sampled_from([0, 15, 999]), min_size=len(order), max_size=len(order)
                ).map(lambda codes: [code or gpu for gpu, code in zip(order, codes, strict=True)])
            ),
        ),
        st.tuples(st.just("look up"), st.integers(0, 2)),
        st.tuples(st.just("fail"), st.integers(0, 2)),
        st.tuples(st.just("read"), st.sampled_from(GPUS)),
        st.tuples(st.just("lose"), st.sampled_from(GPUS)),
        st.tuples(st.just("hang"), st.integers(0, 2)),
        st.tuples(st.just("return"), st.just(0)),
        st.tuples(st.just("close"), st.sampled_from([1, 9, 18])),
    ),
    max_size=25,
)


class Story(Node):
    """A node to which arbitrary things happen; it remembers what was ever read."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = list(GPUS)
        self.flights: list[Flight] = []
        self.powers: dict[str, set[float | None]] = {gpu: {None} for gpu in GPUS}
        self.lists(*self.order)

    def happen(self, what: str, about: Any, at: float) -> None:
        match what:
            case "list":
                unnamed = [gpu for gpu in GPUS if gpu not in about]
                self.order = [gpu if isinstance(gpu, str) else unnamed.pop() for gpu in about]
                self.lists(*about)
            case "read":
                self.powers[about].add(at)
                self.read(about, at, power=at)
            case "lose":
                self.read(about, at, code=15)
            case "return" if self.flights:
                self.ledger.returned(self.flights.pop())
            case "close":
                self.ledger.closed(about)
            case _:
                self.happen_in_session(what, about)

    def happen_in_session(self, what: str, about: Any) -> None:
        if not self.ledger.session_open:
            return
        match what:
            case "look up":
                self.look_up(about, self.order[about])
            case "fail":
                self.look_up(about, 15)
            case "hang":
                self.flights.append(self.hang(self.ledger.roster.subject_at(about)))


@given(EVENTS)
def test_whatever_happens_rows_are_unique_and_nothing_is_invented(
    events: list[tuple[str, Any]],
) -> None:
    story, now = Story(), NOW
    for gpu in GPUS:
        story.happen("read", gpu, now)
    for what, about in events:
        now += 1
        story.happen(what, about, now)
        # It asserts that no identity has two rows; and each GPU has one address and one row.
        story.states(now)
        snapshot = story.snapshot(now)
        assert sorted(view.pci_bus_id for view in snapshot.gpus if view.pci_bus_id) == sorted(BUS)
        named = [view.uuid for view in snapshot.gpus if view.uuid]
        assert len(named) == len(set(named)) == 3
        for view in snapshot.gpus:
            assert not view.uuid or view.pci_bus_id == address_of(view.uuid)
            for reading in view.readings:
                assert reading.values.get(catalog.POWER) in story.powers[view.uuid]
            if view.state is State.OK:
                assert view.readings
                assert snapshot.driver.fault == ""
