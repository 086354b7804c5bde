# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The doors: HTTP in, callables of other rooms out."""

from veo_exporter.web.doors import Refusal
from veo_exporter.web.events import events_handler
from veo_exporter.web.landing import Landing
from veo_exporter.web.server import (
    MAX_BODY_BYTES,
    OTHER_PATH,
    USUAL_ANSWERS,
    Answers,
    Server,
    build_application,
)

__all__ = [
    "MAX_BODY_BYTES",
    "OTHER_PATH",
    "USUAL_ANSWERS",
    "Answers",
    "Landing",
    "Refusal",
    "Server",
    "build_application",
    "events_handler",
]
