# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Scripted stories of a node: what its GPUs do, and what goes wrong when."""

from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from veo_exporter.config import Duration
from veo_exporter.errors import BadScenario
from veo_exporter.gpu.throttle import REASONS

_SLICES: Final = 7
"""A GPU has so many of them to divide by MIG."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Board(_Part):
    """What the simulated GPUs are."""

    name: str
    memory_gib: float = Field(gt=0, le=1024)
    reserved_gib: float = Field(ge=0, le=64)
    power_limit_watts: float = Field(gt=0)
    sm_clock_max_megahertz: int = Field(gt=0)
    memory_clock_megahertz: int = Field(gt=0)
    unsupported: tuple[str, ...] = ()
    """NVML functions that this board does not support."""


class Phase(_Part):
    """A part of the work that each GPU does over and over."""

    name: str
    lasts: Duration = Field(gt=0)
    utilization: float = Field(ge=0, le=1)
    memory_copy_utilization: float = Field(ge=0, le=1)
    memory_used: float = Field(ge=0, le=1)
    """Share of the board's memory, the reserve left out."""
    power: float = Field(ge=0, le=1)
    """Share of the power limit."""
    temperature_celsius: float = Field(ge=0, le=120)
    decoder_utilization: float = Field(0.0, ge=0, le=1)


class What(StrEnum):
    """What can happen to a GPU, or to the driver."""

    LOSE = "lose"
    RECOVER = "recover"
    REQUIRE_RESET = "require_reset"
    HANG = "hang"
    ANSWER = "answer"
    HIDE = "hide"
    SHOW = "show"
    FAIL = "fail"
    SUCCEED = "succeed"
    THROTTLE = "throttle"
    UNTHROTTLE = "unthrottle"
    UNLOAD_DRIVER = "unload_driver"
    LOAD_DRIVER = "load_driver"


_OF_THE_DRIVER = (What.UNLOAD_DRIVER, What.LOAD_DRIVER)


def _known_reason(reason: str | None) -> str | None:
    if reason is not None and reason not in REASONS.values():
        raise ValueError(f"{reason!r} is no reason: write one of {', '.join(REASONS.values())}")
    return reason


class Happening(_Part):
    """Something that happens at a time after the start."""

    at: Duration
    what: What
    gpus: tuple[int, ...] = ()
    """Indexes; none means all."""
    function: str | None = None
    """The NVML function that hangs or fails; none means each of them."""
    code: int | None = None
    reason: Annotated[str | None, AfterValidator(_known_reason)] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.what is What.FAIL) != (self.code is not None):
            raise ValueError("a code is for 'fail', and 'fail' wants one")
        if (self.what is What.THROTTLE) != (self.reason is not None):
            raise ValueError("a reason is for 'throttle', and 'throttle' wants one")
        if self.what in _OF_THE_DRIVER and self.gpus:
            raise ValueError(f"{self.what.value!r} concerns the driver, not single GPUs")
        return self


class Division(_Part):
    """A GPU that MIG divides, for the whole of the story."""

    gpu: int = Field(ge=0)
    profiles: tuple[Annotated[str, Field(pattern=r"^[1-7]g\.[1-9][0-9]{0,3}gb$")], ...] = Field(
        min_length=1, max_length=_SLICES
    )
    """Of its instances, as NVIDIA writes them: slices and memory."""

    @model_validator(mode="after")
    def _in_slices(self) -> Self:
        slices = sum(int(profile[0]) for profile in self.profiles)
        if slices > _SLICES:
            raise ValueError(f"GPU {self.gpu} has {_SLICES} slices, and the profiles want {slices}")
        return self


class Scenario(_Part):
    """A node and its story. With `repeat_every`, the story starts over."""

    about: str
    gpus: int = Field(ge=0, le=64)
    board: Board
    work: tuple[Phase, ...] = Field(min_length=1)
    repeat_every: Duration | None = None
    happenings: tuple[Happening, ...] = ()
    mig: tuple[Division, ...] = ()

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        divided = [division.gpu for division in self.mig]
        for division in self.mig:
            wanted = sum(memory_gib_of(profile) for profile in division.profiles)
            if division.gpu >= self.gpus:
                raise ValueError(f"mig: there is no GPU {division.gpu}, only 0 to {self.gpus - 1}")
            if divided.count(division.gpu) > 1:
                raise ValueError(f"mig: GPU {division.gpu} is divided twice")
            if wanted > self.board.memory_gib:
                raise ValueError(
                    f"mig: GPU {division.gpu} has {self.board.memory_gib:g} GiB, and the profiles want {wanted}"
                )
        return self

    @model_validator(mode="after")
    def _in_bounds(self) -> Self:
        for happening in self.happenings:
            for gpu in happening.gpus:
                if not 0 <= gpu < self.gpus:
                    raise ValueError(
                        f"at {happening.at:g} s: there is no GPU {gpu}, only 0 to {self.gpus - 1}"
                    )
            if self.repeat_every is not None and happening.at >= self.repeat_every:
                raise ValueError(
                    f"at {happening.at:g} s: the story starts over after {self.repeat_every:g} s"
                )
        return self


def memory_gib_of(profile: str) -> int:
    """The memory of a MIG profile: 3g.40gb has half of 80 GiB."""
    return int(profile.partition(".")[2].removesuffix("gb"))


def shipped_scenarios() -> list[str]:
    """Names of the scenarios that come with the exporter."""
    folder = resources.files(__package__) / "scenarios"
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml")
    )


def load_scenario(name_or_path: str) -> Scenario:
    """A shipped scenario by its name, or any by its path. Raises BadScenario."""
    path = Path(name_or_path)
    if "/" not in name_or_path and path.suffix == "":
        if name_or_path not in shipped_scenarios():
            raise BadScenario(
                f"there is no scenario {name_or_path!r}: write a path, or one of {', '.join(shipped_scenarios())}"
            )
        text = (resources.files(__package__) / "scenarios" / f"{name_or_path}.yaml").read_text()
    else:
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise BadScenario(f"{path}: cannot be read: {error}") from None
    try:
        content: Any = yaml.safe_load(text)
        return Scenario.model_validate(content)
    except yaml.YAMLError as error:
        raise BadScenario(f"{name_or_path}: {error}") from None
    except ValidationError as error:
        sentences = [
            ": ".join(
                part for part in (name_or_path, _place_of(fault["loc"]), fault["msg"]) if part
            )
            for fault in error.errors(include_url=False)
        ]
        raise BadScenario("\n".join(sentences)) from None


def _place_of(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)
