# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Node and GPU: whether the figures can be trusted, and how the exporter itself is."""

from collections.abc import Iterable
from typing import Final

from dashboards.fields import Wording
from dashboards.house import Placed, Shelf
from dashboards.palette import BLUE, ORANGE, PLAIN, PURPLE, VERMILLION
from dashboards.panels import graph, number, rows, states
from dashboards.promql import RATE_UNITS, age, gauge, of_exporters, rate, up
from dashboards.questions import GPU_LEGEND, NODE_LEGEND, About, Query
from dashboards.thresholds import Line, lines_of
from veo_exporter.catalog import exporter as own
from veo_exporter.catalog import gpu
from veo_exporter.units import Unit

ANY_AT_ALL: Final = (Line(1, "critical", "there should be none."),)
_GPU: Final = ("cluster", "node", "gpu", "uuid")
"""One GPU, however many jobs scrape it: what is counted or added up is taken once for each of these."""
_UP: Final = {1: Wording("up", BLUE), 0: Wording("DOWN", VERMILLION)}


def shelves() -> Iterable[Shelf]:
    """How old the figures are, and what went wrong in reading them."""
    data_age = graph(
        About(
            own.LAST_SUCCESS,
            "How old are the newest figures of each group?",
            title="Age of data by group",
            meaning="Time since a group was last read from any GPU; up to one scrape interval is Prometheus' own.",
            unit=Unit.SECONDS.grafana,
            none="no data, or nothing was read since the exporter started",
        ),
        Query(age(own.LAST_SUCCESS), f"{NODE_LEGEND} {{{{group}}}}"),
        lines=lines_of(own.LAST_SUCCESS),
        colours={" gpu_fast$": BLUE, " gpu_full$": ORANGE, " gpu_static$": PURPLE},
    )
    errors = graph(
        About(
            gpu.NVML_ERRORS,
            "Which NVML calls fail, and with what code?",
            title="NVML errors by function and code",
            unit=RATE_UNITS[gpu.NVML_ERRORS.unit],
            none="no error since the exporter started, or no data",
        ),
        Query(
            rate(gpu.NVML_ERRORS)
            .aggregate("max", *_GPU, "function", "code")
            .aggregate("sum", "cluster", "node", "function", "code"),
            f"{NODE_LEGEND} {{{{function}}}} {{{{code}}}}",
        ),
        colours={},
    )
    yield Shelf(8, (Placed(data_age, 12), Placed(errors, 12)), "Can the figures be trusted?")
    in_flight = graph(
        About(
            gpu.CALL_IN_FLIGHT_SECONDS,
            "Which NVML call does not return, and for how long has it been running?",
            title="NVML calls over their deadline",
            none="no call is over its deadline, or no data",
        ),
        Query(gauge(gpu.CALL_IN_FLIGHT_SECONDS), f"{GPU_LEGEND} {{{{function}}}}"),
        colours={},
    )
    implausible = graph(
        About(
            gpu.IMPLAUSIBLE_READINGS,
            "Does a GPU give values that cannot be true?",
            unit=RATE_UNITS[gpu.IMPLAUSIBLE_READINGS.unit],
        ),
        Query(rate(gpu.IMPLAUSIBLE_READINGS), GPU_LEGEND),
    )
    yield Shelf(8, (Placed(in_flight, 12), Placed(implausible, 12)))
    gaps = rows(
        About(
            gpu.CAPABILITY_MISSING,
            "Which metrics are absent for good, on how many GPUs, and why?",
            title="What the boards do not give",
            none="every GPU gives every metric, or no data",
        ),
        Query(
            gauge(gpu.CAPABILITY_MISSING)
            .aggregate("max", *_GPU, "signal", "why")
            .aggregate("count", "cluster", "node", "signal", "why")
        ),
        {
            "node": "Node",
            "signal": "Metric",
            "why": "Why",
            "Value": "GPUs",
            "cluster": "Cluster",
        },
        sorted_by="Metric",
    )
    yield Shelf(7, (Placed(gaps, 24),))


def software() -> Iterable[Shelf]:
    """Driver and exporter: their versions, and how the exporter is."""
    driver = rows(
        About(gpu.DRIVER_INFO, "Which driver does each node run?", title="Drivers"),
        Query(
            gauge(gpu.DRIVER_INFO).aggregate(
                "max", "cluster", "node", "driver_version", "nvml_version", "cuda_version"
            )
        ),
        {
            "node": "Node",
            "driver_version": "Driver",
            "nvml_version": "NVML",
            "cuda_version": "CUDA",
            "cluster": "Cluster",
        },
        sorted_by="Node",
    )
    build = rows(
        About(own.BUILD_INFO, "Which exporter does each node run?", title="Exporters"),
        Query(
            gauge(own.BUILD_INFO).aggregate("max", "cluster", "node", "version", "python_version")
        ),
        {
            "node": "Node",
            "version": "veo-exporter",
            "python_version": "Python",
            "cluster": "Cluster",
        },
        sorted_by="Node",
    )
    yield Shelf(6, (Placed(driver, 12), Placed(build, 12)))
    reachable = states(
        About(
            None,
            "Since when can Prometheus reach, or not reach, each exporter?",
            title="Exporter reachable",
            unit="none",
            meaning="Whether the last scrape succeeded. While it is down, every value of the node is absent.",
            none="no target",
        ),
        Query(up().aggregate("min", "cluster", "node"), NODE_LEGEND),
        words=_UP,
    )
    configuration = number(
        About(
            own.CONFIG_LAST_RELOAD_SUCCESSFUL,
            "Is the configuration in force the one that was last asked for?",
            title="Configuration",
        ),
        Query(gauge(own.CONFIG_LAST_RELOAD_SUCCESSFUL).aggregate("min")),
        words={1: Wording("in force", PLAIN), 0: Wording("REFUSED", VERMILLION)},
    )
    dropped = graph(
        About(
            own.DROPPED,
            "Is anything left out because it was bad or too much?",
            title="Dropped by kind and reason",
            unit=RATE_UNITS[own.DROPPED.unit],
            none="nothing was dropped since the exporter started, or no data",
        ),
        Query(
            rate(own.DROPPED).aggregate("max", "cluster", "node", "kind", "reason"),
            f"{NODE_LEGEND} {{{{kind}}}} {{{{reason}}}}",
        ),
        colours={},
    )
    yield Shelf(
        6,
        (Placed(reachable, 10), Placed(configuration, 4), Placed(dropped, 10)),
        "The exporter itself",
    )
    cpu = graph(
        About(
            own.PROCESS_CPU_SECONDS,
            "What does watching cost, in cores?",
            title="CPU of the exporter",
            unit=RATE_UNITS[own.PROCESS_CPU_SECONDS.unit],
        ),
        Query(of_exporters(rate(own.PROCESS_CPU_SECONDS)), NODE_LEGEND),
        colours={},
    )
    memory = graph(
        About(
            own.PROCESS_RESIDENT_MEMORY,
            "Does the exporter's memory stay flat?",
            title="Memory of the exporter",
        ),
        Query(of_exporters(gauge(own.PROCESS_RESIDENT_MEMORY)), NODE_LEGEND),
        colours={},
    )
    yield Shelf(7, (Placed(cpu, 12), Placed(memory, 12)))
