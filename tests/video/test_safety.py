# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Files that mean harm, and an ffprobe that does."""

import os
import time
from pathlib import Path

import pytest
import yaml

from tests.video.conftest import Film
from veo_exporter.catalog import video as catalog
from veo_exporter.exposition import Folds
from veo_exporter.video import Origins, ProbeRequest, VideoMetrics, as_json
from veo_exporter.video.definitions import Failure, Verdict, VideoReport
from veo_exporter.video.ffprobe import Ffprobe, Limits, MissingProgram
from veo_exporter.video.gate import Entry, admit
from veo_exporter.video.probe import Probe

RULES = Path(__file__).resolve().parents[2] / "alerts/source/jobs-alerts.yaml"


def failure(report: VideoReport) -> tuple[str, str]:
    assert report.verdict is Verdict.ERROR
    assert isinstance(report.failure, Failure)
    return report.failure.kind.value, report.failure.message


def probe_with(script: str, folder: Path, **limits: object) -> Probe:
    """A program of ours in ffprobe's place."""
    program = folder / "ffprobe"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return Probe(ffprobe=Ffprobe(Limits(**limits), program))  # type: ignore[arg-type]


def large(path: Path) -> None:
    """A file for which there is a minute: others go first, and a busy machine has many of them."""
    with path.open("wb") as film:
        film.truncate(2 << 30)


@pytest.fixture
def confined(tmp_path: Path) -> Probe:
    (tmp_path / "out").mkdir()
    return Probe(ffprobe=Ffprobe(Limits()), roots=(tmp_path / "out",))


def test_a_file_of_no_bytes_is_empty(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "zero.mp4").touch()
    assert failure(probe.look_at(tmp_path / "zero.mp4")) == ("empty", "has no bytes")


def test_a_file_that_is_not_there(probe: Probe, tmp_path: Path) -> None:
    said = failure(probe.look_at(tmp_path / "gone.mp4"))
    assert said == ("unreadable", "cannot be opened: No such file or directory")


def test_text_named_mp4_is_unreadable(films: dict[str, Path], probe: Probe) -> None:
    kind, message = failure(probe.look_at(films["text.mp4"]))
    assert (kind, message) == (
        "unreadable",
        "text.mp4: Invalid data found when processing input",
    )


@pytest.fixture
def cut(film: Film, tmp_path: Path) -> Path:
    """The commonest broken output: its writer died before the index, which comes last."""
    whole = film("unstreamed.mp4", "-f", "lavfi", "-i", "testsrc=rate=24:size=128x72", "-t", "2")
    path = tmp_path / "cut.mp4"
    path.write_bytes(whole.read_bytes()[:-2000])
    return path


def test_a_film_without_its_end_is_told_apart_from_text(
    probe: Probe, cut: Path, films: dict[str, Path]
) -> None:
    report = probe.look_at(cut)
    assert failure(report) == (
        "unreadable",
        "moov atom not found: cut.mp4: Invalid data found when processing input",
    )
    assert [finding.defect.value for finding in report.findings] == ["truncated"]
    said = as_json(report)
    assert (said["truncated"], said["frame_count"]) == (True, None)
    assert [found["name"] for found in said["defects"]] == ["truncated"]
    text = probe.look_at(films["text.mp4"])
    assert (text.findings, as_json(text)["truncated"]) == ((), None)


def test_the_alert_on_cut_files_sees_it(probe: Probe, cut: Path) -> None:
    folds = Folds()
    request = ProbeRequest(path=cut)
    VideoMetrics(folds, Origins([], lambda label: None)).fold(request, probe.look_at(cut))
    rows = {
        labels[-1]: value
        for family in folds.families(0)
        if family.spec is catalog.DEFECTS
        for labels, value in family.rows
        if value
    }
    assert rows == {"unreadable": 1, "truncated": 1}
    alerts = yaml.safe_load(RULES.read_text().replace("<<", "").replace(">>", ""))
    [rule] = [
        rule
        for group in alerts["groups"]
        for rule in group["rules"]
        if rule["alert"] == "VeoVideoTruncated"
    ]
    assert 'defect=~"frames_missing|truncated"' in rule["expr"]


def test_what_ffprobe_said_first_and_last_is_told_within_a_bound(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"film")
    script = (
        "echo '[mov @ 0x5] the cause' >&2; echo between >&2; "
        "printf 'y%.0s' $(seq 300) >&2; echo >&2; exit 1"
    )
    kind, message = failure(probe_with(script, tmp_path).look_at(tmp_path / "film.mp4"))
    assert (kind, message) == ("unreadable", "the cause: " + "y" * 200)


@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4"])
def test_a_playlist_is_not_followed(
    films: dict[str, Path], probe: Probe, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:7\n#EXTINF:6,\n{films['healthy.mp4']}\n#EXT-X-ENDLIST\n"
    )
    kind, message = failure(probe.look_at(tmp_path / name))
    assert kind == "forbidden"
    assert "Format not on whitelist" in message


def test_a_list_of_films_is_not_followed(
    films: dict[str, Path], probe: Probe, tmp_path: Path
) -> None:
    (tmp_path / "beside.mp4").write_bytes(films["healthy.mp4"].read_bytes())
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile beside.mp4\n")
    assert failure(probe.look_at(tmp_path / "list.mp4"))[0] == "forbidden"


def test_a_film_inside_the_root_is_read(
    films: dict[str, Path], confined: Probe, tmp_path: Path
) -> None:
    inside = tmp_path / "out/film.mp4"
    inside.write_bytes(films["healthy.mp4"].read_bytes())
    (tmp_path / "out/link.mp4").symlink_to(inside)
    assert confined.look_at(inside).verdict is Verdict.OK
    assert confined.look_at(tmp_path / "out/link.mp4").verdict is Verdict.OK


def test_no_link_leads_out_of_the_root(
    films: dict[str, Path], confined: Probe, tmp_path: Path
) -> None:
    (tmp_path / "out/film.mp4").symlink_to(films["healthy.mp4"])
    (tmp_path / "out/folder").symlink_to(films["healthy.mp4"].parent)
    (tmp_path / "outside.mp4").write_bytes(b"film")
    (tmp_path / "out/loop.mp4").symlink_to(tmp_path / "out/loop.mp4")
    for path in (
        tmp_path / "out/film.mp4",
        tmp_path / "out/folder/healthy.mp4",
        tmp_path / "out/../outside.mp4",
        Path("/proc/self/cwd/pyproject.toml"),
    ):
        assert failure(confined.look_at(path)) == (
            "forbidden",
            "lies outside the folders that may be read: name its folder in video.roots",
        )
    assert failure(confined.look_at(tmp_path / "out/loop.mp4"))[0] == "forbidden"
    assert failure(confined.look_at(Path("out/film.mp4"))) == (
        "forbidden",
        "wants an absolute path",
    )


def test_only_regular_files_are_opened(probe: Probe, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    assert failure(probe.look_at(tmp_path / "pipe.mp4")) == (
        "forbidden",
        "is a FIFO, not a regular file",
    )
    assert failure(probe.look_at(Path("/dev/zero")))[1] == "is a device, not a regular file"
    assert failure(probe.look_at(tmp_path))[1] == "is a directory, not a regular file"
    assert failure(probe.look_at(Path("a\0b.mp4")))[0] == "unreadable"


def test_an_ffprobe_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(b"film")
    probe = probe_with(f"sleep 600 & echo $! > {tmp_path}/pid; wait", tmp_path, deadline_seconds=3)
    # Files may not be written, so the number of its child goes out by a FIFO.
    os.mkfifo(tmp_path / "pid")
    reader = os.open(tmp_path / "pid", os.O_RDONLY | os.O_NONBLOCK)
    begun = time.monotonic()
    assert failure(probe.look_at(film)) == ("timeout", "took longer than 3 s")
    # Its child would have slept ten minutes.
    assert time.monotonic() - begun < 60
    child = int(os.read(reader, 20))
    os.close(reader)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists():
        # Nobody may be there to reap it; ended it has in any case.
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_ffprobe_that_closes_its_output_and_stays_is_ended(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"film")
    probe = probe_with("exec >&- 2>&-; exec sleep 600", tmp_path, deadline_seconds=0.3)
    assert failure(probe.look_at(tmp_path / "film.mp4"))[0] == "timeout"


def test_an_ffprobe_that_spins_is_ended_by_its_cpu_limit(tmp_path: Path) -> None:
    large(tmp_path / "film.mp4")
    # Lowered once more, or the deadline would come first.
    probe = probe_with("ulimit -St 1; while :; do :; done", tmp_path)
    kind, message = failure(probe.look_at(tmp_path / "film.mp4"))
    assert kind == "timeout"
    assert "of CPU" in message


def test_a_flood_of_output_is_cut(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"film")
    line = "packet|stream_index=0|pts=1|dts=1|duration=1|flags=K_"
    probe = probe_with(f"exec yes '{line}'", tmp_path, output_bytes=100_000)
    kind, message = failure(probe.look_at(tmp_path / "film.mp4"))
    assert kind == "unreadable"
    assert "more than 100000 bytes about it: raise video.output_limit_mebibytes" in message


def test_more_frames_than_allowed_are_not_kept(films: dict[str, Path]) -> None:
    probe = Probe(ffprobe=Ffprobe(Limits()), most_frames=100)
    kind, message = failure(probe.look_at(films["healthy.mp4"]))
    assert (kind, message.endswith("it has more than 100 frames")) == ("unreadable", True)


def test_complaints_are_bounded(films: dict[str, Path], tmp_path: Path) -> None:
    probe = probe_with("yes complaint | head -c 1000000 >&2; yes x$$ | head -20 >&2", tmp_path)
    report = probe.look_at(films["healthy.mp4"])
    assert failure(report)[0] == "unreadable"
    assert sum(map(len, report.warnings)) < 20_000


def test_a_crash_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"film")
    report = probe_with("kill -SEGV $$", tmp_path).look_at(tmp_path / "film.mp4")
    assert failure(report) == ("unreadable", "ffprobe crashed on it (SIGSEGV)")
    assert report.failure is not None
    assert report.failure.crashed


def test_limits_are_in_force_and_others_go_first(tmp_path: Path) -> None:
    large(tmp_path / "film.mp4")
    script = 'until [ "$(nice)" = 10 ]; do :; done; cat /proc/$$/limits; env'
    probe = probe_with(script, tmp_path, memory_bytes=1 << 29)
    said = bytearray()
    with admit(tmp_path / "film.mp4", None) as entry:
        probe.ffprobe.run(entry, said.extend)
    limits = {line[:25].strip(): line[25:].split()[:2] for line in said.decode().splitlines()}
    assert limits["Max address space"] == [str(1 << 29)] * 2
    assert limits["Max cpu time"] == ["60", "61"]
    assert limits["Max file size"] == limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == ["64", "64"]
    assert not any("proxy" in name.lower() or name.startswith("VEO_") for name in limits)


def test_a_memory_bomb_is_stopped_by_its_limit(tmp_path: Path) -> None:
    large(tmp_path / "film.mp4")
    script = "x=xxxxxxxx; while :; do x=$x$x; done"
    kind, _ = failure(
        probe_with(script, tmp_path, memory_bytes=1 << 28).look_at(tmp_path / "film.mp4")
    )
    assert kind == "unreadable"


def test_a_film_that_grows_meanwhile_is_warned_of(films: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(films["healthy.mp4"].read_bytes())

    class Growing(Ffprobe):
        def _command(self, entry: Entry, patience_seconds: float, *, thorough: bool) -> list[str]:
            with path.open("ab") as film:
                film.write(b"more")
            return super()._command(entry, patience_seconds, thorough=thorough)

    report = Probe(ffprobe=Growing(Limits())).look_at(path)
    assert "it was written to while it was probed" in report.warnings


def test_a_film_replaced_meanwhile_is_probed_as_it_was(
    films: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(films["healthy.mp4"].read_bytes())

    class Replaced(Ffprobe):
        def _command(self, entry: Entry, patience_seconds: float, *, thorough: bool) -> list[str]:
            path.unlink(missing_ok=True)
            path.symlink_to("/etc/passwd")
            return super()._command(entry, patience_seconds, thorough=thorough)

    report = Probe(ffprobe=Replaced(Limits()), roots=(tmp_path,)).look_at(path)
    assert report.verdict is Verdict.OK


def test_a_missing_ffprobe_is_named_with_the_line_that_installs_it(
    films: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgram, match=r"^ffprobe is not on PATH: apt-get install ffmpeg$"):
        Probe(ffprobe=Ffprobe(Limits())).look_at(films["healthy.mp4"])


def test_patience_grows_with_the_file() -> None:
    limits = Limits(deadline_seconds=60)
    assert limits.patience_seconds(1) == 5
    assert limits.patience_seconds(200_000_000) == 10
    assert limits.patience_seconds(10**12) == 60


def test_once_aborted_it_starts_no_more(films: dict[str, Path]) -> None:
    ffprobe = Ffprobe(Limits())
    ffprobe.abort()
    assert failure(Probe(ffprobe=ffprobe).look_at(films["healthy.mp4"]))[0] == "timeout"
