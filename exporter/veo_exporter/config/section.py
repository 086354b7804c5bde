# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What every group of settings is."""

from pydantic import BaseModel, ConfigDict


class OutOfOrder(ValueError):
    """Two settings of a section that do not go together."""

    def __init__(self, sentence: str, *names: str) -> None:
        super().__init__(sentence)
        self.names = names


class Section(BaseModel):
    """A group of settings that cannot be changed once read."""

    model_config = ConfigDict(frozen=True, extra="forbid")
