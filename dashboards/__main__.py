# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the dashboards, or says which of them are out of date."""

import argparse
import sys

from dashboards.generation import FOLDER, generated_files, stale_files


def main() -> int:
    """Run the command; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a file differs"
    )
    check = parser.parse_args().check
    stale = stale_files()
    for path in stale:
        name = path.relative_to(FOLDER.parent.parent)
        if check:
            print(f"{name} is out of date: run `make generate`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated_files()[path], encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
