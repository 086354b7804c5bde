# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of what outlives the process."""

from pydantic import Field

from veo_exporter.config.section import Section
from veo_exporter.config.written import AbsolutePath


class State(Section):
    """What is kept on disk: which UUID the GPU at each PCI address had."""

    enabled: bool = Field(True, description="Whether anything is kept on disk.")
    directory: AbsolutePath | None = Field(
        None,
        description="Where it is kept; made if it does not exist. Unset: systemd's STATE_DIRECTORY, else "
        "/var/lib/veo-exporter if that exists and may be written to, else nothing is kept.",
    )
