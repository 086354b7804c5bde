# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which UUID the GPU at a PCI address had, kept on disk: a GPU that is lost can no longer be asked."""

import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

from veo_exporter.gpu.readings import GpuView

log = structlog.get_logger(__name__)

FILE_NAME: Final = "gpus.json"
MAX_GPUS: Final = 256
MAX_BYTES: Final = 1 << 16
_SCHEMA: Final = 1
_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_UUID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,80}")


class BadMemory(ValueError):
    """The file is not what we wrote."""


def name_from_memory(gpus: Iterable[GpuView], remembered: Mapping[str, str]) -> list[GpuView]:
    """Give GPUs that have no readable UUID the one they had. A UUID that another GPU bears now is not
    theirs: boards are moved from slot to slot."""
    gpus = list(gpus)
    taken = {gpu.uuid for gpu in gpus}
    named = []
    for gpu in gpus:
        uuid = "" if gpu.uuid else remembered.get(gpu.pci_bus_id, "")
        if uuid and uuid not in taken:
            taken.add(uuid)
            gpu = replace(gpu, uuid=uuid)  # noqa: PLW2901
        named.append(gpu)
    return named


def read_memory(written: bytes) -> dict[str, str]:
    """UUID by PCI address. Raises BadMemory."""
    if len(written) > MAX_BYTES:
        raise BadMemory(f"it is larger than {MAX_BYTES} bytes")
    try:
        content: Any = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise BadMemory(f"it is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
        raise BadMemory(f"it does not say that its schema is {_SCHEMA}")
    gpus = content.get("gpus")
    if not isinstance(gpus, dict) or len(gpus) > MAX_GPUS:
        raise BadMemory(f"it has no list of at most {MAX_GPUS} GPUs")
    for address, uuid in gpus.items():
        if not (isinstance(uuid, str) and _ADDRESS.fullmatch(address) and _UUID.fullmatch(uuid)):
            raise BadMemory(f"{address!r}: {uuid!r} is not a PCI address with a UUID")
    return dict(gpus)


def write_memory(gpus: Mapping[str, str]) -> bytes:
    """What `read_memory` reads back."""
    return (json.dumps({"schema": _SCHEMA, "gpus": dict(gpus)}, indent=1) + "\n").encode()


class AddressMemory:
    """The file, and what stands in it. `gpus` is replaced as a whole and may be read from any thread.

    Written on a thread of its own: a disk that does not answer must not keep who samples.
    """

    def __init__(self, folder: Path, failed: Callable[[], None] = lambda: None) -> None:
        self._path = folder / FILE_NAME
        self._failed = failed
        self._changed = threading.Condition()
        self._written: Mapping[str, str] = {}
        self._writing = False
        self.gpus: Mapping[str, str] = self._load()
        self._written = self.gpus

    def learn(self, seen: Mapping[str, str]) -> None:
        """GPUs that were read just now; writes if that is news."""
        if all(self.gpus.get(address) == uuid for address, uuid in seen.items()):
            return
        # A board has one slot: what stands under another address is out of date.
        moved = set(seen.values())
        kept = {
            address: uuid
            for address, uuid in self.gpus.items()
            if address not in seen and uuid not in moved
        }
        known = {**kept, **seen}
        with self._changed:
            self.gpus = dict(list(known.items())[-MAX_GPUS:])
            if self._writing:
                return
            self._writing = True
        threading.Thread(target=self._write_until_current, name="gpu-memory", daemon=True).start()

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until the file says what is known, but no longer than this."""
        with self._changed:
            return self._changed.wait_for(lambda: self._written is self.gpus, timeout_seconds)

    def _write_until_current(self) -> None:
        while True:
            with self._changed:
                gpus = self.gpus
                if self._written is gpus:
                    self._writing = False
                    return
            try:
                self._write(write_memory(gpus))
            except OSError as error:
                self._failed()
                log.warning(
                    "GPUs cannot be remembered on disk",
                    file=str(self._path),
                    reason=error.strerror or str(error),
                    remedy="free space, or give the exporter the right to write there (state.directory)",
                )
            with self._changed:
                self._written = gpus
                self._changed.notify_all()

    def _write(self, content: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{FILE_NAME}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _load(self) -> dict[str, str]:
        try:
            with self._path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            return read_memory(content)
        except FileNotFoundError:
            return {}
        except BadMemory as error:
            self._set_aside(str(error))
        except OSError as error:
            self._failed()
            log.warning(
                "remembered GPUs cannot be read", file=str(self._path), reason=error.strerror
            )
        return {}

    def _set_aside(self, reason: str) -> None:
        self._failed()
        aside = self._path.with_suffix(".corrupt")
        try:
            self._path.replace(aside)
        except OSError as error:
            reason = f"{reason}; it cannot be renamed either: {error.strerror}"
        log.warning(
            "the file of remembered GPUs is corrupt; it is set aside, and made anew from what is read",
            file=str(self._path),
            set_aside_as=str(aside),
            reason=reason,
        )
