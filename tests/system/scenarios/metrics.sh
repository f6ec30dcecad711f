# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What is counted, in the file that the node exporter reads: written by the timer in its sandbox, through a
# restart of tlobd, and while there is none.

. "${BASH_SOURCE[0]%/*}/assert.sh"

directory=/var/lib/prometheus/node-exporter
file=$directory/tlob.prom
victim=/usr/libexec/tlob-tests/victim

# value METRIC [LABELS]: in the file.
value() {
        awk -v series="$1${2:+"{$2}"}" 'index($0, series " ") == 1 { print $NF }' "$file"
}

of='binding="worker.service/a",unit="worker.service"'

printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:20000000 ) a( ) a( )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=10ms\n' \
        "$victim" >/etc/systemd/system/worker.service
systemctl daemon-reload
start_fresh
systemctl start worker

check "without the directory, nothing is done" systemctl start tlob-metrics
check "and no file is made" [ ! -e $file ]
useradd --system exporter
install -d -o exporter $directory
check "the service can write" systemctl start tlob-metrics
equal "windows" "$(value tlob_windows_total "$of")" 3
equal "violations" "$(value tlob_violations_total "$of")" 1
equal "the budget" "$(value tlob_budget_seconds "$of")" 0.01
equal "the state: its unit has ended" "$(value tlob_binding_state "$of,state=\"active\"")" 0
equal "two windows are short" "$(value tlob_window_seconds_bucket "$of,le=\"0.008388607\"")" 2
equal "one is not" "$(value tlob_window_seconds_bucket "$of,le=\"0.033554431\"")" 3
check "it took its time" awk -v sum="$(value tlob_window_seconds_sum "$of")" 'BEGIN { exit !(sum >= 0.02 && sum < 1) }'
check "everybody may read it" runuser -u nobody -- test -r $file
check "nothing is left beside it" [ "$(ls -A $directory)" = tlob.prom ]

page=$(tlobctl report worker)
matches "the page has what tlobd knows" "$page" 'In worker.service. Budget: 10.0ms. 1 violation reported; 3 windows since'
matches "it has the distribution" "$page" '3 windows, by length'
matches "and why" "$page" 'sleeping in '
refuse "a name of nothing" 1 "There is no " tlobctl report nothing

systemctl restart tlobd
systemctl start worker
check "it goes on after a restart" systemctl start tlob-metrics
equal "with the windows of before" "$(value tlob_windows_total "$of")" 6

systemctl start tlob-metrics.timer
systemctl stop tlobd.service
check "without tlobd, the timer says so" until_true grep -qx 'tlob_up 0' $file
check "which is no failure of the service" [ "$(systemctl is-failed tlob-metrics)" != failed ]
check "the page does without" sh -c 'tlobctl report worker 2>/dev/null | grep -q "2 violations reported[.]"'
equal "and nothing else" "$(grep -c '^[^#]' $file)" 1
systemctl start tlobd
check "and that it is back" until_true grep -qx 'tlob_up 1' $file
check "it is not enabled by itself" [ "$(systemctl is-enabled tlob-metrics.timer)" = disabled ]
check "its exposure is small" systemd-analyze security --no-pager --threshold=20 tlob-metrics

finish
