# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of what outlives the process."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from veo_exporter.config.section import Section


def _absolute(path: Path | None) -> Path | None:
    if path is not None and not path.is_absolute():
        raise ValueError(f"{str(path)!r} is not an absolute path")
    return path


class State(Section):
    """What is kept on disk: which UUID the GPU at each PCI address had."""

    enabled: bool = Field(True, description="Whether anything is kept on disk.")
    directory: Annotated[Path | None, AfterValidator(_absolute)] = Field(
        None,
        description="Where it is kept; made if it does not exist. Unset: systemd's STATE_DIRECTORY, else "
        "/var/lib/veo-exporter if that exists and may be written to, else nothing is kept.",
    )
