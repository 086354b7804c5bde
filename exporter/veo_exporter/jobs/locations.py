# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Where a job's output lies, by the name that its sender gives it. Pure."""

import re
from typing import Final
from urllib.parse import unquote

_FILE_URL: Final = re.compile(
    r"file:(?://(?:localhost)?)?(?P<path>/(?!/).*)", re.IGNORECASE | re.DOTALL
)
# Two letters at least: one is a drive. One slash is enough: paths do not keep the second.
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


def local_name(named: str) -> str:
    """A file URL of this machine as its path; every other name as it is."""
    url = _FILE_URL.fullmatch(named)
    return unquote(url["path"]) if url else named


def is_elsewhere(name: str) -> bool:
    """Whether it is the URL of something that is no file of this machine: gs://bucket/film.mp4."""
    return _SCHEME.match(name) is not None
