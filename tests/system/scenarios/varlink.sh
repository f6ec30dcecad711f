# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The metrics over Varlink, as systemd starts what answers: in its sandbox, through a restart of tlobd, and while there
# is none. Only where libsystemd has sd-varlink.

. "${BASH_SOURCE[0]%/*}/assert.sh"

socket=/run/systemd/report/org.tlob1
report=/usr/lib/systemd/systemd-report
victim=/usr/libexec/tlob-tests/victim

# listed: all samples, one a line. What a process takes is another number each time.
same='select(.name | startswith("org.tlob1.Process") | not)'
listed() {
        varlinkctl call --more --json=short $socket io.systemd.Metrics.List '{}' | tr -d '\036' | jq -cS "$same"
}

value() {
        listed | jq -r "select(.name == \"org.tlob1.$1\" and .fields.binding == ${2:-null}).value"
}

printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:20000000 ) a( ) a( )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=10ms\n' \
        "$victim" >/etc/systemd/system/worker.service
systemctl daemon-reload
start_fresh
systemctl start worker

equal "it is not enabled by itself" "$(systemctl is-enabled tlob-metrics-varlink.socket)" disabled
check "it can be started" systemctl start tlob-metrics-varlink.socket
equal "nothing runs until somebody asks" "$(systemctl is-active tlob-metrics-varlink.service)" inactive
equal "windows" "$(value Windows '"worker.service/a"')" 3
equal "violations" "$(value Violations '"worker.service/a"')" 1
equal "the same as tlobctl prints" "$(listed)" "$(tlobctl metrics --json=short | jq -cS ".[] | $same")"
equal "for anybody" "$(runuser -u nobody -- varlinkctl call --more $socket io.systemd.Metrics.List '{}' | grep -c worker.service/a)" \
        "$(listed | grep -c worker.service/a)"
equal "not as root" "$(ps -o user= "$(systemctl show -P MainPID tlob-metrics-varlink)")" daemon
check "its exposure is small" systemd-analyze security --no-pager --threshold=20 tlob-metrics-varlink.service

systemctl restart tlobd
equal "windows of before a restart" "$(value Windows '"worker.service/a"')" 3
systemctl stop tlobd
# An answer is given again for a while.
says_down() {
        [ "$(listed)" = '{"name":"org.tlob1.Up","value":0}' ]
}
check "without tlobd, it says so" until_true says_down
listed >/dev/null
listed >/dev/null
equal "in the journal, too, once" "$(journalctl -b -u tlob-metrics-varlink --no-pager -o cat | grep -c 'tlobd is not running')" 1
systemctl start tlobd
check "and that it is back" until_true sh -c "varlinkctl call --more $socket io.systemd.Metrics.List '{}' | grep -q worker.service/a"

if [ -x $report ]; then
        matches "systemd-report finds it" "$($report list-sources)" 'org.tlob1 '
        matches "and has the metrics" "$($report metrics org.tlob1.Violations)" 'worker.service.*worker.service/a'
        equal "all of them" "$($report metrics --json=short org.tlob1 | tr -d '\036' | jq -cS "$same" | sort)" "$(listed | sort)"
        matches "with what they are" "$($report describe org.tlob1)" 'org.tlob1.Windows .*Windows that have begun'
fi

for _ in {1..8}; do
        value Up >/dev/null
        systemctl kill --signal=KILL tlob-metrics-varlink.service
        until_true sh -c '[ "$(systemctl is-active tlob-metrics-varlink.service)" = failed ]'
done
equal "whoever has it killed does not keep it away" "$(value Up)" 1

WAIT=60 check "it ends by itself" until_true sh -c '[ "$(systemctl is-active tlob-metrics-varlink.service)" = inactive ]'
equal "and is there again for whoever asks" "$(value Up)" 1
systemctl stop tlob-metrics-varlink.socket tlob-metrics-varlink.service
check "nothing is left" [ ! -e $socket ]
finish
