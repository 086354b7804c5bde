# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo as a whole: a job, the film that it names, the trace that both are in."""

from pathlib import Path

import yaml

from tests.daemon import daemon, wait_until
from tests.simulate.nodes import changed
from tools.collecting import attributes_of, collecting

PATIENCE_SECONDS = 90.0


def test_a_trace_of_the_demo_leads_from_a_job_to_the_verdict_on_its_film(tmp_path: Path) -> None:
    with (
        collecting(tmp_path / "collector") as collector,
        daemon(["demo"], {"VEO_TRACES__ENDPOINT": collector.otlp_url}) as running,
    ):

        def verdicts() -> dict[str, tuple[str, str]]:
            """Of jobs' films by name: the job, and the verdict in its trace."""
            spans = [span for span, _ in collector.spans()]
            jobs = {span["spanId"]: attributes_of(span).get("videogen.job.id") for span in spans}
            found = {}
            for span in spans:
                if span["name"] == "probe_video":
                    said = attributes_of(span)
                    name = Path(str(said["file.path"])).name
                    found[name] = (
                        str(jobs.get(span.get("parentSpanId", ""))),
                        str(said["videogen.video.verdict"]),
                    )
            return found

        def good_and_bad() -> dict[str, tuple[str, str]] | None:
            found = verdicts()
            return found if {"ok", "defective"} <= {v for _, v in found.values()} else None

        found = wait_until(good_and_bad, PATIENCE_SECONDS)
        for name, (job, verdict) in found.items():
            # demo-000001-healthy.mp4 is the film of demo-000001.
            assert job == "-".join(name.split("-")[:2]), (name, job)
            if "one-frame-dropped" in name:
                assert verdict == "defective"
        page = running.wait_for(
            lambda page: (
                sum(page.values("veo_video_files_total", source="event", engine="veo-engine")) > 1
                and sum(page.values("veo_video_files_total", source="demo")) > 1
            )
        )
        assert sum(page.values("veo_exporter_dropped_total", kind="video_file")) == 0
        assert page.value("veo_exporter_simulated") == 1


def test_a_gpu_that_is_lost_is_told_by_an_xid_and_its_processes_have_made_up_names(
    tmp_path: Path,
) -> None:
    happenings = [{"at": "12s", "what": "lose", "gpus": [3]}]
    story = changed("busy", happenings=happenings, repeat_every=None)
    scenario = tmp_path / "lost.yaml"
    scenario.write_text(yaml.safe_dump(story.model_dump(mode="json")))
    # Not even by request are names read from this machine.
    command = ["demo", "--scenario", str(scenario), "--gpu.proc-root", "/proc"]
    with daemon(command) as running:
        # Three roads: the sweep that lists processes, their names, and the events' registration.
        running.wait_for(
            lambda page: (
                page.values("veo_gpu_processes", gpu="3") == [1]
                and page.value("veo_gpu_processes", gpu="3", process="veo-engine") == 1
                and page.value("veo_gpu_xid_errors_total", gpu="3", xid="79") == 0
            )
        )
        page = running.wait_for(
            lambda page: (
                page.value("veo_gpu_xid_errors_total", gpu="3", xid="79") == 1
                and page.value("veo_gpu_state", gpu="3", state="lost") == 1
            ),
            PATIENCE_SECONDS,
        )
        assert page.values("veo_gpu_processes", gpu="3") == []
        assert sum(page.values("veo_gpu_xid_errors_total")) == 1
        assert sum(page.values("veo_gpu_processes", process="veo-engine")) == 7
        assert page.value("veo_exporter_event_source_up", event_source="nvml_events") == 1
