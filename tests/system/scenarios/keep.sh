# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# tlobd without a service manager, and with a directory in the BPF file system: it is killed and started again, at any
# moment, while a service breaks its budget all the time. 6 times, or as often as TLOB_KILLS says. Each window and each
# violation is in the books at the end, and told once. The instruments are the services' own numbers of calls, and
# the numbers of windows in the journal.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
kills=${TLOB_KILLS:-6}
naps=$((kills * 20))
calls=300000
dir=/sys/fs/bpf/tlob
program=$(systemctl show -P ExecStart tlobd | sed 's/.*path=\([^ ;]*\).*/\1/')
pid=

owner() {
        busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus GetConnectionUnixProcessID s org.tlob1 2>/dev/null
}

has_name() {
        [ "$(owner)" = "u $pid" ]
}

# begin LOG [OPTION...]: a tlobd that systemd knows nothing of.
begin() {
        local log=$1

        shift
        env -u NOTIFY_SOCKET "$program" "$@" >>"$log" 2>&1 &
        pid=$!
}

# launch [OPTION...]: one that is ready, as it has its name.
launch() {
        begin "$run/log" "$@"
        until_true has_name || failed "tlobd starts" "$(tail -n 5 "$run/log")"
}

# end SIGNAL: its exit status.
end() {
        kill -"$1" "$pid"
        wait "$pid" 2>/dev/null
}

links() {
        bpftool link -j | jq length
}

all_told() {
        [ $(($(reported_windows naps.service/nap | sort -u | wc -l) + $(unwritten))) -ge "$naps" ]
}

has_ended() {
        [ "$(systemctl show -P ActiveState "$1")" = inactive ]
}

links_are() {
        [ "$(links)" = "$1" ]
}

printf '[Service]\nExecStart=%s storm:%s\n[X-Tlob call]\nFunction=victim_storm\nBudgetSec=1min\nCPULimit=infinity\n' \
        "$victim" "$calls" >/etc/systemd/system/busy.service
printf '[Service]\nExecStart=%s repeat:%s ( a( sleep:100000000 ) )\n[X-Tlob nap]\nFunction=victim_a\nBudgetSec=1ms\n' \
        "$victim" "$naps" >/etc/systemd/system/naps.service
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nRateLimitIntervalSec=0\nRingBufferSize=16M\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/keep.conf
systemctl mask --runtime --now tlobd 2>/dev/null
systemctl daemon-reload
before=$(links)

refuse "a path that depends on where one stands is refused" 2 'must be an absolute path' "$program" --keep-in=tlob
refuse "another file system is refused" 1 '/run/tlob-keep is not in a BPF file system' "$program" --keep-in=/run/tlob-keep
ln -s /run "$run/link"
refuse "so is a link" 1 'link is a symbolic link' "$program" --keep-in="$run/link"
refuse "and a directory that others can write to" 1 'can be written by others' \
        sh -c "mkdir -m 1777 $dir-open && exec $program --keep-in=$dir-open"

launch --keep-in=$dir
equal "the directory is root's own" "$(stat -c '%u %a' $dir)" "0 700"
refuse "a second tlobd does not get it" 1 'org.tlob1|in use by another' "$program" --keep-in=$dir
systemctl start busy.service naps.service
pause 0.5
for ((i = 1; i <= kills; i++)); do
        pause "0.$((RANDOM % 10))$((RANDOM % 10))"
        if [ $((i % 4)) = 0 ]; then
                end TERM
                equal "SIGTERM ends it well" $? 0
        else
                end KILL
        fi
        [ $((i % 3)) != 0 ] || pause 1
        # Others are ended while they take over.
        for signal in TERM KILL; do
                begin "$run/others" --keep-in=$dir
                pause "$((RANDOM % 3)).$((RANDOM % 10))"
                end $signal
        done
        launch --keep-in=$dir
done
until has_ended naps.service && has_ended busy.service; do
        pause 0.5
done
equal "all went on where the one before stood" \
        "$(grep -c "goes on where the tlobd before this one stood" "$run/log")" "$kills"
check "all violations are told, or it is told how many entries were lost" until_true all_told
equal "each once" "$(told_twice naps.service/nap)" ""
echo "# killed or ended $kills times: $(reported_windows naps.service/nap | wc -l) of $naps violations told, $(unwritten) entries lost"
equal "all windows are in the books" "$(binding naps.service/nap Windows)" "$naps"
equal "all violations too" "$(binding naps.service/nap Violations)" "$naps"
equal "and each call of the busy one" "$(binding busy.service/call Windows)" "$calls"
holds "the books balance" "$(tlobctl show -j busy.service/call | jq '.[0].Counters')" \
        '.starts == ."in-budget" and .open == 0 and .nested == 0 and .unmatched == 0'

# A tlobd that is asked for nothing keeps nothing, and leaves alone what is there.
end TERM
equal "there is one set of pins" "$(ls $dir)" bpf-1
with=$(links)
launch
equal "without the option the books begin anew" "$(binding busy.service/call Windows)" 0
end TERM
check "it takes its own away" until_true links_are "$with"
launch --keep-in=$dir
equal "what is in the directory is still there" "$(binding busy.service/call Windows)" "$calls"

# Other sizes: all is set up anew, next to what was there.
printf '[Daemon]\nTasksMax=512\n' >/etc/tlob/tlobd.conf.d/sizes.conf
end KILL
launch --keep-in=$dir
equal "with another limit the books go on" "$(binding busy.service/call Windows)" "$calls"
equal "in another directory" "$(ls $dir)" bpf-2

# No configuration: nothing is measured, and nothing is left.
end TERM
rm /etc/systemd/system/{busy,naps}.service
systemctl daemon-reload
launch --keep-in=$dir
is_empty() {
        [ -z "$(ls "$dir")" ]
}
check "without bindings the directory becomes empty" until_true is_empty
check "and nothing is in the kernel" until_true links_are "$before"

tlobctl add-binding a --executable="$victim" --function=victim_a --budget=1s
pid_before=$pid
end TERM
check "probes stay" test "$(links)" -gt "$before"
check "nobody is there" sh -c "! kill -0 $pid_before"
check "the directory can be removed" rm -r $dir
check "which takes all of it out of the kernel" until_true links_are "$before"

# A service manager that would keep something, too.
printf '[Service]\nType=notify\nFileDescriptorStoreMax=8\nExecStart=%s --keep-in=%s\n' "$program" $dir \
        >/run/systemd/system/both.service
systemctl daemon-reload
check "it starts as a service" systemctl start both.service
equal "and measures what was added before" "$(binding a State)" active
equal "systemd is given nothing to keep" "$(systemctl show -P NFileDescriptorStore both.service)" 0
systemctl stop both.service
check "a stop leaves the probes" test "$(links)" -gt "$before"
rm -r $dir
check "as long as the directory is there" until_true links_are "$before"
rmdir $dir-open
systemctl unmask --runtime tlobd 2>/dev/null
finish
