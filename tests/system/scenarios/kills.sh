# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# tlobd is killed again and again, at any moment, while a service breaks its budget all the time: 20 times, or as
# often as TLOB_KILLS says. Each window and each violation is in the books at the end, and told once. The instruments
# are the service's own number of windows, and the numbers of windows in the journal.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
kills=${TLOB_KILLS:-20}
naps=$((kills * 12))

has_ended() {
        [ "$(systemctl show -P ActiveState naps.service)" = inactive ]
}

state() {
        echo "$(bpftool link -j | jq length) links, $(find "/proc/$(main_pid)/fd" -mindepth 1 | wc -l) descriptors"
}

# Where it is killed so often that it seldom gets to read them, more come at once than wait for journald: these are
# counted.
all_told() {
        [ $(($(reported_windows naps.service/nap | sort -u | wc -l) + $(unwritten))) -ge $((2 * naps)) ]
}

cat >/etc/systemd/system/naps.service <<END
[Service]
ExecStart=$victim threads:2 ( repeat:$naps ( a( sleep:100000000 ) ) )
[X-Tlob nap]
Function=victim_a
BudgetSec=1ms
END
mkdir -p /run/systemd/system/tlobd.service.d /etc/tlob/tlobd.conf.d
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\nRestartSteps=0\n' \
        >/run/systemd/system/tlobd.service.d/kills.conf
# Reports wait while nobody reads, which may be most of the time.
printf '[Daemon]\nRateLimitIntervalSec=0\nRingBufferSize=128M\n' >/etc/tlob/tlobd.conf.d/kills.conf
systemctl daemon-reload
start_fresh
systemctl start naps.service
pause 1
echo "# before: $(state)"
for ((i = 1; i <= kills; i++)); do
        pause "0.$((RANDOM % 10))$((RANDOM % 10))"
        systemctl kill --signal=KILL --kill-whom=main tlobd
        [ $((i % 50)) != 0 ] || echo "# killed $i times"
done
echo "# the service has still to end: $(systemctl is-active naps.service)"
until has_ended; do
        pause 0.5
done
check "tlobd is there" until_true systemctl -q is-active tlobd
check "all violations are told, or it is told how many entries were lost" until_true all_told
[ "$kills" -gt 200 ] || equal "none was lost" "$(unwritten)" 0
echo "# $(reported_windows naps.service/nap | wc -l) of $((2 * naps)), $(unwritten) entries lost; the journal has $(journalctl --disk-usage | grep -o '[0-9.]*[KMG]')"
equal "each once" "$(told_twice naps.service/nap)" ""
equal "all windows are in the books" "$(binding naps.service/nap Windows)" $((2 * naps))
equal "all violations too" "$(binding naps.service/nap Violations)" $((2 * naps))
holds "the books balance" "$(binding naps.service/nap Counters)" '.starts == .violated and .open == 0 and .lost == 0'
echo "# after: $(state)"
finish
