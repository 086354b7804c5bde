#!/bin/sh
# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the environment of nvitop-exporter; does nothing if it is as the lock file says.
# Usage: bench/setup.sh PYTHON
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3} venv=.venv-bench lock=bench/requirements.lock
stamp=$venv/.installed.lock

say() { printf '%s\n' "$*" >&2; }

if cmp -s "$lock" "$stamp" && "$venv/bin/python" -c 'import nvitop_exporter' 2>/dev/null; then
    exit 0
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "$python is not Python 3.11 or newer. Install it, for example:"
    say '    apt-get install python3 python3-venv'
    exit 1
fi
say "setting up $venv with $("$python" --version) ..."
# Afresh: what an older lock file installed must not stay beside what this one says.
if ! "$python" -m venv --clear "$venv"; then
    say 'Python cannot make virtual environments. Install its venv module, for example:'
    say '    apt-get install python3-venv'
    exit 1
fi
say "installing the $(grep -c '^[a-z0-9].*==' "$lock") packages of $lock ..."
"$venv/bin/pip" install --disable-pip-version-check --quiet --progress-bar off --require-hashes -r "$lock"
cp "$lock" "$stamp"
say 'ready'
