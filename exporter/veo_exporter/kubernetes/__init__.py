# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes: which pods have which GPUs, by the kubelet's pod-resources API.

One answer's way, in this order: call (gRPC on a unix socket), wire and allocations (bytes to who has
what), devices (device ids to GPUs), families (the page). watch asks again and again and keeps the last
answer. HTTP/2 is imported with the first question only: who has no kubelet does not pay for it.
"""

from veo_exporter.kubernetes.allocations import Allocation
from veo_exporter.kubernetes.devices import GpuIdentity, MigIdentity
from veo_exporter.kubernetes.families import PodSource
from veo_exporter.kubernetes.faults import Cause, KubeletFault
from veo_exporter.kubernetes.watch import Answer, Plan, PodWatch, list_allocations, worth_asking

__all__ = [
    "Allocation",
    "Answer",
    "Cause",
    "GpuIdentity",
    "KubeletFault",
    "MigIdentity",
    "Plan",
    "PodSource",
    "PodWatch",
    "list_allocations",
    "worth_asking",
]
