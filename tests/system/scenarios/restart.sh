# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# tlobd ends in every way that there is, while services go on: what they did is in the books of the
# tlobd that comes after, and a stop leaves nothing in the kernel. The instrument is the services'
# own number of calls.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim
calls=600000
naps=400

has_ended() {
        [ "$(systemctl show -P ActiveState "$1")" = inactive ]
}

kept() {
        systemctl show -P NFileDescriptorStore tlobd
}

printf '[Service]\nExecStart=%s storm:%s\n[X-Tlob a]\nFunction=victim_storm\nBudgetSec=1min\nCPULimit=infinity\n' \
        "$victim" "$calls" >"$etc/busy.service"
printf '[Service]\nExecStart=%s repeat:%s ( a( sleep:20000000 ) )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=5ms\n' \
        "$victim" "$naps" >"$etc/naps.service"
# A library has its probes in each process of the unit: there before it calls.
tests=/usr/libexec/tlob-tests
printf '[Service]\nEnvironment=LD_LIBRARY_PATH=%s\nExecStart=/bin/sh -c "sleep 1; exec %s/reach-caller call:%s"\n' \
        "$tests" "$tests" "$calls" >"$etc/library.service"
printf '[X-Tlob a]\nExecutable=%s/libreach.so\nFunction=reach_call\nBudgetSec=1min\nCPULimit=infinity\n' "$tests" >>"$etc/library.service"
# Instances that come while nobody is there.
printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:1000000 )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=200us\n' \
        "$victim" >"$etc/new@.service"
systemctl daemon-reload
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/price.conf
start_fresh
check "a binding that exists at run time only" tlobctl add-binding nobody --executable="$victim" \
        --function=victim_c --budget=1s
equal "systemd keeps three descriptors" "$(kept)" 3

reported() {
        journalctl --boot -q -t tlob -o json MESSAGE_ID=270a2c0044b740cdb4f203a0156802cb |
                jq -r 'select(.TLOB_BINDING | startswith("new@")) | .TLOB_UNIT' | sort -V | xargs
}

systemctl start busy.service naps.service library.service
n=0
expected=()
start_new() {
        for _ in 1 2 3; do
                n=$((n + 1))
                expected+=("new@$n.service")
                systemctl start "new@$n.service"
        done
}

signal() {
        systemctl kill --signal="$2" --kill-whom=main "$1"
}

# A build whose BPF programs differ, in the name of a source that is in their debug information.
build=c
program=$(systemctl show -P ExecStart tlobd | sed 's/.*path=\([^ ;]*\).*/\1/')
upgrade() {
        local other=d

        [ "$build" = c ] || other=c
        sed -i "s/program\/tlob\.bpf\.$build/program\/tlob.bpf.$other/" "$program"
        build=$other
        grep -q "program/tlob\.bpf\.$build" "$program"
}

# Without the bus tlobd fails, and cannot ask why it is to stop.
for way in restart KILL no-bus upgrade restart ABRT mute-bus another-bus upgrade restart KILL; do
        pid=$(main_pid)
        case $way in
        restart) systemctl restart tlobd ;;
        upgrade)
                check "there is another build" upgrade
                systemctl restart tlobd
                ;;
        another-bus) systemctl restart dbus ;;
        no-bus)
                signal dbus KILL
                start_new
                ;;
        mute-bus)
                signal dbus STOP
                systemctl restart --no-block tlobd
                pause 3
                signal dbus CONT
                ;;
        *)
                signal tlobd "$way"
                start_new
                ;;
        esac
        check "after $way there is another tlobd" until_true started_anew "$pid"
        pause 0.3
done
check "the services have ended" until_true has_ended busy.service
check "all of them" until_true has_ended naps.service
check "the library's user too" until_true has_ended library.service
pause 0.5
equal "each call of the busy one is in the books" "$(binding busy.service/a Windows)" "$calls"
equal "and of a library that is measured in its unit only" "$(binding library.service/a Windows)" "$calls"
all_are_reported() {
        [ "$(reported)" = "${expected[*]}" ]
}
until_true all_are_reported
equal "instances that came while there was no tlobd are reported under their names" "$(reported)" "${expected[*]}"
holds "the books balance" "$(tlobctl show -j busy.service/a | jq '.[0].Counters')" \
        '.starts == ."in-budget" and .open == 0'
equal "each nap is a violation" "$(binding naps.service/a Violations)" "$naps"
equal "systemd keeps no more than before" "$(kept)" 3

# While nobody reads: as long as a tlobd stands still that is killed then.
kill_after() {
        local pid

        pid=$(main_pid)
        signal tlobd STOP
        "$@" >/dev/null
        signal tlobd KILL
        check "it is killed, and there is another" until_true started_anew "$pid"
}

entries() {
        journalctl --boot -q -t tlob -o json MESSAGE_ID="$1" | jq -s "$2"
}

break_budgets() {
        "$victim" repeat:"$1" '(' b'(' spin:2000 ')' ')'
}

check "a binding that is always broken" \
        tlobctl add-binding broken --executable="$victim" --function=victim_b --budget=1us
told() {
        entries 270a2c0044b740cdb4f203a0156802cb '[.[] | select(.TLOB_BINDING == "broken")] | length'
}
all_told() {
        [ "$(told)" = 20 ]
}
break_budgets 40 >/dev/null
check "as many are reported as may be" until_true all_told
kill_after break_budgets 1000
all_held_back() {
        holds=$(entries 35d6608ac4a2420eb878e72c39b95a58 \
                '[.[] | select(.TLOB_BINDING == "broken") | .TLOB_SUPPRESSED | tonumber] | add')
        [ "$holds" = "$(counter broken suppressed)" ]
}
check "what was held back is said" until_true all_held_back
equal "of all violations, but for those that were reported" "$(counter broken suppressed)" \
        $((1040 - $(told)))

printf '[Daemon]\nRingBufferSize=4K\nRateLimitIntervalSec=0\n' >/etc/tlob/tlobd.conf.d/limits.conf
systemctl restart tlobd
lost_in_journal() {
        entries 68d65f2e4d154de0a20e52bc955cb39b '[.[].TLOB_LOST | tonumber] | add'
}
has_lost() { # NUMBER
        [ "$(lost_in_journal)" = "$1" ]
}
for n in 1 2; do
        kill_after break_budgets 1000
        lost=$(counter broken lost)
        holds "reports are lost" "$lost" '. > 500'
        equal "and the status has their number" "$(tlobctl status -j | jq .Lost)" "$lost"
        until_true has_lost "$lost"
        equal "and so has the journal" "$(lost_in_journal)" "$lost"
done
rm /etc/tlob/tlobd.conf.d/limits.conf
systemctl restart tlobd

# The maps of the one before cannot be used: what they have counted goes on in others.
of_broken() {
        tlobctl show -j broken | jq -c '.[0] | [.Violations, .Counters.suppressed, .Counters.violated]'
}
before=$(of_broken)
printf '[Daemon]\nTasksMax=512\n' >/etc/tlob/tlobd.conf.d/limits.conf
systemctl restart tlobd
equal "with another limit the books go on" \
        "$(binding naps.service/a Violations) $(binding busy.service/a Windows)" "$naps $calls"
equal "so do those that others had counted before" "$(of_broken)" "$before"
holds "all of them" "$before" '.[0] == 3040'
check "which is told" wait_for_entry '.MESSAGE | test("sets all probes anew, .*; counters go on")' -u tlobd
equal "and systemd keeps what is new" "$(kept)" 3
systemctl start new@99.service
check "which measures" until_true sh -c 'journalctl --boot -q -t tlob TLOB_UNIT=new@99.service | grep -q "over its"'
rm /etc/tlob/tlobd.conf.d/limits.conf

systemctl stop tlobd
equal "a stop leaves it nothing" "$(kept)" 0
systemctl start tlobd
equal "and the books begin anew" "$(binding busy.service/a Windows)" 0
finish
