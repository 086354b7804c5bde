# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is published of one GPU: a copy, fit to be handed to other threads."""

from veo_exporter.gpu.readings import GpuView, OverdueCall, State
from veo_exporter.gpu.record import Record

Verdict = tuple[State, int | None]
"""The state, and the return code that decided it."""


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
        readings=tuple(record.readings.values()),
        windows=record.statistics(),
        throttle_seconds=record.account.throttle_seconds,
        missing=record.capabilities_missing,
        errors=dict(record.errors),
        implausible_readings=record.implausible_readings,
        overdue_call=overdue_call,
        sampled=record.account.sampled(),
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
        windows={},
        throttle_seconds={},
        missing={},
        errors={},
        implausible_readings=0,
        overdue_call=None,
    )
