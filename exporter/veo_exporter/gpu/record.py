# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is kept of one GPU from sample to sample."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from veo_exporter.catalog import MetricSpec
from veo_exporter.gpu.account import Folding, SampleAccount
from veo_exporter.gpu.capability import capabilities_missing
from veo_exporter.gpu.codes import Meaning, meaning_of
from veo_exporter.gpu.encoder import without_unused_codecs
from veo_exporter.gpu.readings import (
    Cadence,
    Device,
    Reading,
    Signal,
    Statistics,
    WhyNot,
)

HANGS_FORGIVEN_AFTER_SECONDS: Final = 600.0
"""A GPU that hangs again and again is asked ever less often; this long without, and it is trusted."""
_NOTHING_MISSING: Final[Mapping[Signal, WhyNot]] = {}
"""The same each time, so that a reader knows by identity that nothing has changed."""


@dataclass(slots=True)
class Record:
    """One GPU. `device` is None while NVML does not give it to us."""

    subject: str
    index: int | None
    uuid: str
    pci_bus_id: str
    folding: Folding
    device: Device | None = None
    listed: bool = False
    look_up_code: int = 0
    hung: bool = False
    silenced: bool = False
    """The driver as a whole hung, and this GPU has not answered since."""
    hangs: int = 0
    hung_at_monotonic_seconds: float = 0.0
    retry_at_monotonic_seconds: float = 0.0
    readings: dict[Cadence, Reading] = field(default_factory=dict)
    silences: dict[Cadence, int] = field(default_factory=dict)
    """The code with which a whole group was refused; it holds until the same group answers."""
    missing: dict[Cadence, dict[Signal, WhyNot]] = field(default_factory=dict)
    capabilities_missing: dict[str, WhyNot] = field(default_factory=dict)
    codecs_used: set[Signal] = field(default_factory=set)
    """Sessions by codec, of codecs that had any since the start."""
    implausible_readings: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    errors: dict[tuple[str, int], int] = field(default_factory=dict)
    account: SampleAccount = field(init=False)

    def __post_init__(self) -> None:
        self.account = SampleAccount(self.folding)

    @property
    def newest(self) -> Reading | None:
        newest = None
        for reading in self.readings.values():
            if newest is None or (
                reading.finished_monotonic_seconds > newest.finished_monotonic_seconds
            ):
                newest = reading
        return newest

    @property
    def code(self) -> int | None:
        """What speaks against this GPU: the silence of a group, or an illness that any of them told."""
        if self.look_up_code:
            return self.look_up_code
        if self.silences:
            return next(self.silences[one] for one in Cadence if one in self.silences)
        if not self.readings:
            return None
        for reading in self.readings.values():
            if reading.code and meaning_of(reading.code) is Meaning.GPU_ILL:
                return reading.code
        return 0

    @property
    def answers(self) -> bool:
        """Whether it is worth asking at every tick; else it is looked up again at the full cadence."""
        return self.device is not None and not self.silences and not self.hung

    def count_error(self, function: str, code: int) -> None:
        self.errors[function, code] = self.errors.get((function, code), 0) + 1

    def take_errors_of(self, other: "Record") -> None:
        """Go on counting where another record of the same GPU left off."""
        for key, count in other.errors.items():
            self.errors[key] = self.errors.get(key, 0) + count

    def is_found_in(self, nameless: "Record") -> None:
        """A record that only an index names turns out to be of this GPU: what befell it, befell us."""
        self.index = nameless.index
        self.listed = nameless.listed
        self.look_up_code = nameless.look_up_code
        self.hung = nameless.hung
        self.hangs = max(self.hangs, nameless.hangs)
        self.hung_at_monotonic_seconds = nameless.hung_at_monotonic_seconds
        self.retry_at_monotonic_seconds = nameless.retry_at_monotonic_seconds
        self.take_errors_of(nameless)

    def refold(self, folding: Folding) -> None:
        """Fold in another way from now on."""
        if folding == self.folding:
            return
        self.folding = folding
        self.account.refold(folding)

    def found(self, device: Device) -> None:
        """NVML gave us the GPU, perhaps again and at another index."""
        if self.device is not None:
            # Of the same session: a counter must not change its source.
            device.bookmarks.sources = self.device.bookmarks.sources
        self.device = device
        self.index = device.index
        self.pci_bus_id = device.pci_bus_id
        self.listed = True
        # What spoke against it before still does, until it answers a question.

    def gone(self) -> None:
        """Nothing that was read is true any more."""
        self.device = None
        self.readings.clear()
        # That the GPU itself is gone, no new session and no failed look-up takes back.
        self.silences = {
            cadence: code
            for cadence, code in self.silences.items()
            if meaning_of(code) is Meaning.GPU_GONE
        }

    def skipped(self, cadence: Cadence) -> Mapping[Signal, WhyNot]:
        """Signals not worth asking for before the next static sweep."""
        return self.missing.get(cadence, _NOTHING_MISSING)

    def fold(self, reading: Reading, *, everything: bool = False) -> None:
        """Take a reading in; `everything` if nothing was skipped."""
        self.hung = False
        self.silenced = False
        self.look_up_code = 0
        if reading.cadence is Cadence.FULL:
            values = without_unused_codecs(reading.values, self.codecs_used)
            reading = reading._replace(values=values)
        if reading.code and not reading.values:
            self.readings.clear()
            self.silences[reading.cadence] = reading.code
        else:
            self.silences.pop(reading.cadence, None)
        self.readings[reading.cadence] = reading
        self._note_missing(reading, everything=everything)
        if reading.texts:
            self.texts.update(reading.texts)
        self.implausible_readings += reading.implausible
        for failure in reading.failures:
            self.count_error(failure.function, failure.code)
        if not self.silences:
            self.account.take(reading)
        at = reading.finished_monotonic_seconds
        if self.hangs and at - self.hung_at_monotonic_seconds > HANGS_FORGIVEN_AFTER_SECONDS:
            self.hangs = 0

    def _note_missing(self, reading: Reading, *, everything: bool) -> None:
        if not reading.missing and not everything:
            # As nearly always: up to fifty times a second.
            return
        known = self.missing.get(reading.cadence, {})
        missing = dict(reading.missing) if everything else {**known, **reading.missing}
        if missing != known:
            self.missing[reading.cadence] = missing
            self.capabilities_missing = capabilities_missing(self.missing.values())

    def statistics(self) -> dict[MetricSpec, Statistics]:
        """The trailing window of each fast signal that the newest fast reading has."""
        return self.account.statistics(self.shown)

    @property
    def shown(self) -> Mapping[Signal, float]:
        """What the newest fast reading has."""
        fast = self.readings.get(Cadence.FAST)
        return fast.values if fast and not self.silences else {}

    @property
    def readings_shown(self) -> tuple[Reading, ...]:
        """None of a GPU that refuses a whole group: what else it answers is not to be trusted."""
        return () if self.silences else tuple(self.readings.values())
