# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The page: written once for each change, in the format that was asked for."""

import gzip
from collections.abc import Hashable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.catalog import Kind, Label, MetricSpec
from veo_exporter.exposition import Family, Folds, Page
from veo_exporter.units import Unit

NAME = MetricSpec("veo_a_info", Kind.GAUGE, Unit.INFO, "A.", (Label("name", "which", "1"),))
COUNT = MetricSpec("veo_b_total", Kind.COUNTER, Unit.NONE, "B.")

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT_0 = "text/plain; version=0.0.4; charset=utf-8"
TEXT_1 = "text/plain; version=1.0.0; charset=utf-8"


class Told:
    """A source that counts how often it is asked for its families."""

    def __init__(self, spec: MetricSpec = COUNT, labels: tuple[str, ...] = ()) -> None:
        self.current: Hashable = 1
        self.value = 1.0
        self.asked = 0
        self._spec, self._labels = spec, labels

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        return self.current

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        self.asked += 1
        yield Family(self._spec, [(self._labels, self.value)])


def test_sources_stand_in_the_order_given() -> None:
    body, headers = Page((Told(NAME, ("x",)), Told())).answer(0)
    assert body == (
        b'# HELP veo_a_info A.\n# TYPE veo_a_info gauge\nveo_a_info{name="x"} 1.0\n'
        b"# HELP veo_b_total B.\n# TYPE veo_b_total counter\nveo_b_total 1.0\n"
    )
    assert headers == {"Content-Type": TEXT_0, "Vary": "Accept, Accept-Encoding"}


def test_a_source_with_the_same_revision_is_not_asked_again() -> None:
    same, changing = Told(NAME, ("x",)), Told()
    page = Page((same, changing))
    page.answer(0)
    for changing.current in (2, 3, 4):
        changing.value += 1
        body, _ = page.answer(0)
        assert body.endswith(b"veo_b_total %.1f\n" % changing.value)
    assert (same.asked, changing.asked) == (1, 4)


def test_a_source_without_a_revision_is_asked_each_time() -> None:
    source = Told()
    source.current = None
    page = Page((source,))
    assert page.answer(0)[0] is page.answer(0)[0]
    source.value = 2
    assert page.answer(0)[0].endswith(b"veo_b_total 2.0\n")
    assert source.asked == 3


def test_each_format_has_its_own_text() -> None:
    source = Told()
    page = Page((source,))
    openmetrics, _ = page.answer(0, PROMETHEUS_3)
    text, _ = page.answer(0)
    assert openmetrics == b"# HELP veo_b B.\n# TYPE veo_b counter\nveo_b_total 1.0\n# EOF\n"
    assert text == b"# HELP veo_b_total B.\n# TYPE veo_b_total counter\nveo_b_total 1.0\n"
    assert source.asked == 2


@pytest.mark.parametrize("accept", ["", PROMETHEUS_3])
def test_equal_pages_are_the_same_bytes(accept: str) -> None:
    source = Told()
    page = Page((source,))
    for encoding in ("", "gzip"):
        first, _ = page.answer(0, accept, encoding)
        again, _ = page.answer(100, accept, encoding)
        # Nothing was written or compressed anew.
        assert first is again
    compressed, _ = page.answer(0, accept, "gzip")
    # Nor do two exporters that say the same differ by the time of compression.
    assert Page((Told(),)).answer(0, accept, "gzip")[0] == compressed


def test_a_change_reaches_the_compressed_page() -> None:
    source = Told()
    page = Page((source,))
    page.answer(0, "", "gzip")
    source.current, source.value = 2, 7
    body, headers = page.answer(0, "", "gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == page.answer(0)[0]
    assert gzip.decompress(body).endswith(b"veo_b_total 7.0\n")


def test_a_page_without_series_is_whole() -> None:
    assert Page(()).answer(0)[0] == b""
    assert Page(()).answer(0, PROMETHEUS_3)[0] == b"# EOF\n"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (PROMETHEUS_3, f"{OPENMETRICS}; escaping=allow-utf-8"),
        (PROMETHEUS_2, f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text", OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0", f"{OPENMETRICS}; escaping=underscores"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", f"{TEXT_1}; escaping=allow-utf-8"),
        ("text/plain;version=1.0.0", f"{TEXT_1}; escaping=underscores"),
        ("text/plain;version=0.0.4", TEXT_0),
        ("", TEXT_0),
        ("*/*", TEXT_0),
        (BROWSER, TEXT_0),
        ("application/json", TEXT_0),
        # The weights decide, whatever stands first.
        ("application/openmetrics-text;version=1.0.0;q=0.1,text/plain;version=0.0.4;q=0.9", TEXT_0),
        ("text/plain;q=0.1,application/openmetrics-text;version=1.0.0;q=0.9",
         f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0;q=0", TEXT_0),
        # What we do not write is not promised.
        ("application/openmetrics-text;version=2.0.0,text/plain;version=0.0.4", TEXT_0),
        ("application/openmetrics-text;version=0.0.1", TEXT_0),
        ("application/openmetrics-text;version=1.0.0;escaping=dots",
         f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0;escaping=values",
         f"{OPENMETRICS}; escaping=underscores"),
        # Junk.
        ("application/openmetrics-text;version=new", TEXT_0),
        ("text/plain;version=2.x", TEXT_0),
        ("text/plain;q=much", TEXT_0),
        (",;=;,,", TEXT_0),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily", TEXT_0),
    ],
)  # fmt: skip
def test_the_format_is_negotiated(accept: str, content_type: str) -> None:
    body, headers = Page((Told(),)).answer(0, accept)
    assert headers["Content-Type"] == content_type
    assert body.endswith(b"# EOF\n") == content_type.startswith(OPENMETRICS)
    assert headers["Vary"] == "Accept, Accept-Encoding"


@pytest.mark.parametrize(
    ("accept_encoding", "compressed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip, deflate, br, zstd", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.0, identity", False),
        ("xgzip", False),
    ],
)
def test_the_encoding_is_negotiated(accept_encoding: str, compressed: bool) -> None:
    body, headers = Page((Told(),)).answer(0, "", accept_encoding)
    assert (headers.get("Content-Encoding") == "gzip") is compressed
    plain = gzip.decompress(body) if compressed else body
    assert plain.endswith(b"veo_b_total 1.0\n")
    assert headers["Vary"] == "Accept, Accept-Encoding"


@given(st.text(), st.text())
def test_no_request_header_breaks_the_page(accept: str, accept_encoding: str) -> None:
    body, headers = Page((Told(),)).answer(0, accept, accept_encoding)
    assert body
    # What the request said is not repeated to it.
    assert headers["Content-Type"] in {
        TEXT_0, OPENMETRICS, f"{TEXT_1}; escaping=underscores", f"{OPENMETRICS}; escaping=underscores"
    }  # fmt: skip


@pytest.mark.parametrize("accept", ["", PROMETHEUS_3])
def test_what_utf8_cannot_say_costs_a_character_and_not_the_page(accept: str) -> None:
    body, _ = Page((Told(NAME, ("a\udcffb",)),)).answer(0, accept)
    assert b'veo_a_info{name="a?b"} 1.0\n' in body


class _BrokenSource:
    """A source with a fault of ours in it."""

    def revision(self, now_monotonic_seconds: float) -> int:
        return 1

    def families(self, now_monotonic_seconds: float) -> list[Family]:
        raise KeyError("a fault")


def test_a_source_that_raises_costs_its_own_part_and_is_told_of_each_time() -> None:
    healthy = Folds()
    healthy.counter(COUNT)
    broken = _BrokenSource()
    told: list[object] = []
    page = Page((broken, healthy), told.append)
    for asked in (1, 2):
        body, _ = page.answer(0.0)
        assert body == b"# HELP veo_b_total B.\n# TYPE veo_b_total counter\nveo_b_total 0.0\n"
        assert told == [broken] * asked
