# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures for whoever needs a whole node."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.fake_nvml import FakeNode

StartDaemon = Callable[..., Daemon]

QUICK = [
    "--gpu.fast-interval=100ms",
    "--gpu.full-interval=1s",
    "--gpu.static-interval=5s",
    "--gpu.window=5s",
    "--gpu.call-deadline=1s",
    "--gpu.start-deadline=3s",
]
"""Intervals at which a test need not wait; nothing else is changed. The deadlines are longer than a
busy machine keeps a thread waiting, or a GPU that is well would be called hung."""
CALL_DEADLINE_SECONDS = 1.0


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    """Eight fake GPUs behind a real libnvidia-ml.so.1, with the PCI bus to match."""
    node = FakeNode(tmp_path / "scenario", gpus=8)
    node.write_sysfs(tmp_path / "sys")
    return node


@pytest.fixture
def start(node: FakeNode, tmp_path: Path) -> Iterator[StartDaemon]:
    """Starts exporters on the fake node; they are gone when the test ends."""
    with ExitStack() as running:

        def start_daemon(*arguments: str, **environment: str) -> Daemon:
            command = ["serve", *QUICK, f"--gpu.sysfs-root={tmp_path / 'sys'}", *arguments]
            return running.enter_context(Daemon(command, {**node.environment(), **environment}))

        yield start_daemon
