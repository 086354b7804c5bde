# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

"""A fake NVIDIA management library, and fake nodes for it to tell of."""

from .building import CompilerMissingError, build, compile_library
from .gpu import (
    FakeEncoderSession,
    FakeField,
    FakeGpu,
    FakeLicensableFeature,
    FakeMigDevice,
    FakeProcess,
    FakeProcessUtilization,
    FakeRetiredPage,
    FakeSample,
    FakeSamples,
    Rule,
    h100,
)
from .node import FakeLibrary, FakeNode

__all__ = [
    "CompilerMissingError",
    "FakeEncoderSession",
    "FakeField",
    "FakeGpu",
    "FakeLibrary",
    "FakeLicensableFeature",
    "FakeMigDevice",
    "FakeNode",
    "FakeProcess",
    "FakeProcessUtilization",
    "FakeRetiredPage",
    "FakeSample",
    "FakeSamples",
    "Rule",
    "build",
    "compile_library",
    "h100",
]
