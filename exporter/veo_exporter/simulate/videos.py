# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Real video files, good and defective, so that the demo has something to judge."""

import random
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger(__name__)

FPS: Final = 24
ASKED_SECONDS: Final = 6.2
FRAMES: Final = 149
"""24 frames a second for 6.2 s; the last one is shown in part."""
EXPECTATION: Final = f"fps={FPS},duration={ASKED_SECONDS}"
_SIZE: Final = "320x180"
_FRAME_TICKS: Final = 512
"""Of MP4's usual clock at 24 frames a second: 12,288 ticks a second."""
FFMPEG_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Kind:
    """One way for a file to come out; `arguments` turn the healthy film into it."""

    name: str
    suffix: str
    arguments: tuple[str, ...] = ()
    text: str = ""
    weight: int = 1


def _retimed(expression: str) -> tuple[str, ...]:
    return ("-c", "copy", "-bsf:v", f"setts={expression}")


KINDS: Final = (
    Kind("healthy", ".mp4", ("-c", "copy"), weight=12),
    Kind(
        "healthy",
        ".webm",
        ("-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "500k"),
        weight=6,
    ),
    Kind(
        "one-frame-dropped",
        ".mp4",
        ("-frames:v", str(FRAMES - 1), *_retimed(f"ts=TS+if(gte(N\\,72)\\,{_FRAME_TICKS}\\,0)")),
    ),
    Kind("stops-at-6-seconds", ".mp4", ("-frames:v", str(6 * FPS), "-c", "copy")),
    Kind(
        "duplicate-timestamps",
        ".mp4",
        _retimed(f"pts=TS+if(eq(N\\,50)\\,{_FRAME_TICKS}\\,0):dts=TS"),
    ),
    Kind(
        "variable-rate",
        ".mp4",
        _retimed(f"ts=TS+{_FRAME_TICKS // 8}*mod(N\\,2)"),
    ),
    Kind("text", ".mp4", text="503 Service Unavailable: the render node did not answer.\n" * 40),
)


class Films:
    """A folder of films, made when they are asked for; its oldest ones go. Not for several threads."""

    def __init__(self, folder: Path, *, most_files: int = 50, seed: int = 1) -> None:
        self._folder = folder
        self._most_files = most_files
        self._random = random.Random(seed)  # noqa: S311, which film comes next is no secret
        # Each kind once, so that everything is seen within minutes; by weight from then on.
        self._coming = list(KINDS)
        self._made: list[Path] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._healthy: bytes | None = None
        self._told_of_missing = False

    def make(self, stem: str) -> Path | None:
        """A film of the next kind, named so; None if there is no ffmpeg, or it was told to stop."""
        ffmpeg = shutil.which("ffmpeg")
        if ffmpeg is None:
            if not self._told_of_missing:
                self._told_of_missing = True
                log.warning(
                    "no demo videos", reason="ffmpeg is not on PATH: apt-get install ffmpeg"
                )
            return None
        try:
            made = self._make(ffmpeg, stem)
        except RuntimeError:
            if self._stopped.is_set():
                return None
            raise
        self._made.append(made)
        while len(self._made) > self._most_files:
            self._made.pop(0).unlink(missing_ok=True)
        return made

    def _make(self, ffmpeg: str, stem: str) -> Path:
        kind = (
            self._coming.pop(0)
            if self._coming
            else self._random.choices(KINDS, [kind.weight for kind in KINDS])[0]
        )
        name = f"{stem}-{kind.name}{kind.suffix}"
        with tempfile.TemporaryDirectory(prefix="veo-demo-") as workshop:
            healthy = self._lay_out_healthy(ffmpeg, Path(workshop))
            self._folder.mkdir(parents=True, exist_ok=True)
            # Hidden and with another ending until it is whole: that is how a finished file appears.
            draft = self._folder / f".{name}.partial"
            make_kind(ffmpeg, kind, healthy, draft, self._call)
            return draft.rename(self._folder / name)

    def stop(self) -> None:
        """End what is being made, from any thread; nothing is made after that."""
        self._stopped.set()
        if child := self._child:
            child.kill()

    def _lay_out_healthy(self, ffmpeg: str, workshop: Path) -> Path:
        healthy = workshop / "healthy.mp4"
        if self._healthy is None:
            make_healthy(ffmpeg, healthy, self._call)
            self._healthy = healthy.read_bytes()
        else:
            healthy.write_bytes(self._healthy)
        return healthy

    def _call(self, command: list[str]) -> None:
        child = self._child = subprocess.Popen(  # noqa: S603, our own arguments, no shell
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if self._stopped.is_set():
            child.kill()
        try:
            _, errors = child.communicate(timeout=FFMPEG_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            _, errors = child.communicate()
        if child.returncode and child.returncode != -signal.SIGKILL:
            log.warning("ffmpeg failed", reason=errors.decode("utf-8", "replace")[-300:])
        if child.returncode:
            raise RuntimeError("ffmpeg made no file")


class VideoMaker:
    """Makes a film now and then, on a thread of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        interval_seconds: float = 5.0,
        most_files: int = 50,
        seed: int = 1,
    ) -> None:
        self._films = Films(folder, most_files=most_files, seed=seed)
        self._interval = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="video-maker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """False if it did not end in time."""
        self._stop.set()
        self._films.stop()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            for number in count(1):
                if self._stop.is_set() or self._films.make(f"{number:06d}") is None:
                    return
                self._stop.wait(self._interval)
        except Exception:
            if not self._stop.is_set():
                log.exception("no more demo videos")


Call = Callable[[list[str]], None]


def make_healthy(ffmpeg: str, path: Path, call: Call) -> None:
    """The film that all others are made from: 149 frames at 24 a second, without B-frames."""
    source = f"testsrc2=size={_SIZE}:rate={FPS}"
    call(
        [
            *(ffmpeg, "-nostdin", "-v", "error", "-y", "-threads", "1"),
            *("-f", "lavfi", "-i", source, "-frames:v", str(FRAMES)),
            *("-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", str(2 * FPS)),
            *("-pix_fmt", "yuv420p", "-threads", "1", str(path)),
        ]
    )


def make_kind(ffmpeg: str, kind: Kind, healthy: Path, path: Path, call: Call) -> None:
    """One file of a kind."""
    if kind.text:
        path.write_text(kind.text)
        return
    form = {".mp4": "mp4", ".webm": "webm"}[kind.suffix]
    call(
        [
            *(ffmpeg, "-nostdin", "-v", "error", "-y", "-threads", "1", "-i", str(healthy)),
            *(*kind.arguments, "-threads", "1", "-f", form, str(path)),
        ]
    )
