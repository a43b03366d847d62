#!/bin/sh
# Instructions per name for every case: the difference of two counts under callgrind, so that start-up cancels out.
set -eu
cd "$(dirname "$0")"
cargo build --release --quiet --bin count
binary="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/count"
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$@" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
printf '%-40s %8s %8s %8s\n' case short long4 alt
"$binary" | while read -r case; do
    printf '%-40s' "$case"
    for name in short long4 alt; do
        few=$(instructions "$case" "$name" 100)
        many=$(instructions "$case" "$name" 1100)
        printf ' %8d' $(((many - few) / 1000))
    done
    printf '\n'
done
