# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A log line for each change of state, and none for a tick without one."""

import structlog

from veo_exporter.gpu.codes import code_name
from veo_exporter.gpu.readings import Snapshot, State

log = structlog.get_logger(__name__)


class News:
    """Remembers what was told last."""

    def __init__(self) -> None:
        self._fault: str | None = None
        self._why_restart = ""
        self._states: dict[str, State] = {}

    def tell(self, snapshot: Snapshot) -> None:
        """Log what is different from the snapshot told before."""
        driver = snapshot.driver
        if driver.fault != self._fault:
            self._fault = driver.fault
            if driver.fault:
                tell = log.info if driver.paused else log.warning
                tell("no session with the driver", remedy=driver.fault)
            else:
                log.info("session with the driver opened", gpus=driver.visible, **driver.texts)
        if driver.why_restart and driver.why_restart != self._why_restart:
            log.warning("only a restart helps", reason=driver.why_restart)
        self._why_restart = driver.why_restart
        states = {gpu.uuid or gpu.pci_bus_id or f"index {gpu.index}": gpu for gpu in snapshot.gpus}
        for name, gpu in states.items():
            before = self._states.get(name)
            if gpu.state is before:
                continue
            tell = log.info if gpu.state is State.OK else log.warning
            tell(
                "GPU state changed",
                gpu=gpu.index,
                uuid=gpu.uuid,
                pci_bus_id=gpu.pci_bus_id,
                state=gpu.state.value,
                was=before.value if before else None,
                nvml=None if gpu.code is None else code_name(gpu.code),
            )
        self._states = {name: gpu.state for name, gpu in states.items()}
