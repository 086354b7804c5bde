# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that write a page on command, so that both sides can be timed in turn."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from bench.nodes import sysfs_root
from bench.servers import OTHER_PYTHON, ROOT, ServerFailed, ended
from tests.fake_nvml import FakeNode

ANSWER_SECONDS: Final = 20.0


class Writer:
    """One side: takes a word, gives its answer."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process = process
        self._name = name

    def ask(self, word: str) -> dict[str, Any]:
        """Have it do something. Raises ServerFailed if it does not answer."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        print(word, file=self._process.stdin, flush=True)
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            raise ServerFailed(f"{self._name} does not answer to {word!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def our_writer(node: FakeNode) -> Iterator[Writer]:
    command = [sys.executable, "-m", "bench.render_ours", str(sysfs_root(node))]
    with _running(command, node, "our page") as writer:
        yield writer


@contextmanager
def their_writer(node: FakeNode) -> Iterator[Writer]:
    command = [str(OTHER_PYTHON), str(ROOT / "bench/render_theirs.py")]
    with _running(command, node, "nvitop-exporter's page") as writer:
        yield writer


@contextmanager
def _running(command: list[str], node: FakeNode, name: str) -> Iterator[Writer]:
    environment = os.environ | node.environment()
    with ended(
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    ) as process:
        yield Writer(process, name)
