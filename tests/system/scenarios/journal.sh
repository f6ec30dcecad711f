# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A journald that is restarted, or is not there: what is kept for it comes, and what is not is said.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
sockets=(systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket)
violation=270a2c0044b740cdb4f203a0156802cb
completion=b712727f10d94a359d0790c76c950ef5

entries() { # MESSAGE-ID
        journalctl -q --boot -o cat -t tlob TLOB_BINDING=nap MESSAGE_ID="$1" | wc -l
}

have() { # MESSAGE-ID NUMBER
        [ "$(entries "$1")" -ge "$2" ]
}

# Who has it running ends it and its sockets in one go: a socket would start it again.
stop_journald() {
        systemctl stop "${sockets[@]}" systemd-journald.service
}

# However often it was started.
start_journald() {
        systemctl reset-failed systemd-journald.service
        systemctl start "${sockets[@]}" systemd-journald.service
}

mkdir -p /etc/tlob/tlobd.conf.d
# Reports wait while tlobd does not get to read them.
printf '[Daemon]\nRateLimitIntervalSec=0\nRingBufferSize=16M\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/journal.conf
# What it tells systemd now and then is a message, too: below, they are counted.
mkdir -p /run/systemd/system/tlobd.service.d
printf '[Service]\nWatchdogSec=0\n' >/run/systemd/system/tlobd.service.d/journal.conf
systemctl daemon-reload
start_fresh
check "a binding" tlobctl add-binding nap --executable="$victim" --function=victim_a --budget=1ms

"$victim" repeat:300 '(' 'a(' sleep:5000000 ')' ')' >/dev/null &
napping=$!
for _ in 1 2 3; do
        pause 0.3
        check "journald is restarted" systemctl restart systemd-journald
done
wait "$napping"
check "all is in the journal that is written meanwhile" until_true have "$completion" 300
equal "each violation once" "$(entries "$violation")" 300
equal "and each completion" "$(entries "$completion")" 300

check "journald goes" stop_journald
check "and is not there" test "$(systemctl is-active systemd-journald)" != active
"$victim" repeat:100 '(' 'a(' sleep:2000000 ')' ')' >/dev/null
check "tlobd answers meanwhile" tlobctl status
check "journald comes back" start_journald
check "it gets what was reported while there was none" until_true have "$completion" 400
equal "each violation once more" "$(entries "$violation")" 400
equal "nothing was dropped" "$(unwritten)" 0

check "journald goes for longer" stop_journald
"$victim" threads:4 '(' repeat:2000 '(' 'a(' sleep:1100000 ')' ')' ')' >/dev/null
equal "all is counted" "$(counter nap violated)" 8400
check "journald comes back again" start_journald
check "it is told that not all was kept" wait_for_entry '.TLOB_UNWRITTEN != null' -t tlob
is_told_of() { # NUMBER
        [ $(($(entries "$violation") + $(entries "$completion") + $(unwritten))) = "$1" ]
}
check "and how much" until_true is_told_of 16800
check "but some was" [ "$(entries "$violation")" -gt 3000 ]

# As much as the kernel's buffer holds, at once.
journald=$(systemctl show -P MainPID systemd-journald)
before=$(entries "$violation") before_ends=$(entries "$completion") lost=$(unwritten)
check "journald pauses" kill -STOP "$journald"
"$victim" threads:8 '(' repeat:250 '(' 'a(' sleep:1100000 ')' ')' ')' >/dev/null
check "journald goes on" kill -CONT "$journald"
check "all comes" until_true have "$completion" $((before_ends + 2000))
equal "each violation" "$(entries "$violation")" $((before + 2000))
equal "and nothing was lost" "$(unwritten)" "$lost"

# What waits when tlobd ends, however that happens, is for the next one.
before=$(entries "$violation") before_ends=$(entries "$completion")
for end in "systemctl restart --no-block tlobd" "systemctl kill --signal=KILL --kill-whom=main tlobd"; do
        check "journald stands still" kill -STOP "$journald"
        "$victim" repeat:200 '(' 'a(' sleep:1100000 ')' ')' >/dev/null
        pid=$(main_pid)
        # shellcheck disable=SC2086
        check "$end" $end
        check "there is another" until_true started_anew "$pid"
        check "journald goes on" kill -CONT "$journald"
        before=$((before + 200)) before_ends=$((before_ends + 200))
        check "all that waited is there" until_true have "$completion" "$before_ends"
        equal "each violation once" "$(reported_windows nap | sort -u | wc -l) $(told_twice nap)" "$before "
        equal "and nothing was lost" "$(unwritten)" "$lost"
done

# It has told a violation, and dies before it can note that: the next one tells it once more, and says so.
pid=$(main_pid)
strace -o "$run/strace" -p "$pid" -e trace=sendmsg -e inject=sendmsg:signal=KILL:when=2 2>"$run/strace.log" &
check "somebody waits for it" wait_for_line "$run/strace.log" attached
"$victim" 'a(' sleep:5000000 ')' >/dev/null
check "there is another" until_true started_anew "$pid"
check "it tells the violation again" wait_for_entry '.TLOB_REPEATED == "1"' -t tlob
equal "of which there are two entries" "$(reported_windows nap | sort | uniq -d | wc -l)" 1
equal "one of them with a word" "$(told_twice nap)" ""

# More than there is room for is lost, and that is said, too.
told=$(($(entries "$violation") + $(entries "$completion") + $(unwritten)))
check "journald stands still" kill -STOP "$journald"
"$victim" repeat:1500 '(' 'a(' sleep:1100000 ')' ')' >/dev/null
pid=$(main_pid)
check "tlobd is restarted meanwhile" systemctl restart --no-block tlobd
check "there is another" until_true started_anew "$pid"
check "journald goes on" kill -CONT "$journald"
all_told() {
        [ $(($(entries "$violation") + $(entries "$completion") + $(unwritten))) -ge $((told + 3000)) ]
}
check "each entry is there, or is counted as one that is not" until_true all_told
holds "as are the few that tlobd wrote about itself" \
        $(($(entries "$violation") + $(entries "$completion") + $(unwritten) - told)) '. < 3010'

# A disk that is full is journald's: what it cannot write is lost there, and counted here all the same.
before=$(counter nap violated)
mkdir -p /var/log/journal
check "a small disk for the journal" mount -t tmpfs -o size=24M journal /var/log/journal
systemctl reset-failed systemd-journald.service
check "journald writes to it" systemctl restart systemd-journald
check "and has moved there" journalctl --flush
dd if=/dev/zero of=/var/log/journal/full bs=64k >/dev/null 2>&1
check "it is full" [ "$(stat -f -c %a /var/log/journal)" = 0 ]
"$victim" repeat:500 '(' 'a(' sleep:1100000 ')' ')' >/dev/null
equal "all is counted" $(($(counter nap violated) - before)) 500
check "tlobd answers" tlobctl violations
rm /var/log/journal/full
# journald looks for room only every 30 s, and may make more by deleting what is old.
since=$(date +%s)
is_written() {
        "$victim" repeat:10 '(' 'a(' sleep:1100000 ')' ')' >/dev/null
        [ "$(journalctl --boot -q -t tlob --since="@$since" -o json MESSAGE_ID="$violation" | wc -l)" -ge 10 ]
}
WAIT=90 check "there is room, and what comes then is written" until_true is_written
umount --lazy /var/log/journal
check "the journal is where it was" systemctl restart systemd-journald

# What was held back is said when there is no later.
held_back() { # BINDING
        journalctl -q --boot -o json -t tlob TLOB_BINDING="$1" MESSAGE_ID=35d6608ac4a2420eb878e72c39b95a58 |
                jq -s 'map(.TLOB_SUPPRESSED | tonumber) | add // 0'
}
all_held_back() { # BINDING
        [ "$(held_back "$1")" = 280 ]
}
printf '[Daemon]\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/journal.conf
check "there is a limit" tlobctl reload
for end in "tlobctl remove-binding removed" "systemctl stop tlobd"; do
        name=${end##* }
        check "a binding" tlobctl add-binding "$name" --executable="$victim" --function=victim_b --budget=1us
        "$victim" repeat:300 '(' 'b(' spin:2000 ')' ')' >/dev/null
        # shellcheck disable=SC2086
        check "$end" $end
        check "all that was held back has been said" until_true all_held_back "$name"
done

rm /run/systemd/system/tlobd.service.d/journal.conf
systemctl daemon-reload
finish
