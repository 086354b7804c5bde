# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How log lines look: for people, or an object a line for log collectors."""

import logging
import sys
from typing import Final, TextIO, cast

import structlog
import structlog.tracebacks

from veo_exporter.cli.patient_stream import PatientStream
from veo_exporter.config import Log, LogFormat

_TRACEBACKS_AS_OBJECTS: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


def set_up_logging(settings: Log) -> PatientStream:
    """Write to standard error, from this level on; gives the stream, which nobody waits for."""
    stream = PatientStream(sys.stderr)
    # Tracebacks without the values of local variables, which may be anything, secrets too.
    renderer = (
        structlog.processors.JSONRenderer()
        if settings.format is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    traceback = [_TRACEBACKS_AS_OBJECTS] if settings.format is LogFormat.JSON else []
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *traceback,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level.value),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", stream)),
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard library; what they warn of belongs in the same stream.
    logging.basicConfig(handlers=[_Passing()], level=logging.WARNING, force=True)
    return stream


class _Passing(logging.Handler):
    """Hands records of other libraries to our own output."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        # A library's own levels count as the named one below: 35 is a warning.
        level = min(record.levelno // 10 * 10, logging.CRITICAL)
        try:
            logger.log(level, record.getMessage(), logger=record.name, exc_info=record.exc_info)
        except Exception:  # noqa: BLE001, a line that cannot be written must not stop its writer
            self.handleError(record)
