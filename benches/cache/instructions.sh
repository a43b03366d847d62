#!/bin/sh
# Instructions of an update in the cache and its streams, beside peers, by callgrind: fails where a goal is missed.
# --large adds sizes that take minutes.
set -eu
cd "$(dirname "$0")"
. ../programs.sh
build
"$bin/cache-instructions" "$@"
