# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Takes Xids from both roads: counts each once, logs what it means, and hands it on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from veo_exporter.catalog.xid import OTHER, UNKNOWN_MEANING, Tier, xid_table
from veo_exporter.gpu.xid import Sighting, XidTallies

log = structlog.get_logger(__name__)

LOG_SECONDS: Final = 10.0
"""A storm of one Xid on one GPU is a line each ten seconds, which says how many there were."""
MAX_LOGGED: Final = 4096
"""Of GPUs and labels; more than there are, unless addresses are made up."""
XID_DROPPED_SEEDS: Final = (("xid_label", OTHER),)

Happened = Callable[[float, str, Mapping[str, Any]], None]
"""Told of what happened: unix time, kind, fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuName:
    """What a GPU is called at this time. Index and UUID are empty if nobody knows."""

    pci_bus_id: str
    gpu: str = ""
    uuid: str = ""


class XidIntake:
    """The one place where Xids come together; called by one thread."""

    def __init__(
        self,
        *,
        name_of: Callable[[str], GpuName],
        happened: Happened,
        dropped: Callable[[str, str, int], None],
    ) -> None:
        self.tallies = XidTallies(xid_table().keys())
        self._name_of = name_of
        self._happened = happened
        self._dropped = dropped
        self._logged: dict[tuple[str, str], tuple[float, int]] = {}

    def take(self, sighting: Sighting, **details: object) -> None:
        """Take an Xid as one road tells it, with what else that road says."""
        if not self.tallies.take(sighting):
            return
        label = self.tallies.label_of(sighting.code)
        if label == OTHER:
            self._dropped("xid_label", OTHER, 1)
        name = self._name_of(sighting.pci_bus_id)
        xid = xid_table().get(sighting.code)
        said = {key: value for key, value in details.items() if value not in (None, "")}
        fields = {
            "xid": sighting.code,
            "meaning": xid.meaning if xid else UNKNOWN_MEANING,
            "tier": (xid.tier if xid else Tier.TICKET).value,
            "action": xid.action.value if xid else "check_node",
            "gpu": name.gpu,
            "uuid": name.uuid,
            "pci_bus_id": sighting.pci_bus_id,
            "source": sighting.road.value,
            **said,
        }
        self._log(sighting, label, fields, xid.cause if xid else "")
        self._happened(sighting.at_unix_seconds, "xid", fields)

    def _log(
        self, sighting: Sighting, label: str, fields: Mapping[str, object], cause: str
    ) -> None:
        key = sighting.pci_bus_id, label
        now = sighting.at_monotonic_seconds
        logged_at, unsaid = self._logged.get(key, (float("-inf"), 0))
        if now - logged_at < LOG_SECONDS:
            self._logged[key] = logged_at, unsaid + 1
            return
        if key not in self._logged and len(self._logged) >= MAX_LOGGED:
            # Those of before may be told once more than they should be.
            self._logged.clear()
        self._logged[key] = now, 0
        tell = log.info if fields["tier"] == Tier.INFO.value else log.warning
        tell("Xid", **fields, cause=cause, unsaid_before=unsaid)
