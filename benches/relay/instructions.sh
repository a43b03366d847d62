#!/bin/sh
# Instructions of a relay for one client, by how much others name, by callgrind: fails where a goal is missed.
set -eu
cd "$(dirname "$0")"
. ../programs.sh
build
"$bin/relay-bench"
