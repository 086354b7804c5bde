# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the files that derive from the code, or says which of them are out of date."""

import argparse
import sys
from pathlib import Path

import alerts.generation
import dashboards.generation
import helm.generation
from tools.xid_document import xid_markdown
from veo_exporter.cli.show import metrics_markdown, settings_markdown

ROOT = Path(__file__).resolve().parent.parent


def generated_files() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    files = {
        ROOT / "docs/metrics.md": metrics_markdown(),
        ROOT / "docs/configuration.md": settings_markdown(),
        ROOT / "docs/xid-codes.md": xid_markdown(),
        **alerts.generation.generated_files(),
        **dashboards.generation.generated_files(),
    }
    # The chart carries copies of what is generated in this same run.
    return {**files, **helm.generation.generated_files(files)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a file differs"
    )
    check = parser.parse_args().check
    stale = [
        path
        for path, text in generated_files().items()
        if not path.is_file() or path.read_text() != text
    ]
    for path in stale:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is out of date: run `make generate`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated_files()[path])
            print(f"wrote {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
