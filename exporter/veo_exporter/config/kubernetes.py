# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of how pods are mapped to GPUs."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from veo_exporter.config.quantities import Duration
from veo_exporter.config.section import Section
from veo_exporter.config.written import AbsolutePath, JsonList, OnOff, words

_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9_.-]{0,63}")


class KubernetesEnabled(StrEnum):
    """Whether the kubelet is asked."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


def _prefixes(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    for prefix in prefixes:
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(
                f"{prefix[:100]!r} is no beginning of a resource's name: write nvidia.com/ or nvidia.com/gpu"
            )
    return prefixes


class Kubernetes(Section):
    """Which pods have which GPUs, as the kubelet of this node says."""

    enabled: Annotated[
        KubernetesEnabled,
        OnOff,
        words("auto", "on", "off", True, False),
    ] = Field(
        KubernetesEnabled.AUTO,
        description="auto: the kubelet is asked as soon as its socket is there. on: a socket that is not there is "
        "a fault, counted in veo_gpu_pod_mapping_errors_total. off: it is never asked.",
    )
    kubelet_socket: AbsolutePath = Field(
        Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
        description="Socket of the kubelet's pod-resources API; open to root alone.",
    )
    interval: Duration = Field(
        10,
        ge=1,
        le=600,
        description="How often the kubelet is asked; after failures ever less often, down to once a minute.",
    )
    deadline: Duration = Field(
        5, ge=0.1, le=60, description="How long the kubelet may take for its whole answer."
    )
    keep: Duration = Field(
        3600,
        ge=1,
        le=86400,
        description="How long the last mapping is shown while the kubelet gives no other.",
    )
    resource_prefixes: Annotated[tuple[str, ...], JsonList, AfterValidator(_prefixes)] = Field(
        ("nvidia.com/",),
        description="How the names of those resources begin whose devices are GPUs. Claims of the dynamic driver "
        "gpu.nvidia.com are always read.",
    )
    max_rows: int = Field(
        512,
        ge=1,
        le=20000,
        description="Most rows of veo_gpu_pod_info; what is beyond is counted in veo_exporter_dropped_total, "
        "kind gpu_pod_row.",
    )
    max_answer_bytes: int = Field(
        64 * 1024 * 1024,
        ge=4096,
        le=1024 * 1024 * 1024,
        description="Largest answer of the kubelet that is taken; ten thousand pods are some 10 MB.",
    )
