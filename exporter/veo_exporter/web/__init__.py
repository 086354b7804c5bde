# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The doors: HTTP in, callables of other rooms out."""

from veo_exporter.web.doors import Refusal
from veo_exporter.web.landing import Landing
from veo_exporter.web.server import OTHER_PATH, USUAL_ANSWERS, Answers, Server, build_application

__all__ = [
    "OTHER_PATH",
    "USUAL_ANSWERS",
    "Answers",
    "Landing",
    "Refusal",
    "Server",
    "build_application",
]
