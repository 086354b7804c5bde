# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Everything known of the node's GPUs, kept by the sampler's thread and published as snapshots."""

from collections.abc import Mapping
from typing import Final

from veo_exporter.gpu.account import Folding
from veo_exporter.gpu.codes import OVERDUE, ReturnCode, remedy_for
from veo_exporter.gpu.memory import name_from_memory
from veo_exporter.gpu.nodes import Nodes, why_restart
from veo_exporter.gpu.nvml import Flight
from veo_exporter.gpu.readings import (
    Cadence,
    CallsElsewhere,
    Driver,
    GpuView,
    OverdueCall,
    Reading,
    Snapshot,
)
from veo_exporter.gpu.record import Record
from veo_exporter.gpu.roster import Roster, subject_of
from veo_exporter.gpu.session import Answer, Counted, Found, Opened
from veo_exporter.gpu.state import Evidence, judge
from veo_exporter.gpu.views import view_of, view_of_address

DRIVER: Final = "driver"
"""The subject of calls that concern no single GPU."""
NO_CALLS_ELSEWHERE: Final = CallsElsewhere()


class Ledger:
    """What sessions, look-ups and readings told. The roster knows which GPUs there are."""

    def __init__(self, folding: Folding, stale_after_seconds: Mapping[Cadence, float]) -> None:
        self.stale_after_seconds = stale_after_seconds
        self.roster = Roster(folding)
        self.records = self.roster.records
        self.flights = self.roster.flights
        self.session_code: int | None = None
        self.driver_hung = False
        self.paused = ""
        """What is to be said of a pause; empty while there is none."""
        self.remembered: Mapping[str, str] = {}
        """UUID by PCI address, of GPUs that were read at some time, perhaps by an earlier process."""
        self._nodes_while_well: frozenset[str] = frozenset()
        self._why_restart = ""
        self.errors: dict[tuple[str, int], int] = {}
        self._texts: Mapping[str, str] = {}
        self._count = 0
        self._counted = False
        self._counted_at = 0.0
        self._sequence = 0
        self._last_success = dict.fromkeys(Cadence, 0.0)

    @property
    def session_open(self) -> bool:
        return self.session_code == 0

    @property
    def answers_unknown(self) -> bool:
        """Whether NVML, or a GPU, answers that something is wrong and not what."""
        if not self.session_open:
            return self.session_code == ReturnCode.UNKNOWN
        return any(record.code == ReturnCode.UNKNOWN for record in self.records.values())

    def nodes_seen(self, nodes: Nodes) -> None:
        """The device nodes as they are now; as they should be, if NVML answers."""
        if self.answers_unknown:
            self._why_restart = why_restart(self._nodes_while_well, nodes)
        elif self.session_open:
            self._nodes_while_well |= nodes.present

    def refold(self, folding: Folding, stale_after_seconds: Mapping[Cadence, float]) -> None:
        """Fold in another way from now on; the windows begin anew, the counters go on."""
        self.roster.folding = folding
        self.stale_after_seconds = stale_after_seconds
        for record in self.records.values():
            record.refold(folding)

    def judge_driver(self, *, hung: bool) -> None:
        """Whether the driver as a whole hangs. Its GPUs stay hung until each has answered."""
        self.driver_hung = hung
        # While paused nobody asks them, so that none could answer.
        if hung or self.paused:
            for record in self.records.values():
                record.silenced = hung

    def opened(self, outcome: Opened) -> None:
        """A session was opened, or could not be."""
        self.session_code = outcome.code
        self._count = 0
        self._counted = False
        if outcome.code:
            self._count_driver_error("nvmlInit", outcome.code)
            return
        self._texts = outcome.texts
        # Handles and indexes of an earlier session mean nothing in this one.
        for record in list(self.records.values()):
            record.gone()
            record.listed = False
            record.look_up_code = 0
            if not record.uuid and not record.pci_bus_id and record.subject not in self.flights:
                self.roster.forget(record)

    def closed(self, code: int | None) -> None:
        """The session is over; without a code, by our own wish. No GPU is known to be well from now on."""
        self.session_code = code
        self._count = 0
        self._counted = False
        for record in self.records.values():
            record.gone()
            record.silenced = False
            record.hung = record.subject in self.flights

    def counted(self, outcome: Counted, now_monotonic_seconds: float) -> tuple[int, ...]:
        """NVML said how many GPUs it lists; gives the indexes that should be looked up."""
        if outcome.code:
            self._count_driver_error("nvmlDeviceGetCount", outcome.code)
            return ()
        if outcome.count != self._count:
            # The list has changed; which GPUs are still on it, the look-ups tell.
            for record in self.records.values():
                record.listed = False
        self._count = outcome.count
        self._counted = True
        self._counted_at = now_monotonic_seconds
        settled = {
            record.index
            for record in self.records.values()
            if (record.listed and record.answers)
            or (record.listed and record.subject in self.flights)
            or (record.hung and now_monotonic_seconds < record.retry_at_monotonic_seconds)
        }
        return tuple(index for index in range(outcome.count) if index not in settled)

    def found(self, outcome: Found) -> Record | None:
        """A look-up ended; gives the record if there is a GPU to read now."""
        if outcome.device is None:
            record = self.roster.record_at(outcome.index)
            record.look_up_code = outcome.code
            record.listed = True
            record.hung = False
            record.gone()
            record.count_error(outcome.function, outcome.code)
            return None
        device = outcome.device
        record = self.records.get(device.uuid) or self.roster.add(
            device.uuid, device.index, device.uuid
        )
        for subject in (subject_of(device.index), device.pci_bus_id):
            nameless = self.records.get(subject)
            if nameless is not None:
                self.roster.replace(nameless, record)
        record.found(device)
        record.hung = record.hung or record.subject in self.flights
        return record

    def answered(self, outcome: Answer) -> bool:
        """A reading arrived; gives whether it is of a GPU as this session knows it."""
        reading = outcome.reading
        record = self.records.get(outcome.device.uuid)
        if record is None or record.device is not outcome.device:
            return False
        record.fold(reading, everything=outcome.everything)
        if reading.succeeded:
            self._last_success[reading.cadence] = reading.finished_unix_seconds
        return True

    def overdue(self, subject: str, flight: Flight, retry_at_monotonic_seconds: float) -> None:
        """A call is over its deadline; its thread is no longer waited for."""
        if subject == DRIVER:
            self.flights[subject] = flight
            self._count_driver_error(flight.function, OVERDUE)
            return
        record = self.roster.record_of(subject)
        record.listed = True
        self.flights[record.subject] = flight
        record.count_error(flight.function, OVERDUE)
        record.hung = True
        record.hangs += 1
        record.hung_at_monotonic_seconds = flight.started_monotonic_seconds
        record.retry_at_monotonic_seconds = retry_at_monotonic_seconds

    def returned(self, flight: Flight) -> None:
        """A call that was given up has returned after all. The GPU stays hung until it answers."""
        for subject in [subject for subject, known in self.flights.items() if known is flight]:
            del self.flights[subject]
            record = self.records.get(subject)
            if record is not None and (self.paused or not record.listed):
                # Nobody will ask a GPU that NVML no longer lists, nor any while paused.
                record.hung = False

    def addresses(self) -> dict[str, str]:
        """UUID by PCI address, of the GPUs that this session could read."""
        return {
            record.pci_bus_id: record.uuid
            for record in self.records.values()
            if record.device is not None
        }

    @property
    def _all_looked_up(self) -> bool:
        listed = sum(record.listed for record in self.records.values())
        return self._counted and listed >= self._count

    def _count_driver_error(self, function: str, code: int) -> None:
        self.errors[function, code] = self.errors.get((function, code), 0) + 1

    def snapshot(
        self,
        now_monotonic_seconds: float,
        bus: frozenset[str] | None,
        expected: int | None,
        elsewhere: CallsElsewhere = NO_CALLS_ELSEWHERE,
    ) -> Snapshot:
        """What is known now, fit to be handed to other threads."""
        self._sequence += 1
        if self._all_looked_up:
            self.roster.name_by_elimination(bus)
        known = {record.pci_bus_id for record in self.records.values()}
        gpus = [self._view(record, bus, now_monotonic_seconds) for record in self.roster.in_order()]
        gpus += [self._hidden(address) for address in sorted((bus or frozenset()) - known)]
        gpus = name_from_memory(gpus, self.remembered)
        return Snapshot(
            sequence=self._sequence,
            taken_monotonic_seconds=now_monotonic_seconds,
            driver=Driver(
                fault=self._fault(),
                paused=bool(self.paused),
                why_restart=self._why_restart if self.answers_unknown else "",
                texts=self._texts if self.session_open else {},
                visible=self._visible(now_monotonic_seconds),
                overdue_call=self._overdue_call(DRIVER, now_monotonic_seconds),
                errors=dict(self.errors),
                elsewhere=elsewhere,
            ),
            expected=expected if expected is not None else None if bus is None else len(bus),
            gpus=tuple(gpus),
            last_success_unix_seconds=dict(self._last_success),
            stale_after_seconds=self.stale_after_seconds,
        )

    def _visible(self, now_monotonic_seconds: float) -> int | None:
        if not self.session_open:
            return 0
        stale_after = self.stale_after_seconds[Cadence.FULL]
        fresh = self._counted and now_monotonic_seconds - self._counted_at <= stale_after
        return self._count if fresh else None

    def _fault(self) -> str:
        if self.paused:
            return self.paused
        if self.session_open:
            return ""
        if self.answers_unknown and self._why_restart:
            return self._why_restart
        if DRIVER in self.flights:
            function = self.flights[DRIVER].function
            return f"{function} has not returned: the driver hangs, or is slow to start"
        return (
            remedy_for(self.session_code) if self.session_code else "the driver was not asked yet"
        )

    def _overdue_call(self, subject: str, now_monotonic_seconds: float) -> OverdueCall | None:
        flight = self.flights.get(subject)
        if flight is None:
            return None
        seconds = now_monotonic_seconds - flight.started_monotonic_seconds
        return OverdueCall(function=flight.function, seconds=seconds)

    def _fresh(self, reading: Reading | None, now_monotonic_seconds: float) -> bool:
        if reading is None:
            return False
        age = now_monotonic_seconds - reading.finished_monotonic_seconds
        return age <= self.stale_after_seconds[reading.cadence]

    def _view(
        self, record: Record, bus: frozenset[str] | None, now_monotonic_seconds: float
    ) -> GpuView:
        verdict = judge(
            Evidence(
                hung=record.hung or record.silenced or self.driver_hung,
                paused=bool(self.paused),
                session_code=self.session_code or 0,
                # Until all are looked up, one that was not yet is neither listed nor hidden.
                listed=record.listed or not self._all_looked_up,
                on_bus=None if bus is None else record.pci_bus_id in bus,
                code=record.code,
                fresh=self._fresh(record.newest, now_monotonic_seconds),
            )
        )
        call = self._overdue_call(record.subject, now_monotonic_seconds)
        return view_of(record, verdict, call)

    def _hidden(self, address: str) -> GpuView:
        verdict = judge(
            Evidence(
                hung=self.driver_hung,
                paused=bool(self.paused),
                session_code=self.session_code or 0,
                listed=not self._all_looked_up,
                on_bus=True,
                code=None,
                fresh=False,
            )
        )
        return view_of_address(address, verdict)
