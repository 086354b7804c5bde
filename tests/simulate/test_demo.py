# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo as a whole: a job, the film that it names, the trace that both are in."""

from pathlib import Path

from tests.daemon import daemon, wait_until
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
