#!/usr/bin/env bash
# Instructions of the relay for a client, by callgrind, where there is a goal. See ../README.md.
set -euo pipefail
cd "$(dirname "$0")"
exec ./run --only instructions --goals
