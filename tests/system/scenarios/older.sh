# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# An upgrade of the packages of an earlier version, with bindings of all kinds, some of a service that runs; and what is
# left of both when they are removed, and purged.

. "${BASH_SOURCE[0]%/*}/assert.sh"
. "${BASH_SOURCE[0]%/*}/package.sh"

tests=/usr/libexec/tlob-tests
victim=$tests/victim
bindings=(worker.service/a worker.service/b stays goes calls)

packages() {
        find "$tests/$1" -name '*.deb' ! -name 'tlobd-cockpit_*'
}

# What enables units, and what Debian notes of it.
links() {
        find /etc/systemd /var/lib/systemd -name '*tlob*' ! -name 'tlob-test.service'
}

# What is in the kernel with their name, but for that of other tests on this machine.
traces() {
        {
                find /sys/fs/bpf /sys/kernel/tracing/instances -mindepth 1 -maxdepth 1 -name '*tlob*'
                grep tlob /sys/kernel/tracing/uprobe_events
        } | grep -v tlob_system | sort
}
nothing_traced() {
        [ "$(traces | comm -13 "$run/traces" -)" = "" ]
}

# budgets: of all bindings.
budgets() {
        tlobctl list-bindings -j | jq -r '.[] | "\(.Name) \(.Unit) \(.BudgetNSec)"'
}

all_active() {
        [ "$(tlobctl list-bindings -j | jq -c 'map(.State) | unique')" = '["active"]' ]
}

# windows: of all that come to an end.
windows() {
        tlobctl show -j "${bindings[@]}" | jq -c 'map(.Windows)'
}

mapfile -t older < <(packages older)
mapfile -t newer < <(packages new)
find / -xdev -name '*tlob*' 2>/dev/null | grep -v "^$tests" | sort >"$run/before"
traces >"$run/traces"
check "the older version can be installed" dpkg --install "${older[@]}"
from=$(dpkg-query --show --showformat='${Version}' tlobd)
check "and its timer be enabled" systemctl enable --now tlob-metrics.timer

cat >/etc/systemd/system/worker.service <<END
[Service]
ExecStart=$victim repeat:1000000 ( a( sleep:3000000 ) b( ) )
[X-Tlob a]
Function=victim_a
BudgetSec=1ms
[X-Tlob b]
Function=victim_b
BudgetSec=1s
END
systemctl daemon-reload
check "a service runs" systemctl start worker
check "a binding stays for ever" tlobctl add-binding stays --persist --executable="$victim" --function=victim_a --budget=1s
check "one until the next boot" tlobctl add-binding goes --executable=libc.so.6 --function=clock_nanosleep --budget=1s
check "one measures system calls" tlobctl add-binding calls --unit=worker --syscall=clock_nanosleep --budget=1s
check "a budget is changed for ever" tlobctl set-budget --persist worker.service/b 500ms
check "one until the next boot" tlobctl set-budget worker.service/a 2ms
check "all are measured" until_true all_active
"$victim" repeat:100 '(' 'a(' ')' ')' >/dev/null
for binding in "${bindings[@]}"; do
        check "there are windows of $binding" until_true has_windows "$binding" 100
done
budgets >"$run/budgets"
counted=$(windows)

"$victim" 'a(' sleep:5000000000 ')' >/dev/null &
process=$!
pid=$(main_pid)
cursor=$(journalctl --boot -q -n 0 --show-cursor | sed -n 's/^-- cursor: //p')
check "it can be upgraded, with a window open" dpkg --install "${newer[@]}"
check "it is another daemon" started_anew "$pid"
check "all are measured again" until_true all_active
equal "they are the same, with their budgets" "$(budgets)" "$(cat "$run/budgets")"
journalctl --sync
journalctl --after-cursor="$cursor" -q -o cat -u tlobd --grep='tlobd before' >"$run/said"
echo "# from $from: $(cat "$run/said")"
echo "# windows before: $counted, after: $(windows)"
if [ ! -e "$tests/older/carries" ] && grep -q 'counters begin at zero' "$run/said"; then
        passed "that counters begin at zero is told"
else
        check "counters go on" jq -en --argjson before "$counted" --argjson after "$(windows)" \
                '[$before, $after] | transpose | all(.[1] >= .[0])'
fi
wait $process
equal "who had the window open goes on" $? 0

# Each call is in one window.
systemctl stop worker
has_stopped() {
        binding_has worker.service/a State waiting
}
check "the service ends" until_true has_stopped
before=$(binding stays Windows)
"$victim" repeat:500 '(' 'a(' ')' ')' >/dev/null
equal "no call is missed, and none counted twice" $(($(binding stays Windows) - before)) 500
check "the service starts" systemctl start worker
check "and has windows" grows worker.service/a
check "which are reported" wait_for_entry '.TLOB_BINDING == "worker.service/a" and .TLOB_END == null' --after-cursor="$(
        journalctl --boot -q -n 0 --show-cursor | sed -n 's/^-- cursor: //p')"
equal "no violation was told twice" "$(told_twice worker.service/a)" ""
equal "the timer goes on" "$(systemctl is-active tlob-metrics.timer)" active
equal "nothing failed" "$(systemctl --failed --plain --no-legend)" ""

# The page in Cockpit, without one.
check "the page can be installed" dpkg --install --force-depends "$tests"/new/tlobd-cockpit_*.deb
check "and is there" test -e /usr/share/cockpit/tlob/manifest.json

systemctl stop worker
mapfile -t programs < <(programs_of "$(main_pid)")
mapfile -t names < <(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' '*tlob*' | sed -n 's/ installed$//p')
check "they can be removed" dpkg --remove --force-depends "${names[@]}"
equal "nothing of them runs" "$(pgrep -x tlobd)" ""
check "what was configured is still there" ls /etc/tlob/bindings.d/tlobctl-stays.conf
check "they can be purged" dpkg --purge --force-depends "${names[@]}"
equal "no unit is enabled that is not there" "$(links)" ""
rm /etc/systemd/system/worker.service
systemctl daemon-reload
equal "nor known" "$(systemctl list-units --all --plain --no-legend 'tlob*' | grep -v tlob-test)" ""
find / -xdev -name '*tlob*' 2>/dev/null | grep -v "^$tests" | sort >"$run/after"
equal "no file is left" "$(diff "$run/before" "$run/after")" ""
equal "nor anything in /run" "$(find /run -maxdepth 3 -name '*tlob*' ! -name '*tlob-test*')" ""
check "nor in the kernel" until_true nothing_traced
check "nor a program of it" until_true none_loaded "${programs[@]}"
finish
