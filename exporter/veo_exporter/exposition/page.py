# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The page that Prometheus scrapes: what all sources say, written once for each change."""

import gzip
from collections.abc import Callable, Hashable
from typing import Final

from veo_exporter.exposition.families import Source
from veo_exporter.exposition.negotiation import accepts_gzip, choose_format
from veo_exporter.exposition.text import Format, Remembered, TextWriter

GZIP_LEVEL: Final = 3
"""Series names repeat so much that higher levels cost time and save next to nothing."""


class _Edition:
    """The page in one format, with the texts of the sources it was put together from."""

    def __init__(
        self,
        form: Format,
        sources: tuple[Source, ...],
        failed: Callable[[Source], None],
        remembered: Remembered,
    ) -> None:
        self._ending = "# EOF\n" if form is Format.OPENMETRICS else ""
        self._writer = TextWriter(form, remembered)
        self._sources = sources
        self._failed = failed
        self._texts: list[tuple[Hashable, str]] = [(None, "")] * len(sources)
        self._body = b""
        self._compressed: bytes | None = None

    def body(self, now_monotonic_seconds: float, *, compressed: bool) -> bytes:
        if self._refresh(now_monotonic_seconds):
            self._body = ("".join(text for _, text in self._texts) + self._ending).encode(
                errors="replace"
            )
            self._compressed = None
        if not compressed:
            return self._body
        if self._compressed is None:
            # mtime=0 keeps equal pages equal to the byte.
            self._compressed = gzip.compress(self._body, GZIP_LEVEL, mtime=0)
        return self._compressed

    def _refresh(self, now_monotonic_seconds: float) -> bool:
        changed = not self._body
        for place, source in enumerate(self._sources):
            revision, text = self._texts[place]
            try:
                current = source.revision(now_monotonic_seconds)
                if current is not None and current == revision:
                    continue
                written = self._writer.write(source.families(now_monotonic_seconds))
            except Exception:  # noqa: BLE001, whoever made the page is told
                # A fault of ours in one source; what the others say is as true as before.
                self._failed(source)
                current, written = None, ""
            self._texts[place] = (current, written)
            changed = changed or written != text
        return changed


class Page:
    """Everything at /metrics. Reads snapshots only: no call of it waits for anything.

    A source that raises is left out of the page; `failed` is told, inside the handler of what it
    raised.
    """

    def __init__(
        self, sources: tuple[Source, ...], failed: Callable[[Source], None] = lambda source: None
    ) -> None:
        remembered = Remembered()
        self._editions = {form: _Edition(form, sources, failed, remembered) for form in Format}

    def answer(
        self, now_monotonic_seconds: float, accept: str = "", accept_encoding: str = ""
    ) -> tuple[bytes, dict[str, str]]:
        """Body and headers for a scrape with these request headers."""
        form, content_type = choose_format(accept)
        edition = self._editions[form]
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        compressed = accepts_gzip(accept_encoding)
        if compressed:
            headers["Content-Encoding"] = "gzip"
        return edition.body(now_monotonic_seconds, compressed=compressed), headers
