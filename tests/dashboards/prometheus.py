# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus as a process of its own, on a free loopback port."""

import json
import queue
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.daemon import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
INTERVAL_SECONDS = 0.5
"""Between two scrapes, and as long as one of them may take."""
_LISTENING = re.compile(r'msg="Listening on".*address="?127\.0\.0\.1:(\d+)')


def tool(name: str) -> str:
    """Where a tool is: ours first, else the machine's."""
    ours = ROOT / ".tools/bin" / name
    found = str(ours) if ours.exists() else shutil.which(name)
    assert found, f"{name} is neither in .tools/bin nor on PATH: run `make tools`"
    return found


class Prometheus:
    """A running Prometheus that scrapes each of these targets twice a second.

    `jobs` are the jobs' targets: addresses with the labels that they get. `rules` is the text of a
    rule file.
    """

    def __init__(
        self, folder: Path, jobs: Mapping[str, Mapping[str, Mapping[str, str]]], rules: str
    ) -> None:
        (folder / "rules.yaml").write_text(rules)
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(_configuration(jobs)))
        command = [
            tool("prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        self._listening: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        port = self._listening.get(timeout=PATIENCE_SECONDS)
        assert port is not None, f"it ended before it listened: {self.log}"
        self.url = f"http://127.0.0.1:{port}"

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if match := _LISTENING.search(line):
                self._listening.put(match[1])
        self._listening.put(None)

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; while it is starting, None."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 503:
                    return None
                text = error.read().decode()
            raise AssertionError(f"{path} {parameters}: {text}") from None

    def series(self, expr: str) -> list[dict[str, str]]:
        """The labels of each series that an expression has now."""
        answer = self.ask("query", query=expr)
        return [] if answer is None else [series["metric"] for series in answer["result"]]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Its data is thrown away: there is nothing to end in good order.
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()


def _configuration(jobs: Mapping[str, Mapping[str, Mapping[str, str]]]) -> dict[str, Any]:
    interval = f"{round(1000 * INTERVAL_SECONDS)}ms"
    return {
        "global": {"scrape_interval": interval, "evaluation_interval": interval},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": job,
                "static_configs": [
                    {"targets": [address], "labels": dict(labels)}
                    for address, labels in targets.items()
                ],
            }
            for job, targets in jobs.items()
        ],
    }
