#!/bin/sh
# Instructions of a client by how much it watches, beside a peer, by callgrind: fails where a goal is missed.
set -eu
cd "$(dirname "$0")"
cargo run --release --quiet --bin client-instructions
cargo run --release --quiet --bin watch-instructions
