# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""nvitop-exporter's page, written on command. Runs in its own environment's interpreter.

Reads words from standard input, a line each, and answers each with a line of JSON:
`sample` has its collector read all GPUs; `text` and `openmetrics` write the page and tell the time.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Final

from nvitop import Device  # type: ignore[import-not-found]
from nvitop_exporter.exporter import PrometheusExporter  # type: ignore[import-not-found]
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

WRITERS: Final[dict[str, Callable[[CollectorRegistry], bytes]]] = {
    "text": generate_latest,
    "openmetrics": generate_openmetrics,
}


def main() -> None:
    devices = Device.from_indices(range(Device.count()))
    exporter = PrometheusExporter(devices, hostname="bench", registry=REGISTRY)
    for line in sys.stdin:
        started = time.perf_counter()
        page = b""
        if line.strip() == "sample":
            exporter.update_host()
            for device in devices:
                exporter.update_device(device)
        else:
            page = WRITERS[line.strip()](REGISTRY)
        seconds = time.perf_counter() - started
        series = sum(1 for row in page.splitlines() if row and not row.startswith(b"#"))
        print(json.dumps({"seconds": seconds, "series": series}), flush=True)


if __name__ == "__main__":
    main()
