# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Programs whose marks take no traps, and tlobd, are killed again and again, at any moment: each 25 times, or as often as
# TLOB_KILLS says. The instrument is what the programs write down of their windows, in files that outlive them: of one
# that is killed, each thread may be in a window, which is in the books or not. Another program goes on all the time.

. "${BASH_SOURCE[0]%/*}/assert.sh"

joiner=/usr/libexec/tlob-tests/joiner
kills=${TLOB_KILLS:-25}
etc=/etc/systemd/system

printf '[Service]\nEnvironment=TLOB_TEST_MARKS=/run/tlob/marks\nExecStart=%s live ready quick tell:over wait alone\n' \
        "$joiner" >"$etc/steady.service"
cat >"$etc/mortal.service" <<END
[Service]
Environment=TLOB_TEST_MARKS=/run/tlob/marks
ExecStart=/bin/sh -c 'while touch $run/\$\$((i += 1)); do $joiner ledger:$run/\$\$i live; done'
END
for unit in steady mortal; do
        printf '[X-Tlob request]\nExecutable=%s\nMark=request\nBudgetSec=5ms\n' "$joiner" >>"$etc/$unit.service"
done
mkdir -p /run/systemd/system/tlobd.service.d /etc/tlob/tlobd.conf.d
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\nRestartSteps=0\n' >/run/systemd/system/tlobd.service.d/joined.conf
# Reports wait while nobody reads, which may be most of the time.
printf '[Daemon]\nRateLimitIntervalSec=0\nRingBufferSize=128M\n' >/etc/tlob/tlobd.conf.d/joined.conf
systemctl daemon-reload
start_fresh

# The one that lives now, if any does.
kill_mortal() {
        pkill -KILL -x joiner -P "$(systemctl show -P MainPID mortal)"
}

pause_a_while() {
        pause "0.$((RANDOM % 5))$((RANDOM % 10))$((RANDOM % 10))"
}

# sum COLUMN: of what all those have written that were killed.
sum() {
        od -A n -v -t u8 "${programs[@]}" | awk '{ sum += $'"$1"' } END { printf "%d\n", sum }'
}

# Each, or it is told how many entries were lost.
all_told() {
        [ $(($(reported_windows "$1" | sort -u | wc -l) + $(unwritten))) -ge "$(binding "$1" Violations)" ]
}

check "both are bound" until_true says mortal.service/request "is not running"
systemctl start steady mortal
for ((i = 1; i <= kills; i++)); do
        pause_a_while
        until_true systemctl kill --signal=KILL --kill-whom=main tlobd
        pause_a_while
        until_true kill_mortal
        [ $((i % 50)) != 0 ] || echo "# killed $i times"
done
check "tlobd is there" until_true tlobctl status
systemctl stop mortal
systemctl kill --signal=TERM steady
check "the steady one has joined to its end" until_true sh -c 'journalctl --boot -q -o cat -u steady | grep -qx over'
programs=("$run"/[0-9]*)
sum 1 >"$run/begun"
sum 2 >"$run/ended"
echo "# ${#programs[@]} programs, with $(cat "$run/begun") windows, of which $(cat "$run/ended") have ended; $(unwritten) entries lost"

for unit in steady mortal; do
        check "$unit: the books balance" balanced "$unit.service/request"
        holds "$unit: each window that has ended has its length" "$(tlobctl show -j "$unit.service/request")" \
                '.[0] | ([.Histogram[][1]] | add) == (.Counters | .["in-budget"] + .violated + .exit) and .Counters.open == 0'
        check "$unit: all violations are told" until_true all_told "$unit.service/request"
        equal "$unit: and none twice" "$(told_twice "$unit.service/request")" ""
done
holds "mortal: each window is in the books, but for those in which it was killed" \
        "$(tlobctl show -j mortal.service/request)" \
        '.[0].Windows >= $ended and .[0].Windows <= $begun' \
        --argjson begun "$(cat "$run/begun")" --argjson ended "$(cat "$run/ended")"
windows=$(binding steady.service/request Windows)
echo "# steady: $windows windows, $(binding steady.service/request Violations) violations"

check "tlobd stops" systemctl stop tlobd
systemctl kill --signal=TERM steady
check "the steady one ends" until_true sh -c '[ "$(systemctl show -P SubState steady)" = dead ]'
equal "and well: nobody listens any more" "$(systemctl show -P Result -P ExecMainStatus steady | xargs)" "success 0"
equal "steady: each window is in the books" "$windows" \
        "$(journalctl --boot -q -o cat -u steady | sed -n 's/^result \([0-9]*\) .*/\1/p')"
rm "$etc"/{steady,mortal}.service
finish
