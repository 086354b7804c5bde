#!/bin/sh
# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
#
# Sees to ffmpeg, ffprobe and prlimit: from PATH, else from the system's packages where we may install
# them, else by the line that somebody else has to run.
# Usage: media.sh required|optional
set -eu
need=$1

say() { printf '%s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null; }

packages=''
has ffmpeg && has ffprobe || packages='ffmpeg'
has prlimit || packages="${packages:+$packages }util-linux"
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && has apt-get; then
    say "installing $packages from the system's packages ..."
    # Unquoted: a package a word. Its own output goes where our words go.
    # shellcheck disable=SC2086
    if apt-get update -qq >&2 \
        && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $packages >&2; then
        exit 0
    fi
    say "$packages could not be installed: see above, and check the way to the system's packages"
fi
say "Files cannot be made and probed without $packages. Install them, for example:"
say "    apt-get install $packages"
[ "$need" = optional ] || exit 1
say 'going on without video files'
