# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which events were taken already: remembered for a stated time, within a bound."""

from hashlib import blake2b


def digest(key: tuple[str, str]) -> int:
    """An event's source and id in 64 bits, the same in every process."""
    # The length keeps ("a", "bc") and ("ab", "c") apart.
    text = f"{len(key[0])} {key[0]}{key[1]}"
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest())


class Memory:
    """Two generations of digests: the older one goes when the younger is full or old enough.

    So each is remembered for at least `seconds`, unless more than `limit` come in that time.
    """

    def __init__(self, seconds: float, limit: int) -> None:
        self.seconds = seconds
        self.limit = limit
        self.forgotten_early = 0
        self._younger: set[int] = set()
        self._older: set[int] = set()
        self._turned_monotonic_seconds = 0.0

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def knows(self, key: int) -> bool:
        return key in self._younger or key in self._older

    def add(self, key: int, now_monotonic_seconds: float) -> None:
        aged = now_monotonic_seconds - self._turned_monotonic_seconds >= self.seconds
        full = len(self._younger) >= max(1, self.limit // 2)
        if aged or full:
            if not aged:
                self.forgotten_early += len(self._older)
            self._older, self._younger = self._younger, set()
            self._turned_monotonic_seconds = now_monotonic_seconds
        self._younger.add(key)

    def discard(self, key: int) -> None:
        """It was not taken after all, and may come again."""
        self._younger.discard(key)
        self._older.discard(key)
