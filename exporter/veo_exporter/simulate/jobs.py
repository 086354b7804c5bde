# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The events of jobs that nobody asked for, good and bad, so that the demo has something to count."""

import heapq
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import structlog

log = structlog.get_logger(__name__)

ENGINE: Final = "veo-engine"
LOST_AFTER_SECONDS: Final = 30
"""What the demo sets: its engine gives a sign of life every ten seconds."""
HEARTBEAT_SECONDS: Final = 10.0
JOBS_A_MINUTE: Final = 8.0
HISTORY_SECONDS: Final = 150.0
"""So much has happened when the demo begins, so that nothing on a dashboard is empty at first."""

Event = dict[str, Any]
Film = Callable[[str], Path | None]
"""Makes the file that a job of this name has written; None if it cannot."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model and how long it takes, for a picture of 720 lines, to make a second of film."""

    name: str
    seconds_a_second: float
    memory_gib: float
    weight: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What is asked for, and how much more work that is than 720 lines."""

    width: int
    height: int
    fps: float
    seconds: float
    work: float
    weight: int


@dataclass(frozen=True, slots=True)
class Story:
    """One way for a job to go; `breaks` is the stage in which it ends, if none is the last."""

    name: str
    end: Event
    breaks: str = ""
    retries: int = 0
    weight: int = 1


MODELS: Final = (
    Model("veo-fast", 1.2, 22, 6),
    Model("veo-base", 3.0, 38, 4),
    Model("veo-large", 4.2, 61, 2),
)
PROFILES: Final = (
    Profile(1280, 720, 24, 6.2, 1.0, 6),
    Profile(1920, 1080, 24, 6.2, 1.4, 5),
    Profile(3840, 2160, 24, 6.2, 2.2, 1),
    # More frames than the engine is made for at this size.
    Profile(1280, 720, 60, 6.2, 1.5, 1),
)


def _failed(code: str, message: str, **more: Any) -> Event:
    return {"outcome": "failed", "error": {"code": code, "message": message}, **more}


_UPSTREAM_503: Final = _failed("503", "Service Unavailable: the render node did not answer")
SILENT: Final[Event] = {}
"""The end of a job that has none."""
STORIES: Final = (
    Story("success", {"outcome": "success"}, weight=60),
    Story("retried", {"outcome": "success"}, retries=1, weight=5),
    Story("upstream", _UPSTREAM_503, breaks="render", retries=2, weight=3),
    Story(
        "timeout",
        {"outcome": "timeout", "reason": "deadline_engine", "stage": "denoise"},
        breaks="denoise",
        weight=2,
    ),
    Story(
        "device-lost",
        {"outcome": "aborted", "reason": "device_lost", "stage": "denoise", "frame": 61},
        breaks="denoise",
        weight=2,
    ),
    Story("empty", {"outcome": "success", "outputs": []}),
    Story("filtered", {"outcome": "filtered", "outputs": [], "filtered_count": 1}, weight=2),
    Story("cancelled", {"outcome": "cancelled"}, breaks="queue", weight=2),
    Story("lost", SILENT, breaks="render"),
)


class JobMaker:
    """Tells of jobs as time goes on, on a thread of its own."""

    def __init__(
        self,
        feed: Callable[[bytes], None],
        *,
        film: Film = lambda job: None,
        seed: int = 1,
    ) -> None:
        self._feed = feed
        self._film = film
        self._seed = seed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job-maker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """False if it did not end in time."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        # Ages of jobs are no matter of the wall clock being set.
        begin_monotonic = time.monotonic() - HISTORY_SECONDS
        begin_unix = time.time() - HISTORY_SECONDS
        try:
            for at, event in events(self._seed):
                if self._stop.wait(max(0.0, begin_monotonic + at - time.monotonic())):
                    return
                told = self._with_output(event) | {"time": _written(begin_unix + at)}
                self._feed(json.dumps(told).encode())
        except Exception:
            log.exception("no more demo jobs")

    def _with_output(self, event: Event) -> Event:
        """What a job that succeeded has written is named by its end, and is there by then."""
        data = event["data"]
        if data.get("outcome") != "success" or "outputs" in data:
            return event
        try:
            path = self._film(event["subject"])
        except Exception:
            # One that is ended halfway fails, too.
            if not self._stop.is_set():
                log.exception("a demo job is left without its film", job=event["subject"])
            return event
        if path is None:
            return event
        output = {"path": str(path), "bytes": path.stat().st_size}
        return event | {"data": data | {"outputs": [output]}}


def events(seed: int) -> Iterator[tuple[float, Event]]:
    """Every event and its second, in the order of time, without end and without their times."""
    chance = random.Random(seed)  # noqa: S311, which job comes next is no secret
    told: list[tuple[float, int, Event]] = []
    tie = count()
    submitted = 0.0
    for number in count(1):
        for at, event in _job(chance, _story(chance, number), number):
            heapq.heappush(told, (submitted + at, next(tie), event))
        submitted += chance.uniform(0.5, 1.5) * 60 / JOBS_A_MINUTE
        while told and told[0][0] <= submitted:
            at, _, event = heapq.heappop(told)
            yield at, event


def _story(chance: random.Random, number: int) -> Story:
    # Each once, so that everything is seen within minutes; by weight from then on.
    if number <= len(STORIES):
        return STORIES[number - 1]
    return chance.choices(STORIES, [story.weight for story in STORIES])[0]


def _job(chance: random.Random, story: Story, number: int) -> Iterator[tuple[float, Event]]:
    model = chance.choices(MODELS, [model.weight for model in MODELS])[0]
    profile = chance.choices(PROFILES, [profile.weight for profile in PROFILES])[0]
    numbers = count(1)
    job = f"demo-{number:06d}"
    trace = f"00-{chance.getrandbits(128) | 1:032x}-{chance.getrandbits(64) | 1:016x}-01"

    def said(kind: str, **data: Any) -> Event:
        return {
            "specversion": "1.0",
            "id": f"{job}/{next(numbers)}",
            "source": "veo-exporter/demo",
            "type": f"veo.job.{kind}",
            "subject": job,
            "traceparent": trace,
            "data": data,
        }

    yield (
        0.0,
        said(
            "submitted",
            engine=ENGINE,
            model=model.name,
            request={
                "width": profile.width,
                "height": profile.height,
                "fps": profile.fps,
                "duration_s": profile.seconds,
                "prompt_chars": chance.randint(16, 400),
                "batch_size": 1,
            },
        ),
    )
    gpu = str(number % 8)
    at, attempt = 0.0, 0
    for stage, seconds in _stages(chance, model, profile):
        if stage == "prompt":
            yield at, said("started", gpus=[gpu])
        while attempt < story.retries and stage == "render":
            attempt += 1
            at += 2.0
            yield at, said("retry", reason="upstream_503", attempt=attempt, delay_s=2.0)
        broken = stage == story.breaks
        lasts = seconds * chance.uniform(0.3, 0.9) if broken else seconds
        for beat in range(1, int(lasts / HEARTBEAT_SECONDS) + 1):
            yield at + beat * HEARTBEAT_SECONDS, said("heartbeat")
        at += lasts
        if broken:
            break
        yield at, said("stage", stage=stage, duration_s=round(lasts, 4))
    if story.end is SILENT:
        return
    peak = int(model.memory_gib * chance.uniform(0.9, 1.1) * 2**30)
    yield at, said("finished", **story.end, gpu_memory_peak_bytes=peak)
    if story.end == {"outcome": "success"}:
        scores = {"vmaf": _score(chance, 91), "clip": _score(chance, 78)}
        yield at + chance.uniform(1.0, 4.0), said("evaluated", scores=scores)


def _stages(chance: random.Random, model: Model, profile: Profile) -> Iterator[tuple[str, float]]:
    work = model.seconds_a_second * profile.seconds * profile.work
    for stage, seconds in (
        ("queue", 2.0),
        # Both of these are at times over their budgets: 25 ms and 6.8 s.
        ("prompt", 0.016),
        ("denoise", 0.7 * work),
        ("vae_decode", 0.12 * work),
        ("render", 4.5),
        ("encode_mux", 0.8),
        ("upload", 0.5),
    ):
        yield stage, seconds * chance.lognormvariate(0, 0.25)


def _score(chance: random.Random, usual: float) -> float:
    return round(min(100.0, max(0.0, chance.gauss(usual, 4))), 2)


def _written(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="milliseconds")
