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

printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:200000000 ) a( ) a( )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=100ms\n' \
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
equal "the budget" "$(value tlob_budget_seconds "$of")" 0.1
equal "the state: its unit has ended" "$(value tlob_binding_state "$of,state=\"active\"")" 0
equal "two windows are short" "$(value tlob_window_seconds_bucket "$of,le=\"0.008388607\"")" 2
equal "one is not" "$(value tlob_window_seconds_bucket "$of,le=\"1.073741823\"")" 3
check "it took its time" awk -v sum="$(value tlob_window_seconds_sum "$of")" 'BEGIN { exit !(sum >= 0.2 && sum < 1) }'
check "everybody may read it" runuser -u nobody -- test -r $file
check "nothing is left beside it" [ "$(ls -A $directory)" = tlob.prom ]

page=$(tlobctl report worker)
matches "the page has what tlobd knows" "$page" 'In worker.service. Budget: 100[.0]*ms. 1 violation reported; 3 windows since'
matches "it has the distribution" "$page" '3 windows, by length'
matches "and why" "$page" 'sleeping in '
refuse "a name of nothing" 1 "There is no " tlobctl report nothing

systemctl restart tlobd
systemctl start worker
check "it goes on after a restart" systemctl start tlob-metrics
equal "with the windows of before" "$(value tlob_windows_total "$of")" 6

equal "it tells the version of tlobd" "tlobd $(sed -n 's/^tlob_build_info{version="\(.*\)"} 1$/\1/p' $file)" "$(/usr/libexec/tlobd --version)"

# What whoever owns the directory can do, or what happens to it. Nothing is done elsewhere, and what was there stays.
# refused_here TEXT REASON: the service fails, and says so once. The file, as it was in "$run/before", is as it was.
refused_here() {
        local since=$EPOCHREALTIME said

        refuse "$1: it fails" 1 'Job for tlob-metrics.service failed' systemctl start tlob-metrics
        equal "$1: with status 1" "$(systemctl show -P ExecMainStatus tlob-metrics)" 1
        journalctl --sync
        said=$(journalctl -q -o cat --since="@$since" SYSLOG_IDENTIFIER=tlobctl)
        equal "$1: it says why" "$said" "tlobctl: Failed to write $file: $2"
}

# unchanged TEXT: neither the file, nor anything beside it.
unchanged() {
        check "$1: the file is as it was" cmp $file "$run/before"
        equal "$1: nothing is beside it" "$(find $directory/ -name '.tlob*')" ""
}

cp $file "$run/before"
mount -t tmpfs -o size=16k,mode=755 full $directory
cp "$run/before" $file
dd if=/dev/zero of=$directory/other bs=4k status=none 2>/dev/null
refused_here full "No space left on device"
unchanged full
umount $directory
mount -t tmpfs -o size=1m,nr_inodes=3,mode=755 full $directory
cp "$run/before" $file
: >$directory/other
refused_here "no inode" "No space left on device"
unchanged "no inode"
umount $directory
mount --bind $directory $directory
mount -o remount,ro,bind $directory
refused_here read-only "Read-only file system"
unchanged read-only
umount $directory

for target in /etc/tlob/tlobd.conf /nowhere $directory; do
        before=$(cat /etc/tlob/tlobd.conf)
        runuser -u exporter -- ln -sfn "$target" $file
        check "a link to $target: it is written" systemctl start tlob-metrics
        check "a link to $target: in its place" [ ! -L $file ]
        equal "a link to $target: which was not followed" "$(cat /etc/tlob/tlobd.conf)" "$before"
done
check "nothing was made there" [ ! -e /nowhere ]

# The directory of another one: its owner's, root's, and that of root where somebody else leads.
mv $directory $directory.old
install -d -o exporter /srv/exporter
install -d /srv/root
parent=${directory%/*}
chown exporter "$parent"
runuser -u exporter -- ln -s /srv/exporter $directory
check "a link to what is its owner's: it is written" systemctl start tlob-metrics
check "a link to what is its owner's: there" [ -s /srv/exporter/tlob.prom ]
runuser -u exporter -- ln -sfn /srv/root $directory
refused_here "a link to what is not" "the directory is another user's link to what is not that user's"
equal "a link to what is not: nothing is there" "$(ls -A /srv/root)" ""
ln -sfn /srv/root $directory
check "a link of root's: it is written" systemctl start tlob-metrics
check "a link of root's: there" [ -s /srv/root/tlob.prom ]
rm $directory
check "none: nothing is done" systemctl start tlob-metrics
check "none: and none is made" [ ! -e $directory ]
mv $directory.old $directory
check "it is there again" systemctl start tlob-metrics

# Several scrape all the time, whatever becomes of tlobd.
cat >/etc/systemd/system/busy.service <<END
[Service]
ExecStart=$victim threads:2 ( repeat:1000000 ( a( sleep:2000000 ) ) )
[X-Tlob busy]
Function=victim_a
BudgetSec=1ms
END
mkdir -p /run/systemd/system/tlobd.service.d
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\nRestartSteps=0\n' \
        >/run/systemd/system/tlobd.service.d/scrapes.conf
systemctl daemon-reload
systemctl start busy
check "they are measured" until_true has_windows busy.service/busy 10
mkdir "$run/scrapes"
python3 "${BASH_SOURCE[0]%/*}/scrapes.py" "$run/scrapes" worker.service/a busy.service/busy >"$run/scraped" &
scrapes=$!
for _ in 1 2 3; do
        pause 0.5
        systemctl restart tlobd
        pause 0.5
        systemctl kill --signal=KILL --kill-whom=main tlobd
        pause 0.$((RANDOM % 10))
        until_true tlobctl reload
done
# After that they would begin anew. Each scrapes once more.
systemctl stop tlobd
: >"$run/scrapes/end"
wait $scrapes
systemctl start tlobd
sed 's/^/# /' "$run/scraped"
matches "each scrape is whole or says that there is no tlobd, and nothing runs backwards" "$(tail -n 1 "$run/scraped")" \
        '^whole [0-9]{2,}, without tlobd [1-9][0-9]*, wrong 0$'
systemctl stop busy
rm /run/systemd/system/tlobd.service.d/scrapes.conf
systemctl daemon-reload

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
