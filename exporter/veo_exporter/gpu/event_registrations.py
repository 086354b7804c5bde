# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which GPUs of a session are in the event set, and when those that are not are tried again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from veo_exporter.gpu.codes import Meaning, meaning_of
from veo_exporter.gpu.event_set import same_gpu
from veo_exporter.gpu.nvml import Handle
from veo_exporter.gpu.readings import Device, WhyNot

FIRST_RETRY_SECONDS: Final = 1.0
LONGEST_RETRY_SECONDS: Final = 60.0
NEVER: Final = float("inf")
"""An attempt of before has not returned: a second one would not either."""
_WHY_NOT: Final = {
    Meaning.UNSUPPORTED: WhyNot.NOT_SUPPORTED,
    Meaning.FORBIDDEN: WhyNot.NOT_PERMITTED,
}


def retry_seconds(failures: int) -> float:
    """How long to leave alone what has failed so often: registration may fail at boot, for rights or
    for order, and work seconds later."""
    return float(min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS))


@dataclass(slots=True, eq=False)
class Registration:
    """A GPU of this session, and whether it is in the set."""

    device: Device
    registered: bool = False
    code: int = 0
    failures: int = 0
    retry_at: float = 0.0

    def succeeded(self) -> None:
        self.registered = True
        self.code = self.failures = 0

    def failed(self, code: int, now_monotonic_seconds: float) -> None:
        """Leave it alone for a while."""
        self.code = code
        self.failures += 1
        self.retry_at = now_monotonic_seconds + retry_seconds(self.failures)


def device_of(devices: Iterable[Device], handle: Handle) -> Device | None:
    """The GPU of an event."""
    return next((device for device in devices if same_gpu(device.handle, handle)), None)


class Registrations:
    """The GPUs of one session. Whoever uses it holds the listener's lock."""

    def __init__(self) -> None:
        self._by_uuid: dict[str, Registration] = {}

    def __bool__(self) -> bool:
        return bool(self._by_uuid)

    @property
    def any_untried(self) -> bool:
        """Whether one is still to be put into the set for the first time."""
        return any(one.failures == 0 and one.retry_at != NEVER for one in self._waiting())

    @property
    def any_registered(self) -> bool:
        return any(one.registered for one in self._by_uuid.values())

    def attend(self, device: Device, now_monotonic_seconds: float) -> None:
        """A GPU was found, perhaps once more."""
        known = self._by_uuid.get(device.uuid)
        if known is None or not same_gpu(known.device.handle, device.handle):
            self._by_uuid[device.uuid] = Registration(device)
            return
        known.device = device
        if known.retry_at != NEVER:
            # It answers again: what failed before is worth another attempt.
            known.retry_at = min(known.retry_at, now_monotonic_seconds)

    def due(self, now_monotonic_seconds: float) -> list[Registration]:
        """Those to be registered now."""
        return [one for one in self._waiting() if one.retry_at <= now_monotonic_seconds]

    def next_attempt_monotonic_seconds(self) -> float | None:
        """When one is to be registered next, if any."""
        return min((one.retry_at for one in self._waiting()), default=None)

    def take_out(self) -> None:
        """The set is gone."""
        for one in self._by_uuid.values():
            one.registered = False

    def forget(self) -> None:
        """The session is over."""
        self._by_uuid.clear()

    def missing(self) -> Mapping[str, WhyNot]:
        """By UUID, those that cannot be registered for as long as nothing changes."""
        return {
            one.device.uuid: why
            for one in self._by_uuid.values()
            if (why := _WHY_NOT.get(meaning_of(one.code))) is not None
        }

    def devices(self) -> list[Device]:
        """Those whose events may come."""
        return [one.device for one in self._by_uuid.values()]

    def _waiting(self) -> list[Registration]:
        return [one for one in self._by_uuid.values() if not one.registered]
