# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Everything, wired."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog

import veo_exporter
from veo_exporter.app.node import DROPPED_SEEDS as NODE_DROPPED
from veo_exporter.app.node import Hardware, Node
from veo_exporter.app.reloading import Changeable, refuse_what_needs_a_restart
from veo_exporter.app.surroundings import Surroundings
from veo_exporter.app.work import DROPPED_SEEDS as WORK_DROPPED
from veo_exporter.app.work import Work
from veo_exporter.catalog import exporter as catalog
from veo_exporter.clock import Clock
from veo_exporter.config import Settings
from veo_exporter.errors import BadConfig
from veo_exporter.exposition import Folds, OwnSource, Page, Source
from veo_exporter.web import (
    MAX_BODY_BYTES,
    OTHER_PATH,
    USUAL_ANSWERS,
    Answers,
    Landing,
    Refusal,
    Server,
    build_application,
    events_handler,
)

log = structlog.get_logger(__name__)


class App:
    """One exporter. Two can live in one process."""

    def __init__(
        self,
        settings: Settings,
        *,
        hardware: Hardware,
        read_settings: Callable[[], Settings],
        clock: Clock,
        log_lines_dropped: Callable[[], int] = lambda: 0,
        watching: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self._max_batch = settings.jobs.max_batch
        self._clock = clock
        self._simulated = hardware.simulated
        self._read_settings = read_settings
        self._own = OwnSource(
            simulated=hardware.simulated,
            configured_unix_seconds=clock.unix_seconds(),
            log_lines_dropped=log_lines_dropped,
        )
        self._failed_parts: set[str] = set()
        # Made anew once a second, lest each scrape that is counted make the page anew.
        self._folds = Folds(refresh_seconds=1.0)
        self._dropped = self._folds.counter(
            catalog.DROPPED,
            [
                ("page_part", "failed"),
                *(("http_request", refusal.value) for refusal in Refusal),
                *NODE_DROPPED,
                *WORK_DROPPED,
            ],
        )
        self._requests = self._folds.counter(catalog.HTTP_REQUESTS, USUAL_ANSWERS)
        self._node = Node(settings, hardware, self._drop, clock)
        self._work = Work(
            settings,
            Surroundings(
                folds=self._folds,
                drop=self._drop,
                clock=clock,
                simulated=hardware.simulated,
                gpu_uuid=self._node.gpu_uuid,
                watching=watching,
            ),
        )
        own = (self._folds, self._own)
        self._page = Page((*self._node.sources, *self._work.sources, *own), self._part_failed)
        self.server = Server(build_application(self._answers()))

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop. Raises ListenFailed."""
        async with AsyncExitStack() as lifetimes:
            # First of all: if the address is taken, the driver need not be touched.
            lifetimes.push_async_callback(self.server.stop)
            await self.server.start(self.settings.web.listen_address, self.settings.web.unix_socket)
            self._work.start()
            lifetimes.push_async_callback(self._work.stop)
            self._node.start()
            lifetimes.push_async_callback(self._node.stop)
            log.info(
                "serving",
                url=f"http://localhost:{self.server.port}/",
                port=self.server.port,
                unix_socket=self.settings.web.unix_socket and str(self.settings.web.unix_socket),
                version=veo_exporter.__version__,
                simulated=self._simulated,
            )
            await stop.wait()
            log.info("ending")

    def feed(self, body: bytes) -> None:
        """Take events of jobs as if they had been posted; from any thread, once it runs."""
        self._work.feed(body)

    async def reload(self) -> None:
        """Read the configuration again. Raises BadConfig, and then everything stays as it was."""
        try:
            settings = self._read_settings()
            refuse_what_needs_a_restart(self.settings, settings)
            # Made before any room is touched: a reload holds whole, or not at all.
            parts = Changeable.of(settings)
        except BadConfig as error:
            self._own.reloaded(False, self._clock.unix_seconds())
            log.error("configuration refused, the old one stays", faults=error.faults)
            raise
        self.settings = settings
        self._max_batch = parts.max_batch
        self._work.reconfigure(parts)
        self._node.reconfigure(parts)
        self._own.reloaded(True, self._clock.unix_seconds())
        log.info("configuration reloaded")

    def _answers(self) -> Answers:
        now = self._clock.monotonic_seconds
        return Answers(
            server_name=f"veo-exporter/{veo_exporter.__version__}",
            simulated=self._simulated,
            metrics=lambda accept, encoding: self._page.answer(now(), accept, encoding),
            unhealthy=self._unhealthy,
            withdrawn=self._node.withdrawn,
            landing=lambda: Landing(
                version=veo_exporter.__version__,
                node=socket.gethostname(),
                simulated=self._simulated,
                gpus_watched=self.settings.gpu.enabled,
                snapshot=self._node.latest,
                withdrawn=self._node.withdrawn(),
                now_monotonic_seconds=now(),
            ),
            advice=self._node.advice.document,
            reload=self.reload,
            pause=self._node.pauses.pause,
            resume=self._node.pauses.resume,
            events=events_handler(
                self._work.intake,
                max_body_bytes=MAX_BODY_BYTES,
                max_batch=lambda: self._max_batch,
            ),
            count_request=lambda path, status: self._requests.labels(
                path or OTHER_PATH, str(status)
            ).inc(),
            count_refusal=lambda refusal: self._drop("http_request", refusal.value, 1),
        )

    def _drop(self, kind: str, reason: str, count: int) -> None:
        self._dropped.labels(kind, reason).inc(count)

    def _part_failed(self, source: Source) -> None:
        name = type(source).__name__
        self._drop("page_part", "failed", 1)
        if name not in self._failed_parts:
            self._failed_parts.add(name)
            log.error("a part of the page is left out", source=name, exc_info=True)  # noqa: LOG014, called in one

    def _unhealthy(self) -> str:
        return self._node.unhealthy() or self._work.unhealthy()
