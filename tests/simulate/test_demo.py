# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo as a whole: a job, the film that it names, the trace that both are in."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import yaml

from tests.daemon import Daemon, Page, daemon, wait_until
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
            # A job's own span may come in a later batch than its probe's.
            whole = all(job != "None" for job, _ in found.values())
            return (
                found if whole and {"ok", "defective"} <= {v for _, v in found.values()} else None
            )

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


@contextmanager
def demo_that_loses_a_gpu(folder: Path, at_seconds: int) -> Iterator[Daemon | None]:
    """Once that GPU was seen to be well; None if it was lost before that."""
    happenings = [{"at": f"{at_seconds}s", "what": "lose", "gpus": [3]}]
    story = changed("busy", happenings=happenings, repeat_every=None)
    scenario = folder / f"lost-after-{at_seconds}.yaml"
    scenario.write_text(yaml.safe_dump(story.model_dump(mode="json")))
    # Not even by request are names read from this machine.
    command = ["demo", "--scenario", str(scenario), "--gpu.proc-root", "/proc"]

    def is_well(page: Page) -> bool:
        # Three roads: the sweep that lists processes, their names, and the events' registration.
        return (
            page.values("veo_gpu_processes", gpu="3") == [1]
            and page.value("veo_gpu_processes", gpu="3", process="veo-engine") == 1
            and page.value("veo_gpu_xid_errors_total", gpu="3", xid="79") == 0
        )

    with daemon(command) as running:
        page = running.wait_for(lambda page: is_well(page) or page.states().get("3") == "lost")
        yield running if is_well(page) else None


def test_a_gpu_that_is_lost_is_told_by_an_xid_and_its_processes_have_made_up_names(
    tmp_path: Path,
) -> None:
    with (
        demo_that_loses_a_gpu(tmp_path, at_seconds=12) as hurried,
        # On a machine on which the demo has hardly begun by then: once more, with more time.
        nullcontext(hurried)
        if hurried
        else demo_that_loses_a_gpu(tmp_path, at_seconds=90) as running,
    ):
        assert running, "it was not seen well before it was lost"
        page = running.wait_for(
            lambda page: (
                page.value("veo_gpu_xid_errors_total", gpu="3", xid="79") == 1
                and page.value("veo_gpu_state", gpu="3", state="lost") == 1
                # Another road: what listens for events, made anew without the GPU that is lost.
                and page.value("veo_exporter_event_source_up", event_source="nvml_events") == 1
            ),
            2 * PATIENCE_SECONDS,
        )
        assert page.values("veo_gpu_processes", gpu="3") == []
        assert sum(page.values("veo_gpu_xid_errors_total")) == 1
        assert sum(page.values("veo_gpu_processes", process="veo-engine")) == 7
