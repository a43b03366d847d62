#!/bin/sh
# Instructions and allocations per question, by callgrind: exact and the same on a busy machine. Fails if a goal is missed.
# Each case runs with two repetition counts; the difference leaves the set-up out.
set -eu
cd "$(dirname "$0")"
. ../programs.sh
build
program=$bin/examples/count

instructions() { # CASE TIMES
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

per_question() { # CASE
    few=$(instructions "$1" 100)
    many=$(instructions "$1" 1100)
    echo $(((many - few) / 1000))
}

printf '%-20s %12s %12s\n' case instructions allocations
for case in match tree cel final-10 final-100 final-1000 draft-10 draft-100 draft-1000 \
    shard-1000 shardrange-1000 draftrange-1000 finalrange-1000 finalshard-1000 finalshardrange-1000 scan-10 scan-100 scan-1000; do
    count=$(per_question "$case")
    allocations=$("$program" "$case" 1000)
    printf '%-20s %12s %12s\n' "$case" "$count" "$allocations"
    eval "$(echo "$case" | tr - _)=$count allocations_$(echo "$case" | tr - _)=$allocations"
done

status=0
goal() { # DESCRIPTION CONDITION
    if [ "$2" = 1 ]; then echo "ok: $1"; else echo "MISSED: $1"; status=1; fi
}
goal "4 leaves cost at most 1/20 of cel" $((match * 20 <= cel))
goal "4 leaves cost at most 1/2 of a tree over a HashMap" $((match * 2 <= tree))
goal "1 of 1000 final variants costs at most 3 times 1 of 10" $((final_1000 <= 3 * final_10))
goal "1 of 1000 draft variants costs at most 3 times 1 of 10" $((draft_1000 <= 3 * draft_10))
goal "a range of 1000 shards costs at most 2 times an exact one" $((shardrange_1000 <= 2 * shard_1000))
goal "a range beside exact keys costs at most 2 times an exact one" $((draftrange_1000 <= 2 * draft_1000))
goal "1000 variants with ranges cost at most 2 times 1000 exact ones" $((finalrange_1000 <= 2 * final_1000))
goal "variants with a range of the only key cost at most 2 times exact ones" $((finalshardrange_1000 <= 2 * finalshard_1000))
allocations=$((allocations_match + allocations_final_1000 + allocations_draft_1000))
allocations=$((allocations + allocations_shardrange_1000 + allocations_draftrange_1000 + allocations_finalrange_1000))
allocations=$((allocations + allocations_finalshard_1000 + allocations_finalshardrange_1000))
goal "nothing is allocated" $((allocations == 0))
exit $status
