# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A text stream that nobody who writes to ever waits for.

Standard error is often a pipe, and a pipe whose reader stands still blocks whoever writes: the
sampler would stop telling the truth, and SIGTERM would not be heard, over a log line.
"""

import threading
from queue import Full, Queue
from typing import Final, TextIO

MAX_WAITING_LINES: Final = 1000
LAST_WORDS_SECONDS: Final = 0.3


class PatientStream:
    """Writes on a thread of its own; lines beyond the bound are dropped and counted."""

    def __init__(self, stream: TextIO, max_waiting_lines: int = MAX_WAITING_LINES) -> None:
        self.dropped = 0
        self._stream = stream
        self._waiting: Queue[str] = Queue(max_waiting_lines)
        threading.Thread(target=self._write_all, name="log", daemon=True).start()

    def write(self, text: str) -> int:
        """Take a line, or drop it."""
        try:
            self._waiting.put_nowait(text)
        except Full:
            self.dropped += 1
        return len(text)

    def flush(self) -> None:
        """Nothing: what was written is under way, and nobody waits for it."""

    def drain(self) -> None:
        """Give what is under way a moment, at the end."""
        with self._waiting.all_tasks_done:
            self._waiting.all_tasks_done.wait_for(
                lambda: not self._waiting.unfinished_tasks, LAST_WORDS_SECONDS
            )

    def _write_all(self) -> None:
        while True:
            text = self._waiting.get()
            try:
                self._stream.write(text)
                if self._waiting.empty():
                    self._stream.flush()
            except (OSError, ValueError):
                # The reader has gone.
                self.dropped += 1
            finally:
                self._waiting.task_done()
