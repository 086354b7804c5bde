# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Xids as metric families."""

from collections.abc import Callable, Hashable, Iterable

from veo_exporter.catalog import xid as catalog
from veo_exporter.exposition import Family
from veo_exporter.gpu.xid import XidTallies
from veo_exporter.gpu.xid_intake import GpuName


class XidSource:
    """The Xids' side of the page. Rows carry the names that the GPUs have now."""

    def __init__(
        self,
        tallies: XidTallies,
        *,
        gpus: Callable[[], Iterable[GpuName]],
        watched: Callable[[GpuName], bool],
    ) -> None:
        self._tallies = tallies
        self._gpus = gpus
        self._watched = watched
        self._seeds = tuple(str(code) for code in catalog.seeded_xids())

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        return self._tallies.revision, *((gpu, self._watched(gpu)) for gpu in self._gpus())

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        counts: dict[tuple[str, str, str], int] = {}
        last: dict[tuple[str, str, str], float] = {}
        names = {gpu.pci_bus_id: gpu for gpu in self._gpus()}
        for gpu in names.values():
            if gpu.uuid and self._watched(gpu):
                # Zero says that somebody would have told us.
                counts.update({(gpu.gpu, gpu.uuid, seed): 0 for seed in self._seeds})
        for address, tallies in self._tallies.by_gpu.items():
            gpu = names.get(address) or GpuName(pci_bus_id=address)
            for label, tally in tallies.items():
                # GPUs that nobody knows a name of share their rows.
                row = gpu.gpu, gpu.uuid, label
                counts[row] = counts.get(row, 0) + tally.count
                last[row] = max(last.get(row, 0.0), tally.last_unix_seconds)
        yield Family(catalog.XID_ERRORS, list(counts.items()))
        yield Family(catalog.XID_LAST_SEEN, list(last.items()))
