#!/bin/sh
# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes a virtual environment with what a lock file says and the project itself.
# Usage: setup.sh PYTHON VENV LOCK
set -eu
python=$1 venv=$2 lock=$3

say() { printf '%s\n' "$*" >&2; }

if [ -z "$python" ]; then
    say 'Python 3.11 or newer was not found. Install it, for example:'
    say '    apt-get install python3 python3-venv'
    exit 1
fi
say "setting up $venv with $("$python" --version) ..."
if ! "$python" -m venv --upgrade-deps "$venv" 2>/dev/null && ! "$python" -m venv "$venv"; then
    say 'Python cannot make virtual environments. Install its venv module, for example:'
    say '    apt-get install python3-venv'
    exit 1
fi
say "installing the $(grep -c '^[a-z0-9].*==' "$lock") packages of $lock ..."
{
    "$venv/bin/pip" install --disable-pip-version-check --progress-bar off --require-hashes -r "$lock" \
        || touch "$venv/.failed"
} | awk '/^Collecting/ { printf "  %s\n", $2; fflush() } /^Installing/ { print "  installing ..."; fflush() }' >&2
if [ -e "$venv/.failed" ]; then
    rm "$venv/.failed"
    say "the packages of $lock could not be installed: see above, and check the way to the package index"
    exit 1
fi
say 'installing veo-client and veo-exporter from this checkout ...'
"$venv/bin/pip" install --disable-pip-version-check --quiet --no-deps --no-build-isolation \
    --editable exporter/veo_client --editable .
say 'ready'
