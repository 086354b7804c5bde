# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The device nodes /dev/nvidia*, through which NVML reaches the driver.

A container loses them, or the right to open them, when systemd or the runtime writes its device
cgroup anew. NVML then answers UNKNOWN (999) to everything, and does so until the process ends.
"""

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONTROL: Final = "nvidiactl"
_NODE: Final = re.compile(r"nvidia(ctl|[0-9]+)")
# The driver of Windows' Linux subsystem has this node and none of the others.
_OTHER_DRIVER: Final = "dxg"
_REFUSALS: Final = (errno.EPERM, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes at one time. `control` is the one that every session opens."""

    control: Path
    present: frozenset[str]
    refused: bool = False
    """Whether the operating system does not let us open the control node."""
    expected: bool = True
    """False where the driver is reached by another way."""


def look_at_nodes(folder: Path, open_node: Callable[[Path, int], int] = os.open) -> Nodes:
    """Which nodes are there, and whether they may be opened.

    Only the control node is opened: opening a GPU's can take seconds, and wakes it.
    """
    control = folder / CONTROL
    try:
        names = frozenset(node.name for node in folder.iterdir() if _NODE.fullmatch(node.name))
        expected = CONTROL in names or not (folder / _OTHER_DRIVER).exists()
    except OSError:
        return Nodes(control, frozenset(), expected=False)
    refused = False
    if CONTROL in names:
        try:
            # Rights alone do not tell: what a device cgroup denies, only opening shows.
            os.close(open_node(control, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            refused = error.errno in _REFUSALS
    return Nodes(control, names, refused, expected)


def why_restart(before: frozenset[str], nodes: Nodes) -> str:
    """Why UNKNOWN (999) will last until this process ends; empty if the nodes do not explain it.

    `before` are the nodes that were there while NVML answered.
    """
    folder = nodes.control.parent
    if nodes.refused:
        what = f"the operating system no longer lets us open {nodes.control}"
    else:
        wanted = before | ({CONTROL} if nodes.expected else frozenset())
        gone = sorted(wanted - nodes.present)
        if not gone:
            return ""
        what = f"the device nodes are gone: {', '.join(str(folder / name) for name in gone)}"
    return (
        f"NVML answers UNKNOWN (999), and {what}; NVML does not find its way back, so only a restart of "
        "the exporter (of its container, which then gets the nodes again) helps"
    )
