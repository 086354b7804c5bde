# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Node and GPU: what on-call opens first, at three in the morning."""

from collections.abc import Iterable
from typing import Final

from dashboards import node_gpu_load as load
from dashboards import node_gpu_trust as trust
from dashboards.fields import Wording
from dashboards.house import RUNBOOKS, Placed, Shelf, document
from dashboards.palette import BLUE, GREEN, GREY, ORANGE, PLAIN, PURPLE, SKY, VERMILLION
from dashboards.panels import link, number, rows, states
from dashboards.promql import Series, firing_alerts, gauge, up
from dashboards.questions import About, Query
from dashboards.sdk import dashboard
from veo_exporter.catalog import MetricSpec, gpu
from veo_exporter.catalog import exporter as own

UID: Final = "veo-node-gpu"

STATES: Final = {
    "ok": Wording("ok", GREEN),
    "unknown": Wording("unknown", GREY),
    "reset_required": Wording("reset required", PURPLE),
    "hung": Wording("hung", ORANGE),
    "hidden": Wording("hidden", SKY),
    "lost": Wording("lost", VERMILLION),
}
"""Every state of a GPU; its place here is the number that stands for it on a panel, from 1.

Where two scrapes of one GPU differ, the highest number is shown: hence from well to worst.
"""

_NODE: Final = ("cluster", "node")
_STATE_WORDS: Final = dict(enumerate(STATES.values(), start=1))
_KEEP: Final = (
    "${__url_time_range}&${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}"
)


def text() -> str:
    """The dashboard's file."""
    return document(
        UID,
        "Node and GPU",
        "Is every GPU there, what is it doing, what holds it down, and can the figures be trusted? "
        "A gap is a value that could not be read; it is never drawn as zero.",
        ("gpu", "node"),
        (
            Shelf(4, tuple(Placed(panel, 4) for panel in _figures())),
            Shelf(9, (Placed(_state(), 15), Placed(_alerts(), 9))),
            *load.shelves(only_this_gpu()),
            *trust.shelves(),
            Shelf(8, (Placed(_boards(), 24),), "What is installed"),
            *trust.software(),
        ),
    )


def only_this_gpu() -> dashboard.DashboardLink:
    """From a series to the same dashboard with that GPU alone."""
    chosen = "var-node=${__field.labels.node}&var-gpu=${__field.labels.gpu}"
    return link("Only this GPU", f"/d/{UID}?{chosen}&{_KEEP}")


def state_number(*by: str) -> Series:
    """The state of each GPU as its number in STATES.

    The greatest and no sum: two jobs, or a pair of Prometheus servers, have two series of one GPU,
    whose numbers would add up to those of another state.
    """
    terms = [
        f"{place} * ({gauge(gpu.GPU_STATE, state=state).text} == 1)"
        for place, state in enumerate(STATES, start=1)
    ]
    labels = gauge(gpu.GPU_STATE).labels
    return Series(" or ".join(terms), labels).aggregate("max", *by)


def _of_all_nodes(spec: MetricSpec) -> Series:
    """A gauge of a node, summed up; each node once, however many jobs scrape it."""
    return gauge(spec).aggregate("max", *_NODE).aggregate("sum")


def _figures() -> Iterable[dashboard.Panel]:
    reached = up().aggregate("min", *_NODE)
    yield number(
        About(
            own.SIMULATED,
            "Are these figures real?",
            title="Figures",
            unit="none",
        ),
        Query(gauge(own.SIMULATED).aggregate("max")),
        words={0: Wording("real", BLUE), 1: Wording("SIMULATED", ORANGE)},
        background=True,
    )
    yield number(
        About(
            None,
            "How many exporters can Prometheus not reach?",
            title="Exporters down",
            unit="none",
            meaning="Of their GPUs nothing is known, and they are missing from the counts beside this.",
            none="no target",
        ),
        Query(reached.aggregate("count") - reached.aggregate("sum")),
        words={0: Wording("none", PLAIN)},
        lines=trust.ANY_AT_ALL,
    )
    yield number(
        About(gpu.GPUS_EXPECTED, "How many GPUs should be here?", title="GPUs expected"),
        Query(_of_all_nodes(gpu.GPUS_EXPECTED)),
    )
    yield number(
        About(gpu.GPUS_VISIBLE, "How many GPUs does the driver list?", title="GPUs visible"),
        Query(_of_all_nodes(gpu.GPUS_VISIBLE)),
    )
    yield number(
        About(gpu.GPUS_USABLE, "How many GPUs answer?", title="GPUs usable"),
        Query(_of_all_nodes(gpu.GPUS_USABLE)),
    )
    yield number(
        About(
            gpu.GPUS_USABLE,
            "How many GPUs should be here and do not answer?",
            title="GPUs missing",
            meaning="GPUs expected, less GPUs usable.",
        ),
        Query(
            (gauge(gpu.GPUS_EXPECTED) - gauge(gpu.GPUS_USABLE))
            .aggregate("max", *_NODE)
            .aggregate("sum")
        ),
        words={0: Wording("none", PLAIN)},
        lines=trust.ANY_AT_ALL,
    )


def _state() -> dashboard.Panel:
    return states(
        About(
            gpu.GPU_STATE,
            "Which GPU is in trouble, since when, and of what kind?",
            title="State of each GPU",
            unit="none",
        ),
        Query(
            state_number("cluster", "node", "gpu", "pci_bus_id"),
            "{{node}} GPU {{gpu}} ({{pci_bus_id}})",
        ),
        words=_STATE_WORDS,
        links=(only_this_gpu(),),
    )


def _alerts() -> dashboard.Panel:
    return rows(
        About(
            None,
            "Which alerts fire for what is chosen here, and what is there to do?",
            title="Firing alerts",
            unit="none",
            meaning="Those that concern no single node or GPU are among them. An alert's name leads to its runbook.",
            none="No alert fires, or the alert rules are not loaded.",
        ),
        Query(
            firing_alerts().aggregate(
                "max", "alertname", "severity", "action", "cluster", "node", "gpu"
            )
        ),
        {
            "alertname": "Alert",
            "severity": "Severity",
            "node": "Node",
            "gpu": "GPU",
            "action": "To do",
            "cluster": "Cluster",
        },
        sorted_by="Severity",
        links={
            "alertname": link("Runbook", f"${{{RUNBOOKS}}}/${{__value.raw}}.md", new_tab=True),
        },
    )


def _boards() -> dashboard.Panel:
    joined = gauge(gpu.GPU_INFO)
    on = ("cluster", "job", "instance", "uuid")
    named = Series(
        f"{joined.text} * on ({', '.join(on)}) group_left () {state_number(*on).text}",
        joined.labels,
    )
    columns = {
        "Value": "State",
        "node": "Node",
        "gpu": "GPU",
        "name": "Name",
        "uuid": "UUID",
        "pci_bus_id": "PCI address",
        "vbios_version": "Firmware",
        "cluster": "Cluster",
    }
    by = [label for label in columns if label != "Value"]
    chosen = "var-node=${__data.fields.Node}&var-gpu=${__value.raw}"
    return rows(
        About(
            gpu.GPU_INFO,
            "Which board is it: what is its name, its UUID and its place on the bus?",
            title="GPUs",
        ),
        Query(named.aggregate("max", *by)),
        columns,
        words=_STATE_WORDS,
        sorted_by="Node",
        links={"gpu": link("Only this GPU", f"/d/{UID}?{chosen}&{_KEEP}")},
    )
