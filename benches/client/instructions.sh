#!/bin/sh
# Instructions of a client by how much it watches, beside a peer, by callgrind: fails where a goal is missed.
set -eu
cd "$(dirname "$0")"
. ../programs.sh
build
"$bin/client-instructions"
"$bin/watch-instructions"
"$bin/kept-instructions"
