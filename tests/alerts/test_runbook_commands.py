# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every grep of a runbook finds what it is there to find: lines as they really are."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.daemon import wait_until
from tools.monitoring import monitoring
from tools.programs import ROOT

FOLDER = ROOT / "alerts/runbooks"
_PIPED = re.compile(
    r"""(?P<source>[^`"|\n]*?)\ *\|\ *
        grep\ (?P<flags>(?:-\w+\ )*)(?P<pattern>'[^']*'|[\w.-]+)""",
    re.VERBOSE,
)

KERNEL = """\
[Mon Nov 30 12:00:01 2026] NVRM: Xid (PCI:0000:4e:00): 79, pid=4242, name=python3, GPU has fallen off the bus.
[Mon Nov 30 12:00:02 2026] NVRM: GPU 0000:4e:00.0: RmInitAdapter failed! (0x24:0xffff:1240)
[Mon Nov 30 12:00:03 2026] pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error message received from 0000:4e:00.0
[Mon Nov 30 12:00:04 2026] INFO: task python3:4242 blocked for more than 120 seconds.
[Mon Nov 30 12:00:05 2026] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[Mon Nov 30 12:00:05 2026] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python3,pid=4242,uid=0
[Mon Nov 30 12:00:05 2026] Out of memory: Killed process 4242 (python3) total-vm:9000kB, anon-rss:8000kB
[Mon Nov 30 12:00:06 2026] nouveau 0000:4e:00.0: NVIDIA AD102 (192000a1)
[Mon Nov 30 12:00:07 2026] Kernel panic - not syncing: Fatal exception in interrupt
[Mon Nov 30 12:00:08 2026] usb 1-1: new high-speed USB device number 2 using xhci_hcd
"""
"""As kernel and driver write them."""

FIXED = {
    "sudo dmesg -T": KERNEL,
    "journalctl -k -b -1": KERNEL,
    "sudo journalctl --since -2h": (
        "Nov 30 12:00:01 node sudo[7]: root : COMMAND=/usr/bin/apt-get install nvidia-driver-570\n"
        "Nov 30 12:00:02 node systemd[1]: Stopping veo-exporter.service...\n"
        "Nov 30 12:00:03 node sshd[9]: Accepted publickey for root\n"
    ),
    "lsmod": "nvidia_uvm 1581056 0\nnvidia 56717312 1 nvidia_uvm\nxhci_hcd 331776 1 xhci_pci\n",
    "sudo ss -ltnp": (
        'LISTEN 0 128 *:9420 *:* users:(("veo-exporter",pid=7,fd=9))\n'
        'LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=1,fd=3))\n'
    ),
    "curl -s ALERTMANAGER:9093/api/v2/silences": (
        '[{"id":"1","matchers":[{"name":"alertname","value":"VeoWatchdog","isEqual":true}]}]\n[]\n'
    ),
}


@dataclass(frozen=True)
class Grep:
    """A command's output, searched."""

    page: str
    source: str
    flags: tuple[str, ...]
    pattern: str

    @property
    def words(self) -> list[str]:
        """What it searches for, each by itself."""
        if "-E" not in self.flags:
            return [self.pattern]
        inner = re.fullmatch(r"(.*)\(([^()]*)\)(.*)", self.pattern)
        if inner is None:
            return self.pattern.split("|")
        return [f"{inner[1]}{word}{inner[3]}" for word in inner[2].split("|")]

    def run(self, text: str, pattern: str) -> list[str]:
        """What the real grep gives."""
        pattern = pattern.replace("NODE", "node-a")
        command = ["grep", *self.flags, "--", pattern]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout.splitlines()


def greps() -> list[Grep]:
    found = []
    for path in sorted(FOLDER.glob("*.md")):
        for match in _PIPED.finditer(path.read_text()):
            source = match["source"].split(";")[-1].strip()
            flags = tuple(match["flags"].split())
            found.append(Grep(path.stem, source, flags, match["pattern"].strip("'")))
    return found


GREPS = greps()


def test_every_grep_is_seen() -> None:
    texts = [path.read_text() for path in FOLDER.glob("*.md")]
    assert len(GREPS) == sum(text.count("grep ") for text in texts) > 10


def post(url: str, kind: str, job: str, **data: object) -> None:
    said = {
        "specversion": "1.0",
        "id": f"{job}-{kind}",
        "source": "test",
        "type": f"veo.job.{kind}",
        "subject": job,
        "time": datetime.now(UTC).isoformat(),
        "data": {"engine": "veo-engine", **data},
    }
    request = urllib.request.Request(
        f"{url}/api/v1/events",
        data=json.dumps(said).encode(),
        headers={"Content-Type": "application/cloudevents+json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 202


def make_films(folder: Path) -> list[Path]:
    """One that stops too early, and one whose end was not written."""
    ffmpeg = shutil.which("ffmpeg")
    assert ffmpeg is not None, "ffmpeg is not there: apt-get install ffmpeg"
    films = [folder / "short.mp4", folder / "cut.mp4"]
    for film in films:
        command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc=rate=24:size=128x72"]
        command += ["-frames:v", "144", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
        subprocess.run([*command, str(film)], check=True)
    whole = films[1].read_bytes()
    films[1].write_bytes(whole[: len(whole) * 2 // 3])
    return films


@pytest.fixture(scope="module", params=["console", "json"])
def exporters_log(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """What an exporter wrote to whom a job was lost, and whose other jobs wrote bad files."""
    folder = tmp_path_factory.mktemp("exporter")
    films, written = make_films(folder), folder / "log"
    command = [sys.executable, "-m", "veo_exporter", "serve", "--web.listen-address=127.0.0.1:0"]
    command += ["--gpu.enabled=false", "--jobs.lost-after=1s", f"--log.format={request.param}"]
    command += [f'--video.roots=["{folder}"]']
    with written.open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            pattern = re.compile(r"http://localhost:\d+")
            url = wait_until(lambda: pattern.search(written.read_text()))[0]
            post(url, "started", "job-1")
            for number, film in enumerate(films, 2):
                request_ = {"width": 128, "height": 72, "fps": 24, "duration_s": 6.2}
                outputs = [{"path": str(film)}]
                post(url, "submitted", f"job-{number}", request=request_)
                post(url, "finished", f"job-{number}", outcome="success", outputs=outputs)
            wait_until(lambda: "job lost" in written.read_text())
            wait_until(lambda: written.read_text().count("video probed") == len(films))
            yield written.read_text()
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a real Prometheus and a real Alertmanager answer."""
    targets = {"node-a": "127.0.0.1:1"}
    with monitoring(tmp_path_factory.mktemp("m"), targets, lambda *_: None) as running:

        def ask(url: str) -> str:
            with urllib.request.urlopen(url, timeout=60) as answer:
                text: str = answer.read().decode()
                return text

        targets_url = f"{running.prometheus_url}/api/v1/targets"
        wait_until(lambda: "node-a" in ask(targets_url))
        yield {
            "curl -s PROMETHEUS:9090/metrics": ask(f"{running.prometheus_url}/metrics"),
            "curl -s PROMETHEUS:9090/api/v1/targets": ask(targets_url),
            "curl -s ALERTMANAGER:9093/metrics": ask(f"{running.alertmanager_url}/metrics"),
        }


def check(grep: Grep, text: str) -> None:
    """Each word finds a line, and not every line is found."""
    for word in grep.words:
        found = grep.run(text, word)
        if "-c" in grep.flags:
            assert int(found[0]) > 0, word
            continue
        assert found, word
    found = grep.run(text, grep.pattern)
    assert "-c" in grep.flags or len(found) < len(text.splitlines())


OF_THE_EXPORTER = [grep for grep in GREPS if grep.source.startswith("journalctl -u veo-exporter")]
OF_OTHERS = [grep for grep in GREPS if grep not in OF_THE_EXPORTER]


def name_of(grep: Grep) -> str:
    return f"{grep.page}-{grep.pattern}"


@pytest.mark.parametrize("grep", OF_THE_EXPORTER, ids=name_of)
def test_the_exporters_log_has_what_is_searched_for(grep: Grep, exporters_log: str) -> None:
    check(grep, exporters_log)


@pytest.mark.parametrize("grep", OF_OTHERS, ids=name_of)
def test_others_say_what_is_searched_for(grep: Grep, pages: dict[str, str]) -> None:
    check(grep, (FIXED | pages)[grep.source])
