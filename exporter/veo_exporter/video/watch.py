# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Folders in which finished files appear."""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from watchfiles import watch

from veo_exporter.clock import Clock
from veo_exporter.video.expectation import NOTHING, Expectation
from veo_exporter.video.request import ProbeRequest
from veo_exporter.video.settling import MOST_REMEMBERED, Look, Settling

log = structlog.get_logger(__name__)

SUFFIXES: Final = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".ts")
TICK_MILLISECONDS: Final = 500
"""How often it is seen whether a file has gone quiet."""
DEBOUNCE_MILLISECONDS: Final = 200
STEP_MILLISECONDS: Final = 20
"""Changes are told together if they follow each other within a step, but no later than this."""
MISSING_FOLDER_SECONDS: Final = 1.0
STOCK_SECONDS: Final = 0.1
"""Between two watches of a folder in which names are found by looking alone."""
_UNDECODABLE: Final = "Unable to decode path"
"""watchfiles tells of paths in UTF-8, and gives up where a name is something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder to watch, and what is known of the files in it."""

    name: str
    path: Path
    recursive: bool = True
    quiet_seconds: float = 2.0
    suffixes: tuple[str, ...] = SUFFIXES
    expectation: Expectation = NOTHING
    engine: str = ""
    variant: str = ""
    profile: str = ""

    def request(self, path: Path) -> ProbeRequest:
        return ProbeRequest(
            path=path,
            source=self.name,
            expectation=self.expectation,
            engine=self.engine,
            variant=self.variant,
            profile=self.profile,
        )


class FolderWatch:
    """Hands each finished file on, on a thread of its own. Files that are there at the start are not
    new; those in a folder that appears later are."""

    def __init__(
        self, folder: Folder, submit: Callable[[ProbeRequest], object], clock: Clock
    ) -> None:
        self._folder = folder
        self._submit = submit
        self._clock = clock
        self._settling = Settling(
            folder.quiet_seconds, lambda path: path.suffix.lower() in folder.suffixes
        )
        self._there_at_start = False
        self._stop = threading.Event()
        self.watching = threading.Event()
        """Set while changes are seen."""
        self._thread = threading.Thread(
            target=self._run, name=f"video-watch-{folder.name}", daemon=True
        )

    @property
    def unsettled(self) -> tuple[Path, ...]:
        """Files that are being written."""
        return self._settling.waiting

    def start(self) -> None:
        """What appears from now on is new."""
        self._there_at_start = self._folder.path.is_dir()
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """False if it did not end in time."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        new, told = not self._there_at_start, False
        while not self._stop.is_set():
            pause = MISSING_FOLDER_SECONDS
            try:
                self._watch(new=new)
                told = False
            except Exception as error:  # noqa: BLE001, a folder may go or be closed at any time
                if _UNDECODABLE in str(error):
                    # The stock that is taken next has the name.
                    pause = STOCK_SECONDS
                elif not told:
                    told = True
                    log.warning(
                        "folder cannot be watched, it is tried again",
                        folder=str(self._folder.path),
                        reason=str(error),
                    )
            self.watching.clear()
            new = True
            self._stop.wait(pause)

    def _watch(self, *, new: bool) -> None:
        """Until told to stop, or until the folder is another one."""
        root = self._folder.path
        identity = _identity(root)
        self._take_stock(new=new)
        for changes in watch(
            root,
            watch_filter=None,
            step=STEP_MILLISECONDS,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=TICK_MILLISECONDS,
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
            recursive=self._folder.recursive,
        ):
            if not self.watching.is_set():
                # What came after the stock was taken and before changes were seen.
                self._take_stock(new=True)
                self.watching.set()
            now = self._clock.monotonic_seconds()
            # Not every change is told: a file that is written by mapping it is looked at anyway.
            looks = {path: look_at(path) for path in self._settling.waiting}
            looks |= dict(self._look_at(Path(path) for _, path in changes))
            self._settling.change(looks, now)
            for path in self._settling.settle(now):
                self._submit(self._folder.request(path))
            if _identity(root) != identity:
                return

    def _take_stock(self, *, new: bool) -> None:
        stock = dict(self._look_at([self._folder.path]))
        if new:
            self._settling.change(stock, self._clock.monotonic_seconds())
            return
        for path, look in stock.items():
            if look is not None:
                self._settling.remember(path, look)

    def _look_at(self, paths: Iterable[Path]) -> Iterator[tuple[Path, Look | None]]:
        for path in paths:
            # A folder that appears may hold files of which no change was told.
            if path.is_dir() and not path.is_symlink():
                yield from self._look_inside(path)
            else:
                yield path, look_at(path)

    def _look_inside(self, folder: Path) -> Iterator[tuple[Path, Look | None]]:
        found = 0
        for inside, folders, names in os.walk(folder):
            if not self._folder.recursive:
                folders.clear()
            for name in names:
                yield Path(inside, name), look_at(Path(inside, name))
                if (found := found + 1) >= MOST_REMEMBERED:
                    return


def look_at(path: Path) -> Look | None:
    """What a regular file is now; None if it is gone or something else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Look((status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def _identity(folder: Path) -> tuple[int, int]:
    """Raises OSError if it is not there."""
    status = folder.stat()
    return status.st_dev, status.st_ino
