# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which GPUs are known, and under what name: the one place where records are made and merged."""

from collections.abc import Iterable
from typing import Final

from veo_exporter.gpu.account import Folding
from veo_exporter.gpu.nvml import Flight
from veo_exporter.gpu.record import Record

_BY_INDEX: Final = "index "


def subject_of(index: int | None) -> str:
    """The subject of calls about a GPU that only its index names yet."""
    return f"{_BY_INDEX}{index}"


class Roster:
    """Records by subject: a GPU's UUID; as long as nobody could read it, its PCI address or index.

    `flights` are the calls that were given up, by the subject that is blamed.
    """

    def __init__(self, folding: Folding) -> None:
        self.folding = folding
        self.records: dict[str, Record] = {}
        self.flights: dict[str, Flight] = {}
        self._errors_of_forgotten: dict[str, dict[tuple[str, int], int]] = {}

    def subject_at(self, index: int) -> str:
        """Whom to blame if a look-up of this index does not return."""
        for record in self.records.values():
            if record.index == index and record.listed:
                return record.subject
        return subject_of(index)

    def knows_handle_at(self, index: int) -> bool:
        """Whether this session has opened the GPU at this index before."""
        return any(
            record.index == index and record.device is not None for record in self.records.values()
        )

    def record_of(self, subject: str) -> Record:
        """The record that is blamed under a subject, even if it got a better name since."""
        known = self.records.get(subject)
        if known is not None:
            return known
        for record in self.records.values():
            if record.listed and subject in (record.pci_bus_id, subject_of(record.index)):
                return record
        return self.add(subject, int(subject.removeprefix(_BY_INDEX)), "")

    def record_at(self, index: int) -> Record:
        for record in self.records.values():
            # Indexes of an earlier session do not count, and a GPU that answers is another one.
            if record.index == index and record.listed and not record.answers:
                return record
        return self.add(subject_of(index), index, "")

    def add(self, subject: str, index: int, uuid: str) -> Record:
        record = Record(
            subject=subject, index=index, uuid=uuid, pci_bus_id="", folding=self.folding
        )
        record.errors = self._errors_of_forgotten.pop(subject, {})
        self.records[subject] = record
        return record

    def forget(self, nameless: Record) -> None:
        """An index of an earlier session. Whoever is at it next goes on counting: the rows are the same."""
        del self.records[nameless.subject]
        if nameless.errors:
            self._errors_of_forgotten[nameless.subject] = nameless.errors

    def _rename(self, record: Record, subject: str) -> None:
        del self.records[record.subject]
        if record.subject in self.flights:
            self.flights[subject] = self.flights.pop(record.subject)
        record.subject = subject
        self.records[subject] = record

    def replace(self, nameless: Record, record: Record) -> None:
        """Two records turn out to be of one GPU; the one with the better name stays."""
        del self.records[nameless.subject]
        if nameless.subject in self.flights:
            self.flights[record.subject] = self.flights.pop(nameless.subject)
        record.is_found_in(nameless)

    def in_order(self) -> Iterable[Record]:
        return sorted(
            self.records.values(), key=lambda record: (record.index is None, record.index or 0)
        )

    def name_by_elimination(self, bus: frozenset[str] | None) -> None:
        """A GPU that was lost before we started has no readable PCI address; but the bus has it.

        NVML lists in the order of the bus, so what is left over on both sides belongs together.
        """
        nameless = [record for record in self.in_order() if not record.pci_bus_id and record.listed]
        named = {record.pci_bus_id: record for record in self.records.values() if record.pci_bus_id}
        left_over = sorted(
            address for address in bus or () if address not in named or not named[address].listed
        )
        if not nameless or len(nameless) != len(left_over):
            return
        for record, address in zip(nameless, left_over, strict=True):
            known = named.get(address)
            if known is not None:
                # It was here in an earlier session, perhaps at another index: the same GPU.
                self.replace(record, known)
            else:
                record.pci_bus_id = address
                self._rename(record, address)
