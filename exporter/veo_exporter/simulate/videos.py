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


class VideoMaker:
    """Makes a file now and then, on a thread of its own, and takes the oldest of its own away."""

    def __init__(
        self,
        folder: Path,
        *,
        interval_seconds: float = 5.0,
        most_files: int = 50,
        seed: int = 1,
    ) -> None:
        self._folder = folder
        self._interval = interval_seconds
        self._most_files = most_files
        self._random = random.Random(seed)  # noqa: S311, which film comes next is no secret
        self._made: list[Path] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="video-maker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """False if it did not end in time."""
        self._stop.set()
        if child := self._child:
            child.kill()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        ffmpeg = shutil.which("ffmpeg")
        if ffmpeg is None:
            log.warning("no demo videos", reason="ffmpeg is not on PATH: apt-get install ffmpeg")
            return
        try:
            with tempfile.TemporaryDirectory(prefix="veo-demo-") as workshop:
                self._make_for_ever(ffmpeg, Path(workshop))
        except Exception:
            if not self._stop.is_set():
                log.exception("no more demo videos")

    def _make_for_ever(self, ffmpeg: str, workshop: Path) -> None:
        healthy = workshop / "healthy.mp4"
        make_healthy(ffmpeg, healthy, self._call)
        self._folder.mkdir(parents=True, exist_ok=True)
        # Each kind once, so that everything is seen within a minute; by weight from then on.
        coming = list(KINDS)
        number = 0
        while not self._stop.is_set():
            kind = (
                coming.pop(0)
                if coming
                else self._random.choices(KINDS, [kind.weight for kind in KINDS])[0]
            )
            number += 1
            name = f"{number:06d}-{kind.name}{kind.suffix}"
            # Hidden and with another ending until it is whole: that is how a finished file appears.
            draft = self._folder / f".{name}.partial"
            make_kind(ffmpeg, kind, healthy, draft, self._call)
            self._made.append(draft.rename(self._folder / name))
            while len(self._made) > self._most_files:
                self._made.pop(0).unlink(missing_ok=True)
            self._stop.wait(self._interval)

    def _call(self, command: list[str]) -> None:
        child = self._child = subprocess.Popen(  # noqa: S603, our own arguments, no shell
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if self._stop.is_set():
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
