# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is published of one GPU: a copy, fit to be handed to other threads."""

from collections.abc import Container

from veo_exporter.gpu.account import SampleAccount
from veo_exporter.gpu.readings import GpuView, OverdueCall, Signal, State, Summed
from veo_exporter.gpu.record import Record

Verdict = tuple[State, int | None]
"""The state, and the return code that decided it."""


class _SummedOnce:
    __slots__ = ("_account", "_found", "_shown")

    def __init__(self, account: SampleAccount, shown: Container[Signal]) -> None:
        self._account = account
        self._shown = shown
        self._found: Summed | None = None

    def __call__(self) -> Summed:
        # Two threads at once would find the same, but for a reading that came in between.
        found = self._found
        if found is None:
            found = self._found = self._account.summed(self._shown)
        return found


def view_of(record: Record, verdict: Verdict, overdue_call: OverdueCall | None) -> GpuView:
    """A GPU that NVML lists, or listed."""
    state, code = verdict
    return GpuView(
        index=record.index,
        uuid=record.uuid,
        pci_bus_id=record.pci_bus_id,
        state=state,
        code=code,
        texts=dict(record.texts),
        readings=record.readings_shown,
        missing=record.capabilities_missing,
        errors=dict(record.errors),
        implausible_readings=record.implausible_readings,
        overdue_call=overdue_call,
        summed=_SummedOnce(record.account, record.shown),
    )


def view_of_address(address: str, verdict: Verdict) -> GpuView:
    """A GPU that only the PCI bus knows."""
    state, code = verdict
    return GpuView(
        index=None,
        uuid="",
        pci_bus_id=address,
        state=state,
        code=code,
        texts={},
        readings=(),
        missing={},
        errors={},
        implausible_readings=0,
        overdue_call=None,
    )
