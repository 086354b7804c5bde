# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which pods have which GPUs. The pod row is the "many" side of a join: a GPU may be shared."""

from typing import Final

from veo_exporter.catalog.gpu import GPU, UUID
from veo_exporter.catalog.gpu_mig import MIG_UUID
from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

POD_INFO: Final = MetricSpec(
    "veo_gpu_pod_info",
    Kind.GAUGE,
    Unit.INFO,
    "A container that holds the GPU, a share of it or a MIG device of it, as the kubelet says; always 1. "
    "Join on (instance, uuid) with group_left: a shared GPU has many rows.",
    (
        GPU,
        UUID,
        MIG_UUID,
        Label("pod", "name of the pod", "pods with GPUs, up to kubernetes.max_rows"),
        Label("namespace", "the pod's namespace", "namespaces with such pods"),
        Label("container", "name of the container in the pod", "containers with GPUs"),
    ),
)
POD_MAPPING_AGE: Final = MetricSpec(
    "veo_gpu_pod_mapping_age_seconds",
    Kind.GAUGE,
    Unit.SECONDS,
    "How long ago the kubelet said which pods have GPUs; absent until it did. "
    "The rows are the last it said, up to the age of kubernetes.keep.",
)
POD_MAPPING_ERRORS: Final = MetricSpec(
    "veo_gpu_pod_mapping_errors_total",
    Kind.COUNTER,
    Unit.NONE,
    "Questions to the kubelet that gave no mapping. It costs no other metric.",
    (Label("reason", "unreachable, denied, timeout, refused, garbled or too_large", "6"),),
)
POD_DEVICES_UNRESOLVED: Final = MetricSpec(
    "veo_gpu_pod_devices_unresolved",
    Kind.GAUGE,
    Unit.NONE,
    "Devices that pods hold and for which no GPU is known; they have no row.",
)
