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

unwritten() {
        journalctl -q --boot -o json -t tlob MESSAGE_ID=d809078b7e0c45c2a95ce24db022bb4d |
                jq -s 'map(.TLOB_UNWRITTEN | tonumber) | add // 0'
}

# Who has it running ends it and its sockets in one go: a socket would start it again.
stop_journald() {
        systemctl stop "${sockets[@]}" systemd-journald.service
}

start_journald() {
        systemctl start "${sockets[@]}" systemd-journald.service
}

mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nRateLimitIntervalSec=0\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/journal.conf
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
"$victim" threads:4 '(' repeat:1000 '(' 'a(' sleep:1100000 ')' ')' ')' >/dev/null
equal "all is counted" "$(counter nap violated)" 4400
check "journald comes back again" start_journald
check "it is told that not all was kept" wait_for_entry '.TLOB_UNWRITTEN != null' -t tlob
equal "and how much" $(($(entries "$violation") + $(entries "$completion") + $(unwritten))) 8800
check "but some was" [ "$(entries "$violation")" -gt 600 ]

finish
