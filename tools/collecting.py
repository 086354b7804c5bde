# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A real Collector on the loopback, with this project's own configurations."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.programs import ROOT, Program, free_port, tool

CONFIGURATIONS: Final = ROOT / "collector-config"
OTLP_HTTP_PORT: Final = 4318
OTLP_GRPC_PORT: Final = 4317
METRICS_PORT: Final = 8889
OWN_METRICS_PORT: Final = 8888


@dataclass(frozen=True, slots=True)
class Collecting:
    """Where it takes in, and where it writes what came."""

    otlp_url: str
    otlp_grpc_address: str
    metrics_address: str
    """Where it tells what its span metrics make of the traces."""
    own_metrics_address: str
    """Where it tells of itself: what it took in, passed on and refused."""
    traces_file: Path
    logs_file: Path
    program: Program
    """To see whether it still runs."""

    @property
    def metrics_url(self) -> str:
        """The page of its span metrics."""
        return f"http://{self.metrics_address}/metrics"

    def spans(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Every span written so far, as OTLP's JSON has it, with the attributes of its resource."""
        for batch in _lines(self.traces_file):
            for resource in batch["resourceSpans"]:
                attributes = attributes_of(resource["resource"])
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        yield span, attributes

    def log_records(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Every log record written so far, likewise."""
        for batch in _lines(self.logs_file):
            for resource in batch["resourceLogs"]:
                attributes = attributes_of(resource["resource"])
                for scope in resource["scopeLogs"]:
                    for record in scope["logRecords"]:
                        yield record, attributes


@contextmanager
def collecting(folder: Path, *, usual_ports: bool = False) -> Iterator[Collecting]:
    """A Collector with demo.yaml that writes into this folder, until the block ends.

    With `usual_ports` it gets the ports that people know, if those are free.

    Raises ProgramFailedError if it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    http = f"127.0.0.1:{free_port(OTLP_HTTP_PORT if usual_ports else 0)}"
    grpc = f"127.0.0.1:{free_port(OTLP_GRPC_PORT if usual_ports else 0)}"
    metrics = f"127.0.0.1:{free_port(METRICS_PORT if usual_ports else 0)}"
    own_port = free_port(OWN_METRICS_PORT if usual_ports else 0)
    environment = {
        "VEO_COLLECTOR_OTLP_HTTP": http,
        "VEO_COLLECTOR_OTLP_GRPC": grpc,
        "VEO_COLLECTOR_METRICS": metrics,
        "VEO_COLLECTOR_OWN_PORT": str(own_port),
        "VEO_COLLECTOR_OUTPUT": str(folder),
    }
    with collector("demo.yaml", folder, environment) as program:
        yield Collecting(
            otlp_url=f"http://{http}",
            otlp_grpc_address=grpc,
            metrics_address=metrics,
            own_metrics_address=f"127.0.0.1:{own_port}",
            traces_file=folder / "traces.jsonl",
            logs_file=folder / "logs.jsonl",
            program=program,
        )


@contextmanager
def collector(name: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Program]:
    """A Collector with one of the shipped configurations; its log goes into the folder."""
    health = f"127.0.0.1:{free_port()}"
    own = {"VEO_COLLECTOR_HEALTH": health, "VEO_COLLECTOR_OWN_PORT": str(free_port())}
    program = Program(
        f"otelcol with {name}",
        [tool("otelcol"), f"--config={CONFIGURATIONS / name}"],
        ready_url=f"http://{health}",
        log=folder / "otelcol.log",
        environment={**os.environ, **own, **environment},
    )
    with program:
        program.wait_until_ready()
        yield program


def attributes_of(carrier: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a span, a resource or a record, from OTLP's JSON."""
    return {pair["key"]: _value(pair["value"]) for pair in carrier.get("attributes", ())}


def _value(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "intValue":
        return int(content)
    if kind == "arrayValue":
        return [_value(item) for item in content.get("values", ())]
    return content


def _lines(path: Path) -> Iterator[Any]:
    if not path.exists():
        return
    for line in path.read_text().splitlines(keepends=True):
        # The last one may still be being written.
        if line.endswith("\n"):
            yield json.loads(line)
