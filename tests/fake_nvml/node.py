# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

"""A fake node: its driver and GPUs, and the scenario file that tells the library of them."""

import ctypes
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from .building import LIBRARY, build
from .gpu import FakeGpu, Rule, Rules, h100
from .sysfs import write_sysfs

XID_EVENT = 0x8
# The library looks at the file when it last did so a millisecond ago or longer.
_SEEN_AFTER_SECONDS = 0.0015


class FakeLibrary:
    """The fake loaded into this process, where `import pynvml` then finds it too."""

    def __init__(self, folder: Path) -> None:
        # pynvml asks the loader for the SONAME alone, which is then taken from here.
        self.library = ctypes.CDLL(str(folder / LIBRARY))
        self.library.veo_fake_nvml_sizeof.restype = ctypes.c_size_t

    def calls(self, function: str | None = None) -> int:
        """Calls of a function (of all versions of it), or of all, since the last reset."""
        name = None if function is None else function.encode()
        return int(self.library.veo_fake_nvml_calls(name))

    def structure_size(self, name: str) -> int:
        return int(self.library.veo_fake_nvml_sizeof(name.encode()))

    def use_scenario(self, path: Path | None) -> None:
        self.library.veo_fake_nvml_scenario(None if path is None else os.fsencode(path))

    def reset(self) -> None:
        """Forget sessions and counts, as if the library had just been loaded."""
        self.library.veo_fake_nvml_reset()


class FakeNode(Rules):
    """Each change is written at once, and seen by all calls that begin after it returns.

    The node's own rules concern every GPU and the functions that need none.
    """

    def __init__(
        self,
        scenario_path: Path,
        gpus: int | Sequence[FakeGpu] = 8,
        *,
        driver_version: str = "570.86.15",
        nvml_version: str = "12.570.86.15",
        driver_branch: str = "r570_00",
        cuda_version: int = 12080,
        library_directory: Path | None = None,
    ) -> None:
        self.scenario_path = scenario_path
        self.gpus: list[FakeGpu] = (
            [h100(number) for number in range(gpus)] if isinstance(gpus, int) else list(gpus)
        )
        self.driver_version = driver_version
        self.nvml_version = nvml_version
        self.driver_branch = driver_branch
        self.cuda_version = cuda_version
        self.driver_present = True
        self.generation = 1
        self.init_code = 9
        self.dead_code = 1
        self.order: list[int] | None = None
        self.events: list[tuple[int, int, int, int, int | None, int | None]] = []
        self.rules: dict[str, Rule] = {}
        self._library_directory = library_directory
        self._postponed = 0
        for number, gpu in enumerate(self.gpus):
            gpu.number = number
            gpu.on_change = self._changed
        self.write()

    @property
    def library_directory(self) -> Path:
        if self._library_directory is None:
            self._library_directory = build()
        return self._library_directory

    def _changed(self) -> None:
        if not self._postponed:
            self.write()

    @contextmanager
    def changes(self) -> Iterator[Self]:
        """Writes once, at the end."""
        self._postponed += 1
        try:
            yield self
        finally:
            self._postponed -= 1
            self._changed()

    def set(
        self,
        *,
        driver_version: str | None = None,
        nvml_version: str | None = None,
        cuda_version: int | None = None,
    ) -> Self:
        self.driver_version = driver_version or self.driver_version
        self.nvml_version = nvml_version or self.nvml_version
        self.cuda_version = cuda_version or self.cuda_version
        self._changed()
        return self

    def unload_driver(self, init_code: int = 9, dead_code: int = 1) -> Self:
        """From now on nvmlInit says `init_code`, and every open session's calls `dead_code`."""
        self.driver_present = False
        self.init_code, self.dead_code = init_code, dead_code
        self._changed()
        return self

    def load_driver(self, order: Sequence[int] | None = None) -> Self:
        """A new driver: sessions of before stay dead until they are shut down and begun anew.

        The order says which GPU each index is.
        """
        self.driver_present = True
        self.generation += 1
        self.order = None if order is None else list(order)
        self._changed()
        return self

    def send_event(
        self,
        gpu: int,
        event_type: int,
        data: int = 0,
        gpu_instance: int | None = None,
        compute_instance: int | None = None,
    ) -> Self:
        """An event for each event set in which the GPU is registered for its type."""
        sequence = len(self.events) + 1
        self.events.append((sequence, gpu, event_type, data, gpu_instance, compute_instance))
        self._changed()
        return self

    def send_xid(self, gpu: int, xid: int) -> Self:
        return self.send_event(gpu, XID_EVENT, xid)

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"driver {'present' if self.driver_present else 'absent'}"
        yield f"generation {self.generation}"
        yield f"init_code {self.init_code}"
        yield f"dead_code {self.dead_code}"
        yield f"driver_version {self.driver_version}"
        yield f"nvml_version {self.nvml_version}"
        yield f"driver_branch {self.driver_branch}"
        yield f"cuda_version {self.cuda_version}"
        yield f"gpus {len(self.gpus)}"
        if self.order is not None:
            yield f"order {' '.join(str(number) for number in self.order)}"
        # A later rule overrides an earlier one, so the node's come before those of its GPUs.
        yield from self.rule_lines("*")
        for gpu in self.gpus:
            yield from gpu.lines()
        for *numbers, gpu_instance, compute_instance in self.events:
            instances = (gpu_instance, compute_instance)
            columns = [*numbers, *("unavailable" if item is None else item for item in instances)]
            yield f"event {' '.join(str(column) for column in columns)}"

    def write(self) -> None:
        folder = self.scenario_path.parent
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".scenario-", delete=False) as new:
            new.write(self.text())
        # The kernel's file times are coarse; two quick writes must not look like the same file.
        now = time.time_ns()
        os.utime(new.name, ns=(now, now))
        Path(new.name).replace(self.scenario_path)
        time.sleep(_SEEN_AFTER_SECONDS)

    def environment(self) -> dict[str, str]:
        """Variables for a child process that shall find the fake library and this node."""
        inherited = os.environ.get("LD_LIBRARY_PATH")
        paths = [str(self.library_directory), *([inherited] if inherited else [])]
        return {
            "LD_LIBRARY_PATH": ":".join(paths),
            "FAKE_NVML_SCENARIO": str(self.scenario_path),
        }

    def attach(self) -> FakeLibrary:
        """Load the fake into this process, with this node and no session."""
        library = FakeLibrary(self.library_directory)
        library.use_scenario(self.scenario_path)
        library.reset()
        return library

    def write_sysfs(self, root: Path) -> None:
        """A fake /sys that matches the node as it now is; replaces what an earlier call wrote."""
        write_sysfs(root, self.gpus, self.driver_present)
