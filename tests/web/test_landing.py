# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The page at /: true, safe to open, and readable without anything else."""

from html.parser import HTMLParser
from typing import Any

from tests.web import landing
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.readings import Cadence, Driver, GpuView, Reading, Signal, Snapshot, State
from veo_exporter.web.landing import render_landing

HOSTILE = """<script>alert("1")</script>&'"""
ESCAPED = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#x27;"
GIB = 1024**3


def reading(finished: float, **values: float) -> Reading:
    signals: dict[Signal, float] = {
        getattr(catalog, name.upper()): value for name, value in values.items()
    }
    return Reading(
        cadence=Cadence.FAST,
        finished_unix_seconds=finished,
        finished_monotonic_seconds=finished,
        values=signals,
        texts={},
        failures=(),
        missing={},
        implausible=0,
        code=0,
    )


def gpu(**changes: Any) -> GpuView:
    said: dict[str, Any] = {
        "index": 3,
        "uuid": "GPU-3",
        "pci_bus_id": "0000:1b:00.0",
        "state": State.OK,
        "code": 0,
        "texts": {"name": "NVIDIA H100"},
        "readings": (),
        "missing": {},
        "errors": {},
        "implausible_readings": 0,
        "overdue_call": None,
    }
    return GpuView(**said | changes)


def snapshot(*gpus: GpuView) -> Snapshot:
    return Snapshot(
        sequence=1,
        # Fresh, whatever the time asked about.
        taken_monotonic_seconds=float("inf"),
        driver=Driver(fault=""),
        expected=len(gpus),
        gpus=gpus,
        last_success_unix_seconds={},
        stale_after_seconds=dict.fromkeys(Cadence, 5.0),
    )


class Read(HTMLParser):
    """The page as a browser takes it: elements with their attributes, and table cells' texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data

    def attributes(self, tag: str, name: str) -> list[str | None]:
        return [attributes.get(name) for found, attributes in self.elements if found == tag]


def test_a_gpu_is_a_row_of_the_table() -> None:
    values = reading(
        100,
        utilization=0.97,
        memory_used=62.54 * GIB,
        memory_total=80 * GIB,
        power=612.4,
        temperature=64,
    )
    page = Read(
        render_landing(
            landing(snapshot=snapshot(gpu(readings=(values,))), now_monotonic_seconds=101)
        )
    )
    assert page.rows == [
        ["GPU", "State", "Utilization", "Memory used", "Power", "Temperature", "Name", "UUID", "PCI"],
        ["3", "ok", "97 %", "62.5 GiB of 80 GiB", "612 W", "64 °C", "NVIDIA H100", "GPU-3",
         "0000:1b:00.0"],
    ]  # fmt: skip
    assert "bad" not in page.attributes("td", "class")


def test_a_value_that_is_too_old_is_not_shown() -> None:
    old = reading(100, utilization=0.97, memory_used=GIB, memory_total=GIB, power=1, temperature=1)
    shown = landing(snapshot=snapshot(gpu(readings=(old,))), now_monotonic_seconds=105.5)
    assert Read(render_landing(shown)).rows[1][2:6] == ["–", "–", "–", "–"]


def test_a_gpu_that_is_gone_stays_and_is_marked() -> None:
    bus_only = gpu(index=None, uuid="", state=State.HIDDEN, code=None, texts={})
    reset = gpu(state=State.RESET_REQUIRED, code=16)
    page = Read(render_landing(landing(snapshot=snapshot(reset, bus_only))))
    assert page.rows[1][:2] == ["3", "reset required"]
    assert page.rows[2] == ["?", "hidden", "–", "–", "–", "–", "", "", "0000:1b:00.0"]
    assert page.attributes("td", "class").count("bad") == 2


def test_zero_is_a_value() -> None:
    idle = reading(0, utilization=0, memory_used=0, memory_total=80 * GIB, power=0, temperature=0)
    page = Read(render_landing(landing(snapshot=snapshot(gpu(readings=(idle,))))))
    assert page.rows[1][2:6] == ["0 %", "0.0 GiB of 80 GiB", "0 W", "0 °C"]


def test_hostile_names_are_text() -> None:
    hostile = gpu(uuid=HOSTILE, pci_bus_id=HOSTILE, texts={"name": HOSTILE})
    html = render_landing(
        landing(node=HOSTILE, version=HOSTILE, withdrawn=[HOSTILE], snapshot=snapshot(hostile))
    )
    # In the title twice (head and heading), the version, three cells, and the withdrawn.
    assert html.count(ESCAPED) == 7
    assert "<script" not in html
    page = Read(html)
    assert page.rows[1][6:] == [HOSTILE, HOSTILE, HOSTILE]


def test_a_simulated_node_says_so_in_title_and_text() -> None:
    page = Read(render_landing(landing(simulated=True)))
    assert "veo-exporter on node-1 (simulated)" in page.text
    assert "Simulated: every figure here is made up." in page.text
    assert "imulated" not in Read(render_landing(landing(simulated=False))).text


def test_what_is_withdrawn_is_told() -> None:
    assert "Nothing is withdrawn." in Read(render_landing(landing())).text
    page = Read(render_landing(landing(withdrawn=["GPU 3 (GPU-3): lost", "GPU 4 (GPU-4): hung"])))
    assert page.attributes("li", "class").count(None) == 2 + 3
    assert "Withdrawn now" in page.text
    assert "GPU 3 (GPU-3): lost" in page.text
    assert "Nothing is withdrawn." not in page.text


def test_a_node_without_gpus_says_why() -> None:
    assert "No GPU is known of yet." in Read(render_landing(landing())).text
    unwatched = Read(render_landing(landing(gpus_watched=False))).text
    assert "GPUs are not watched (gpu.enabled is false)." in unwatched
    assert "No GPU is known" not in unwatched


def test_it_works_without_any_other_host_and_without_scripts() -> None:
    page = Read(render_landing(landing(snapshot=snapshot(gpu()))))
    assert page.attributes("a", "href") == ["/metrics", "/-/ready", "/-/healthy"]
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "form", "object", "embed"}


def test_it_can_be_read_by_machines_that_read_aloud() -> None:
    page = Read(render_landing(landing(snapshot=snapshot(gpu()))))
    assert page.attributes("html", "lang") == ["en"]
    assert "main" in {tag for tag, _ in page.elements}
    assert set(page.attributes("th", "scope")) == {"col", "row"}
    assert page.attributes("nav", "aria-label") == ["Pages"]
    # The table scrolls sideways on a small screen, by keyboard too.
    assert "0" in page.attributes("div", "tabindex")
