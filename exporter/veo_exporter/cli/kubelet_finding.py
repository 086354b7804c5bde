# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""doctor's look at the kubelet: whether it says which pods have GPUs."""

from collections.abc import Iterator
from typing import Final

from veo_exporter.app.pods import plan_of
from veo_exporter.cli.findings import Finding, Grade
from veo_exporter.config import KubernetesEnabled, Settings
from veo_exporter.kubernetes import KubeletFault, list_allocations, worth_asking

_WHAT: Final = "kubelet"


def kubelet(settings: Settings) -> Iterator[Finding]:
    """Asks as the exporter would. A mapping that fails costs no other metric: it is never worse than a warning."""
    if settings.kubernetes.enabled is KubernetesEnabled.OFF:
        yield Finding(Grade.GOOD, _WHAT, "not asked for (kubernetes.enabled is off)")
        return
    plan = plan_of(settings.kubernetes)
    if not worth_asking(plan):
        yield Finding(
            Grade.GOOD,
            _WHAT,
            f"no socket {plan.socket}: GPUs are not mapped to pods. On a Kubernetes node, mount its folder",
        )
        return
    try:
        held = list_allocations(plan)
    except KubeletFault as fault:
        yield Finding(Grade.WARNING, _WHAT, f"{fault}: GPUs are not mapped to pods", fault.remedy)
        return
    pods = {(allocation.namespace, allocation.pod) for allocation in held}
    yield Finding(Grade.GOOD, _WHAT, f"{plan.socket}: {len(pods)} pods hold {len(held)} devices")
