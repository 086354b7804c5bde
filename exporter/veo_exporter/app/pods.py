# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Pods wired: the kubelet's answers and the GPUs' snapshot to rows."""

from collections.abc import Callable, Iterator
from typing import Final

from veo_exporter.catalog.gpu_mig import MIG_INFO
from veo_exporter.clock import Clock
from veo_exporter.config import Kubernetes, KubernetesEnabled
from veo_exporter.exposition import Source
from veo_exporter.gpu import GpuView, Snapshot
from veo_exporter.kubernetes import GpuIdentity, MigIdentity, Plan, PodSource, PodWatch

DROPPED_SEEDS: Final = (("gpu_pod_row", "too_many"),)
"""What is dropped here, as (kind, reason)."""


class Pods:
    """Asks the kubelet, if it is to be asked."""

    def __init__(
        self,
        settings: Kubernetes,
        latest: Callable[[], Snapshot],
        drop: Callable[[str, str, int], None],
        clock: Clock,
        *,
        simulated: bool,
    ) -> None:
        # Real pods beside made-up GPUs would look real.
        self._on = settings.enabled is not KubernetesEnabled.OFF and not simulated
        self._watch = PodWatch(plan_of(settings), clock)
        self._latest = latest
        self._named: tuple[Snapshot | None, tuple[GpuIdentity, ...]] = (None, ())
        self._source = PodSource(
            lambda: self._watch.latest,
            lambda: self._watch.plan,
            self._gpus,
            lambda rows: drop(*DROPPED_SEEDS[0], rows),
        )

    def _gpus(self) -> tuple[GpuIdentity, ...]:
        # Every scrape asks, and a snapshot is the newest for a second.
        snapshot = self._latest()
        known, gpus = self._named
        if known is not snapshot:
            gpus = gpus_of(snapshot)
            self._named = snapshot, gpus
        return gpus

    @property
    def sources(self) -> tuple[Source, ...]:
        """The pods' side of the page."""
        return (self._source,) if self._on else ()

    def start(self) -> None:
        if self._on:
            self._watch.start()

    def stop(self) -> None:
        self._watch.stop()

    def reconfigure(self, plan: Plan) -> None:
        """Take other settings; they hold from the next question on."""
        self._watch.reconfigure(plan)


def plan_of(settings: Kubernetes) -> Plan:
    """How the kubelet is asked, as the settings say it."""
    return Plan(
        socket=settings.kubelet_socket,
        only_if_there=settings.enabled is KubernetesEnabled.AUTO,
        interval_seconds=settings.interval,
        deadline_seconds=settings.deadline,
        keep_seconds=settings.keep,
        resource_prefixes=settings.resource_prefixes,
        max_rows=settings.max_rows,
        max_answer_bytes=settings.max_answer_bytes,
    )


def gpus_of(snapshot: Snapshot) -> tuple[GpuIdentity, ...]:
    """The GPUs under the names that device plugins give them."""
    return tuple(
        GpuIdentity(
            index=gpu.index,
            uuid=gpu.uuid,
            minor=_number(gpu.texts.get("minor_number")),
            mig=tuple(_mig_devices(gpu)),
        )
        for gpu in snapshot.gpus
        if gpu.uuid
    )


def _mig_devices(gpu: GpuView) -> Iterator[MigIdentity]:
    for reading in gpu.readings:
        for spec, labels, _ in reading.rows:
            if spec is MIG_INFO:
                mig_uuid, _profile, gpu_instance, _compute_instance = labels
                yield MigIdentity(mig_uuid, int(gpu_instance))


def _number(written: str | None) -> int | None:
    return int(written) if written is not None and written.isdecimal() else None
