#!/usr/bin/env bash
# Instructions of the relay for a client, by callgrind, where there is a goal. See ../README.md.
#
#   benches/fan-out/instructions.sh [--relay PATH]
set -euo pipefail
exec "$(dirname "$0")/run" --only instructions --goals "$@"
