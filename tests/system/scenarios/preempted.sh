# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Who has taken the CPU is known when it has ended, too: a real-time thread computes on the CPU of a window, which
# nobody but that takes, and ends before the window does.

. "${BASH_SOURCE[0]%/*}/assert.sh"

unit=/etc/systemd/system/kept.service
victim=/usr/libexec/tlob-tests/victim

# Each waits for a line before it begins.
for name in kept taker; do
        mkfifo "$run/$name"
done
exec {kept}<>"$run/kept" {taker}<>"$run/taker"
cat >"$unit" <<END
[Service]
CPUSchedulingPolicy=fifo
StandardInput=file:$run/kept
StandardOutput=file:$run/kept-says
ExecStart=$victim pin:0 a( say:inside burn:300000000 )
[X-Tlob a]
Function=victim_a
BudgetSec=100ms
END
systemctl daemon-reload
start_fresh
check "a window is to come" systemctl start kept
check "it has begun" until_true grep -qs inside "$run/kept-says"
# A thread that nobody reaps, of a process that sleeps meanwhile.
chrt --fifo 20 "$victim" pin:0 say:ready 'threads:1' '(' sleep:100000000 spin:250000000 ')' \
        <"$run/taker" >"$run/taker-says" &
taker_pid=$!
check "who is to take its CPU is ready" until_true grep -qs ready "$run/taker-says"
echo >&"$taker"
echo >&"$kept"
wait "$taker_pid"
end=$(wait_for_entry '.TLOB_BINDING == "kept.service/a" and .TLOB_END != null' -t tlob)
matches "it is told who has taken the CPU" "$(jq -r .TLOB_PREEMPTED_BY <<<"$end")" "^victim\\[$taker_pid/[0-9]+\\]\$"
matches "and that it was waited for" "$(jq -r '.TLOB_WAITING_NS | tonumber > 200000000' <<<"$end")" true

rm "$unit"
systemctl daemon-reload
finish
