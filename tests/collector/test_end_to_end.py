# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A finished job through the room of traces into a real Collector, and through an agent as well."""

import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.traces.examples import (
    NOON,
    PARENT_ID,
    TRACE_ID,
    TRACEPARENT,
    UNREADABLE,
    Again,
    Job,
    Report,
    after,
)
from tools.collecting import Collecting, attributes_of, collecting, collector
from tools.programs import free_port
from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.traces import Tracing, open_emitter, traces_url

PATIENCE_SECONDS = 60.0
TRACE = f"{TRACE_ID:032x}"
OF_A_JOB = ("process video_jobs", "queue", "weights_load", "render")
Found = tuple[Mapping[str, Any], Mapping[str, Any]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collecting]:
    with collecting(tmp_path_factory.mktemp("collector")) as made:
        yield made


@contextmanager
def tracing_to(endpoint: str) -> Iterator[Tracing]:
    """The room, ended with the block; it counts what it sends and must not lose a span."""
    counts = {"exported": 0, "lost": 0}

    def count(what: str, spans: int) -> None:
        counts[what] += spans

    room = Tracing(
        open_emitter(
            traces_url(endpoint, {}),
            node="node-1",
            version="1.2.3",
            simulated=True,
            queue_limit=2048,
            exported=lambda spans: count("exported", spans),
            failed=lambda spans: count("lost", spans),
            dropped=lambda reason, spans: count("lost", spans),
        ),
        patience_seconds=30.0,
        waiting_limit=8,
        keep_unsampled=True,
        context_broken=lambda: None,
    )
    yield room
    room.stop(PATIENCE_SECONDS)
    assert counts["lost"] == 0


def wait_for(look: Callable[[], list[Found]]) -> list[Found]:
    """What is found, once something is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.05)
    return found


def spans_of(where: Collecting, job_id: str, names: Collection[str]) -> dict[str, list[Found]]:
    """A job's spans by name, once all of these are there: they may come in several batches."""
    spans: dict[str, list[Found]] = {}

    def look() -> list[Found]:
        spans.clear()
        spans.update(_spans_so_far(where, job_id))
        there = Counter({name: len(found) for name, found in spans.items()})
        return spans["process video_jobs"] if there >= Counter(names) else []

    (_,) = wait_for(look)
    return spans


def _spans_so_far(where: Collecting, job_id: str) -> dict[str, list[Found]]:
    found = list(where.spans())
    own = [span for span, _ in found if attributes_of(span).get("videogen.job.id") == job_id]
    if not own:
        return {}
    (root,) = own
    parents = {span["spanId"]: span.get("parentSpanId", "") for span, _ in found}
    spans: dict[str, list[Found]] = {}
    for span, resource in found:
        if span["traceId"] == root["traceId"] and _is_below(
            span["spanId"], root["spanId"], parents
        ):
            spans.setdefault(span["name"], []).append((span, resource))
    return spans


def _is_below(span_id: str, root_id: str, parents: Mapping[str, str]) -> bool:
    while span_id and span_id != root_id:
        span_id = parents.get(span_id, "")
    return bool(span_id)


def test_a_job_arrives_under_its_caller_with_its_probe(running: Collecting) -> None:
    job = Job(job_id="whole", traceparent=TRACEPARENT, tracestate="vendor=1")
    with tracing_to(running.otlp_url) as room:
        exemplar = room.exemplar(job)
        room.finished(job, ["/srv/videos/out.mp4"], 0.0)
        room.probed(room.parent_of(job), "/srv/videos/out.mp4", Report(), after(12), after(12.5))
    spans = spans_of(running, "whole", [*OF_A_JOB, "probe_video"])
    assert set(spans) == {*OF_A_JOB, "probe_video"}
    ((root, resource),) = spans["process video_jobs"]
    assert exemplar == {"trace_id": root["traceId"], "span_id": root["spanId"]}
    assert (root["traceId"], root["parentSpanId"]) == (TRACE, f"{PARENT_ID:016x}")
    assert root["traceState"] == "vendor=1"
    assert (root["startTimeUnixNano"], root["endTimeUnixNano"]) == (str(NOON), str(after(12)))
    assert root["kind"] == 5
    assert root["status"] == {}
    assert resource["service.name"] == "veo-exporter"
    assert resource["host.name"] == "node-1"
    assert resource["videogen.simulated"] is True
    ((probe, _),) = spans["probe_video"]
    assert probe["parentSpanId"] == root["spanId"]
    assert attributes_of(probe)["videogen.video.frames_missing"] == 5
    assert attributes_of(probe)["videogen.video.defects"] == ["frames_missing"]
    assert attributes_of(root)["videogen.output.verdict"] == "defective"


def test_errors_attempts_and_links_arrive(running: Collecting) -> None:
    job = Job(
        job_id="failing",
        outcome=Outcome.ABORTED,
        reason=Reason.XID,
        stage_at_end=Stage.RENDER,
        retries=[Again(after(5), Reason.UPSTREAM_503, 1.0)],
    )
    with tracing_to(running.otlp_url) as room:
        room.finished(job, ["/srv/a.mp4"], 0.0)
        room.probed(room.parent_of(job), "/srv/a.mp4", UNREADABLE, after(12), after(13))
    spans = spans_of(running, "failing", ["attempt", "attempt", "probe_video"])
    ((root, _),) = spans["process video_jobs"]
    assert root.get("parentSpanId", "") == ""
    assert root["status"]["code"] == 2
    assert attributes_of(root)["error.type"] == "xid"
    assert [event["timeUnixNano"] for event in root["events"]] == [str(after(5))]
    first, second = sorted(
        (span for span, _ in spans["attempt"]), key=lambda span: str(span["startTimeUnixNano"])
    )
    assert attributes_of(first)["error.type"] == "upstream_503"
    assert [link["spanId"] for link in second["links"]] == [first["spanId"]]
    ((probe, _),) = spans["probe_video"]
    assert attributes_of(probe)["error.type"] == "unreadable"


def test_spans_are_counted_with_exemplars(running: Collecting) -> None:
    with tracing_to(running.otlp_url) as room:
        room.finished(Job(job_id="counted", engine="engine-of-this-test"), [], 0.0)
    page, lines = "", list[str]()

    def look() -> list[Found]:
        nonlocal page
        request = urllib.request.Request(
            running.metrics_url, headers={"Accept": "application/openmetrics-text; version=1.0.0"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            page = answer.read().decode()
        lines[:] = [
            line
            for line in page.splitlines()
            if line.startswith("traces_span_metrics_duration_seconds_bucket{")
            and "engine-of-this-test" in line
        ]
        return [({}, {})] if lines else []

    wait_for(look)
    (root,) = (span for span, _ in spans_of(running, "counted", OF_A_JOB)["process video_jobs"])
    # 12 s: above 10, not above 20.
    (bucket,) = (line for line in lines if 'le="20.0"' in line or 'le="20"' in line)
    assert " 1.0 # {" in bucket or " 1 # {" in bucket
    assert root["traceId"] in bucket
    assert "videogen_job_id" not in page


def test_an_agent_passes_on_spans_and_log_lines(running: Collecting, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    engine_log = logs / "veo-engine.log"
    engine_log.write_text("an old line\n")
    http = f"127.0.0.1:{free_port()}"
    environment = {
        "K8S_POD_NAME": "veo-exporter-x7k2p",
        "K8S_NAMESPACE": "video",
        "VEO_GATEWAY": running.otlp_grpc_address,
        "VEO_GATEWAY_INSECURE": "true",
        "VEO_COLLECTOR_STATE": str(tmp_path / "state"),
        "VEO_COLLECTOR_OTLP_HTTP": http,
        "VEO_COLLECTOR_OTLP_GRPC": f"127.0.0.1:{free_port()}",
        "VEO_ENGINE_LOGS": f"{logs}/*.log",
    }
    with collector("agent.yaml", tmp_path, environment):
        with tracing_to(f"http://{http}") as room:
            room.finished(Job(job_id="through-the-agent"), [], 0.0)
        spans = spans_of(running, "through-the-agent", OF_A_JOB)
        # Until it has looked at the file once, it does not know what is old in it.
        wait_for_line(tmp_path / "otelcol.log", "Started watching file")
        with engine_log.open("a") as file:
            file.write(f'RENDER_ABORT frame=118 gpu=3 reason="xid" trace_id={TRACE}\n')
        (record, resource) = wait_for(lambda: _aborts(running))[0]
    assert resource["k8s.pod.name"] == "veo-exporter-x7k2p"
    assert resource["k8s.namespace.name"] == "video"
    assert record["traceId"] == TRACE
    assert record["severityNumber"] == 17
    assert attributes_of(record)["log.file.name"] == "veo-engine.log"
    assert not any(
        record["body"]["stringValue"] == "an old line" for record, _ in running.log_records()
    )
    ((_, resource),) = spans["process video_jobs"]
    assert resource["k8s.pod.name"] == "veo-exporter-x7k2p"
    assert resource["service.name"] == "veo-exporter"


def test_an_agent_keeps_what_the_gateway_does_not_take(tmp_path: Path) -> None:
    http = f"127.0.0.1:{free_port()}"
    gateway_port = free_port()
    environment = {
        "K8S_POD_NAME": "p",
        "K8S_NAMESPACE": "n",
        "VEO_GATEWAY": f"127.0.0.1:{gateway_port}",
        "VEO_GATEWAY_INSECURE": "true",
        "VEO_COLLECTOR_STATE": str(tmp_path / "state"),
        "VEO_COLLECTOR_OTLP_HTTP": http,
        "VEO_COLLECTOR_OTLP_GRPC": f"127.0.0.1:{free_port()}",
        "VEO_ENGINE_LOGS": f"{tmp_path}/none/*.log",
    }
    with collector("agent.yaml", tmp_path, environment), tracing_to(f"http://{http}") as room:
        room.finished(Job(job_id="kept"), [], 0.0)
    # The agent has ended too, with no gateway ever there.
    with collecting(tmp_path / "gateway") as gateway:
        environment["VEO_GATEWAY"] = gateway.otlp_grpc_address
        with collector("agent.yaml", tmp_path, environment):
            assert len(spans_of(gateway, "kept", OF_A_JOB)["process video_jobs"]) == 1


def _aborts(where: Collecting) -> list[Found]:
    return [
        found
        for found in where.log_records()
        if "RENDER_ABORT" in str(found[0]["body"].get("stringValue"))
    ]


def wait_for_line(path: Path, text: str) -> None:
    wait_for(lambda: [({}, {})] if text in path.read_text(errors="replace") else [])
