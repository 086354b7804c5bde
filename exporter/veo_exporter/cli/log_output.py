# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How log lines look: for people, or an object a line for log collectors."""

import logging
import sys

import structlog

from veo_exporter.config import Log, LogFormat


def set_up_logging(settings: Log) -> None:
    """Write to standard error, from this level on."""
    renderer = (
        structlog.processors.JSONRenderer()
        if settings.format is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    traceback = [structlog.processors.dict_tracebacks] if settings.format is LogFormat.JSON else []
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *traceback,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level.value),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard library; what they warn of belongs in the same stream.
    logging.basicConfig(handlers=[_Passing()], level=logging.WARNING, force=True)


class _Passing(logging.Handler):
    """Hands records of other libraries to our own output."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        logger.log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info
        )
