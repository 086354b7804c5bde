# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the OpenTelemetry SDK logs, as lines of ours and not more of them than help.

With a Collector away it warns several times for each batch, day and night.
"""

import logging
from typing import Final

import structlog

SDK_LOGGER: Final = "opentelemetry"
SILENCE_SECONDS: Final = 300.0
"""After a message, others made from the same sentence wait so long."""
MAX_REMEMBERED: Final = 256


class SdkLog(logging.Handler):
    """Passes the SDK's records to our log, the same sentence once in a while."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[tuple[str, str], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        sentence = record.name, str(record.msg)
        last = self._said.get(sentence)
        if last is not None and 0 <= record.created - last < SILENCE_SECONDS:
            return
        if len(self._said) >= MAX_REMEMBERED:
            self._said.clear()
        self._said[sentence] = record.created
        try:
            error = record.exc_info[1] if record.exc_info else None
            more = {"error": repr(error)} if error is not None else {}
            structlog.get_logger(record.name).log(
                min(record.levelno // 10 * 10, logging.CRITICAL),
                record.getMessage(),
                logger=record.name,
                **more,
            )
        except Exception:  # noqa: BLE001, a line that cannot be written must not stop its writer
            self.handleError(record)


def take_over_sdk_log() -> None:
    """From now on the SDK's records go through ours; once for the process."""
    logger = logging.getLogger(SDK_LOGGER)
    if not any(isinstance(handler, SdkLog) for handler in logger.handlers):
        logger.addHandler(SdkLog())
        logger.propagate = False
