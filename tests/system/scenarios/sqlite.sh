# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A program that others wrote: SQLite with three marks that take no traps (../sqlite.patch), in two processes that
# write to one database. The instrument is the kernel's own tracer: each mark is in a function that does nothing but
# call another, and uprobes are at begin and end of both. So each window has a partner in the trace, and is no longer
# than the outer function, and no shorter than the inner one (brackets.py).

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
tracing=/sys/kernel/tracing
group=$(tr -c '[:alnum:]\n' _ </etc/hostname)
trace=$tracing/instances/$group
declare -A outer=([step]=markedStep [prepare]=markedPrepare [commit]=markedCommit)
declare -A inner=([step]=sqlite3Step [prepare]=sqlite3Prepare [commit]=sqlite3PagerCommitPhaseOne)

# probe NAME FUNCTION
probe() {
        local offset

        # As it is linked, they are the addresses.
        offset=$(eu-nm "$tests/sqlite" | sed -n "s/^$2 *|\([0-9a-f]*\)|.*/0x\1/p")
        echo "p:$group/$1_begin $tests/sqlite:$offset" >>"$tracing/uprobe_events" &&
                echo "r:$group/$1_end $tests/sqlite:$offset" >>"$tracing/uprobe_events"
}

# Rows, commits of one row and of many, queries that compute, and statements that are long themselves.
statements() {
        local terms

        terms=$(seq -s, 3000)
        echo '.timeout 20000'
        for ((i = 0; i < 5000; i++)); do
                echo "INSERT INTO log VALUES('$i');"
                echo 'SELECT * FROM log ORDER BY rowid DESC LIMIT 10;'
                [ $((i % 50)) != 0 ] || printf '%s\n' "SELECT $i IN ($terms);" \
                        'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000) SELECT sum(i) FROM n;' \
                        'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 5000) INSERT INTO log SELECT i FROM n;' \
                        'DELETE FROM log WHERE rowid % 100;'
        done
}

statements >"$run/statements"
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nRateLimitIntervalSec=0\nRingBufferSize=16M\n' >/etc/tlob/tlobd.conf.d/sqlite.conf
cat >"$etc/sqlite.service" <<END
[Service]
Type=oneshot
StateDirectory=sqlite
ExecStart=$tests/sqlite /var/lib/sqlite/db 'PRAGMA journal_mode=WAL; CREATE TABLE log(text);'
ExecStart=/bin/sh -c 'for i in 1 2; do $tests/sqlite /var/lib/sqlite/db <$run/statements & done; wait'
StandardOutput=null
END
for mark in "${!outer[@]}"; do
        printf '[X-Tlob %s]\nExecutable=%s\nMark=%s\nBudgetSec=500us\n' "$mark" "$tests/sqlite" "$mark" >>"$etc/sqlite.service"
done
systemctl daemon-reload
start_fresh

mkdir "$trace"
echo mono >"$trace/trace_clock"
echo 65536 >"$trace/buffer_size_kb"
for mark in "${!outer[@]}"; do
        check "$mark: uprobes are set" probe "${mark}_outer" "${outer[$mark]}"
        check "$mark: inside, too" probe "${mark}_inner" "${inner[$mark]}"
        check "$mark: it is bound" until_true says "sqlite.service/$mark" "is not running"
done
echo 1 >"$trace/events/$group/enable"
check "SQLite runs" systemctl start sqlite
equal "and has no errors" "$(journalctl --boot -q -o cat -u sqlite | grep -i error)" ""
echo 0 >"$trace/events/$group/enable"
equal "the trace is whole" "$(cat "$trace"/per_cpu/cpu*/stats | sed -n 's/^\(overrun\|dropped events\): //p' | sort -u)" 0

# ended MARK: the entries of its violations that have ended.
ended() {
        journalctl --boot -q -o json -t tlob TLOB_BINDING="sqlite.service/$1" TLOB_END=stop
}

all_have_ended() {
        [ "$(ended "$1" | wc -l)" -ge "$(binding "sqlite.service/$1" Violations)" ]
}

cp "$trace/trace" "$run/trace"
for mark in "${!outer[@]}"; do
        check "$mark: its violations are in the journal" until_true all_have_ended "$mark"
        ended "$mark" >"$run/ended"
        tlobctl show -j "sqlite.service/$mark" >"$run/shown"
        python3 "${BASH_SOURCE[0]%/*}/brackets.py" "$mark" "$run/trace" "$run/shown" "$run/ended" >"$run/figures" 2>&1
        check "$mark: each window has its partner in the trace" [ $? = 0 ]
        sed 's/^/# /' "$run/figures"
        holds "$mark: nearly all of them without a trap" "$(cat "$run/shown")" '.[0] | .Counters["without-traps"] > 0.9 * .Windows'
done

rmdir "$trace"
for event in "$tracing/events/$group"/*/; do
        echo "-:$group/$(basename "$event")" >>"$tracing/uprobe_events"
done
rm "$etc/sqlite.service" /etc/tlob/tlobd.conf.d/sqlite.conf
systemctl daemon-reload
finish
