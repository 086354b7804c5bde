# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Base units: what a metric's name ends with, and what a dashboard calls the same thing."""

from enum import Enum


class Unit(Enum):
    """A base unit of Prometheus, as (metric name suffix, OpenMetrics unit, Grafana unit id).

    Values are converted to these once, where they enter: NVML's milliwatts, megahertz, percent
    and millijoules never get past the GPU probes.
    """

    SECONDS = ("seconds", "seconds", "s")
    BYTES = ("bytes", "bytes", "bytes")
    BYTES_PER_SECOND = ("bytes_per_second", "bytes_per_second", "Bps")
    HERTZ = ("hertz", "hertz", "hertz")
    WATTS = ("watts", "watts", "watt")
    JOULES = ("joules", "joules", "joule")
    CELSIUS = ("celsius", "celsius", "celsius")
    RATIO = ("ratio", "ratio", "percentunit")
    TIMESTAMP = ("timestamp_seconds", "seconds", "dateTimeAsIso")
    INFO = ("info", "", "none")
    NONE = ("", "", "short")

    def __init__(self, suffix: str, openmetrics: str, grafana: str) -> None:
        self.suffix = suffix
        self.openmetrics = openmetrics
        self.grafana = grafana


def percent_to_ratio(percent: float) -> float:
    """100 % is 1."""
    return percent / 100


def megahertz_to_hertz(megahertz: float) -> float:
    """1 MHz is 1,000,000 Hz."""
    return megahertz * 1e6


def milliwatts_to_watts(milliwatts: float) -> float:
    """1,000 mW is 1 W."""
    return milliwatts / 1000


def millijoules_to_joules(millijoules: float) -> float:
    """1,000 mJ is 1 J."""
    return millijoules / 1000


def microseconds_to_seconds(microseconds: float) -> float:
    """1,000,000 µs is 1 s."""
    return microseconds / 1e6


def nanoseconds_to_seconds(nanoseconds: float) -> float:
    """1,000,000,000 ns is 1 s."""
    return nanoseconds / 1e9


def kibibytes_to_bytes(kibibytes: float) -> float:
    """1 KiB is 1,024 bytes."""
    return kibibytes * 1024


def mebibytes_to_bytes(mebibytes: float) -> float:
    """1 MiB is 1,048,576 bytes."""
    return mebibytes * 1_048_576
