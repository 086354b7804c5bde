# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A stream that nobody waits for."""

import io
import os
import threading

from tests.daemon import wait_until
from veo_exporter.cli.patient_stream import PatientStream


def test_lines_come_out_in_order() -> None:
    out = io.StringIO()
    stream = PatientStream(out)
    for number in range(100):
        stream.write(f"{number}\n")
    stream.drain()
    assert out.getvalue() == "".join(f"{number}\n" for number in range(100))
    assert stream.dropped == 0


def test_a_reader_that_stands_still_costs_lines_and_no_time() -> None:
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w", buffering=1) as pipe:
        stream = PatientStream(pipe, max_waiting_lines=10)
        done = threading.Event()

        def write_much() -> None:
            # A pipe holds 64 KiB; this is 400.
            for _ in range(100):
                stream.write("x" * 4096 + "\n")
            done.set()

        threading.Thread(target=write_much, daemon=True).start()
        assert done.wait(10)
        # What the pipe holds, what waits and what is under way; the rest is counted.
        assert 100 - 64 * 1024 // 4097 - 10 - 3 <= stream.dropped < 100
        # Once somebody reads, all that was not dropped comes out.
        waiting = (100 - stream.dropped) * 4097
        while waiting > 0:
            waiting -= len(os.read(read, 1 << 16))
        assert waiting == 0


def test_a_reader_that_has_gone_is_no_fault() -> None:
    read, write = os.pipe()
    os.close(read)
    pipe = os.fdopen(write, "w", buffering=1)
    stream = PatientStream(pipe)
    stream.write("nobody reads this\n")
    wait_until(lambda: stream.dropped == 1)
