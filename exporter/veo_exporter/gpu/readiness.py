# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What of the GPUs is withdrawn now, in words."""

from veo_exporter.gpu.readings import Cadence, Snapshot, State


def withdrawn_groups(snapshot: Snapshot, now_monotonic_seconds: float) -> list[str]:
    """A sentence for each thing that a complete page would have and this one has not."""
    if snapshot.driver.fault:
        return [f"GPUs: {snapshot.driver.fault}"]
    if snapshot.outdated(now_monotonic_seconds):
        return ["GPUs: the sampler has said nothing for too long: restart the exporter"]
    sentences = []
    if snapshot.driver.why_restart:
        sentences.append(f"GPUs: {snapshot.driver.why_restart}")
    visible = snapshot.driver.visible
    if visible is None:
        sentences.append("GPUs: NVML does not say how many there are: veo_gpus_visible withdrawn")
    for gpu in snapshot.gpus:
        name = f"GPU {gpu.index if gpu.index is not None else '?'} ({gpu.uuid or gpu.pci_bus_id or 'no name'})"
        shown = {
            reading.cadence
            for reading in gpu.readings
            if not snapshot.withdrawn(reading, now_monotonic_seconds)
        }
        absent = [cadence.value for cadence in Cadence if cadence not in shown]
        if gpu.state is not State.OK:
            sentences.append(f"{name}: {gpu.state.value}")
        elif absent:
            sentences.append(f"{name}: {', '.join(absent)} withdrawn")
    return sentences
