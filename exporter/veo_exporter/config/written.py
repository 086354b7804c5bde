# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How lists, paths and switches are written, in whichever section they stand."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema


def _json_list(written: object) -> object:
    """Environment variables and flags hold a list as JSON."""
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except ValueError:
        raise ValueError(
            f'{written[:60]!r} is no list: in variables and flags write it as JSON, as ["a", "b"]'
        ) from None


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError(f"{str(path)!r} is not an absolute path")
    return path


def _on_off(written: object) -> object:
    # YAML 1.1 reads a bare on or off as a truth value.
    return {True: "on", False: "off"}[written] if isinstance(written, bool) else written


JsonList = BeforeValidator(_json_list)
"""Of a tuple: it may come as JSON too."""

AbsolutePath = Annotated[Path, AfterValidator(_absolute)]

OnOff = BeforeValidator(_on_off)
"""Of a word among which are on or off: they may come as truth values."""


def words(*allowed: object) -> WithJsonSchema:
    """The schema of such a word."""
    return WithJsonSchema({"enum": list(allowed)})
