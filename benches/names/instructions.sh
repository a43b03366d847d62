#!/bin/sh
# Instructions per name for every case, counted by callgrind: the difference of two counts, so that start-up cancels out.
# Fails where a goal is missed. Goals are ratios to peers in the same run, so they hold on any machine.
set -eu
cd "$(dirname "$0")"
. ../programs.sh
build
count=$bin/count

instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$count" "$@" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

"$count" | while read -r case; do
    printf '%s' "$case"
    for name in short long4 alt; do
        few=$(instructions "$case" "$name" 100)
        many=$(instructions "$case" "$name" 1100)
        printf '\t%d' $(((many - few) / 1000))
    done
    printf '\n'
done | awk -F '\t' '
    function goal(what, ours, peer, column, limit,    ratio) {
        ratio = found[ours, column] / found[peer, column]
        printf "%-24s %.2f of %s (goal %.2f)%s\n", what, ratio, peer, limit, (ratio > limit ? "  MISSED" : "")
        if (ratio > limit) missed = 1
    }
    BEGIN { printf "%-40s %8s %8s %8s\n", "case", "short", "long4", "alt" }
    {
        printf "%-40s %8d %8d %8d\n", $1, $2, $3, $4
        for (column = 2; column <= 4; column++) found[$1, column] = $column
    }
    END {
        print ""
        goal("full parse, short", "full: xdstp-uri", "syntax: fluent-uri", 2, 1.05)
        goal("full parse, long4", "full: xdstp-uri", "full: fluent-uri and semantics", 3, 0.50)
        goal("full parse, alt", "full: xdstp-uri", "full: fluent-uri and semantics", 4, 0.30)
        goal("canonical string, short", "canonical: xdstp-uri, a string", "canonical: fluent-uri and semantics", 2, 0.60)
        goal("canonical string, long4", "canonical: xdstp-uri, a string", "canonical: fluent-uri and semantics", 3, 0.60)
        goal("canonical string, alt", "canonical: xdstp-uri, a string", "canonical: fluent-uri and semantics", 4, 0.60)
        exit missed
    }'
