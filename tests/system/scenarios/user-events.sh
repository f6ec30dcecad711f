# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Windows between events that programs write (user_events), on a kernel that has them, through what can happen to the
# program and to tlobd. The instruments are the program's own clock, and the kernel's own ftrace.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
etc=/etc/systemd/system
tracing=/sys/kernel/tracing
registered=$tracing/user_events_status

field() { # BINDING EXPRESSION
        tlobctl show -j "$1" | jq ".[0] | $2"
}

# A program waits for a line before it begins.
mkfifo "$run/go"
exec {go}<>"$run/go"

# writer HOW USEC N [FIELDS]: its service, with that work, is started anew.
writer() {
        printf '[Service]\nExecStart=%s request %s\nStandardInput=file:%s\nStandardOutput=truncate:%s\n' \
                "$tests/event-writer" "$*" "$run/go" "$run/lengths" >"$etc/writing.service"
        systemctl daemon-reload
        rm -f "$run/lengths" # or what the one before has said is read
        systemctl restart writing
        until_true grep -q ready "$run/lengths"
}

goes() {
        echo go >&$go
        check "$1: it comes to its end" until_true grep -q "^done" "$run/lengths"
}

counts() { # BINDING WINDOWS
        equal "$1: each is a window" "$(field "$1" '.Counters | .["in-budget"] + .violated')" "$2"
        check "$1: the books balance" balanced "$1"
}

mkdir -p "$etc/writing.service.d"
cat >"$etc/writing.service.d/tlob.conf" <<'END'
[X-Tlob request]
Start=user_event:request_begin
Stop=user_event:request_end
BudgetSec=50ms
[X-Tlob spelled]
Start=event:user_events:request_begin
Stop=event:user_events:request_end
BudgetSec=10s
[X-Tlob between]
Start=user_event:request_end
Stop=user_event:request_begin
BudgetSec=10s
END
printf '[Service]\nExecStart=/bin/sleep infinity\n' >"$etc/writing.service"
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nRateLimitIntervalSec=0\n' >/etc/tlob/tlobd.conf.d/user-events.conf
systemctl daemon-reload
start_fresh

# Nobody has registered them yet.
systemctl start writing
reason="'user_event:request_begin' is not there: no program has registered it yet"
check "without the events, it waits" until_true binding_has writing.service/request State waiting
equal "and says for what" "$(binding writing.service/request StateReason)" "$reason"
systemctl stop writing

# Each window against the program's clock, which it looks at on both sides of each event.
writer spin 60000 20
check "they are registered: it is measured" until_true binding_has writing.service/request State active
goes "spinning"
counts writing.service/request 20
counts writing.service/spelled 20
refuse "one event is not two" 1 "are the same event" \
        tlobctl verify --start=user_event:request_begin --stop=event:user_events:request_begin --budget=1s
equal "between them are others, and one that does not end" \
        "$(field writing.service/between '.Counters | [.starts, .["in-budget"], .open] | @csv')" '"20,19,1"'
tlobctl show writing.service/request | sed 's/^/# /'
holds "what is not seen is said" "$(tlobctl status -j)" 'any(.Limitations[]; test("Events of programs are not seen"))'
all_ended() {
        journalctl --sync
        [ "$(journalctl --boot -q -t tlob -o cat TLOB_BINDING=writing.service/request TLOB_END=stop | wc -l)" = 20 ]
}
check "each is a violation" until_true all_ended
journalctl --boot -q -t tlob -o json TLOB_BINDING=writing.service/request TLOB_END=stop |
        jq -r '[.TLOB_ELAPSED_NS, .TLOB_RUNNING_NS, .TLOB_WAITING_NS, .TLOB_SLEEPING_NS] | @tsv' >"$run/ended"
grep ' ' "$run/lengths" | paste - "$run/ended" >"$run/compared"
sed 's/^/# /' "$run/compared"
equal "as long as by the program's own clock, each of them" \
        "$(awk '$3 >= $1 && $3 <= $2 && $4 + $5 + $6 == $3 && $4 > $6' "$run/compared" | wc -l)" 20

# A window that is over its budget is reported while it is open.
writer sleep 3000000 1
check "sleeping: it is measured" until_true binding_has writing.service/request State active
n=$(field writing.service/request .Violations)
echo go >&$go
has_violations() {
        [ "$(field writing.service/request .Violations)" = "$1" ]
}
check "sleeping: it is reported" until_true has_violations $((n + 1))
refuse "before its end" 1 "" grep -q ' ' "$run/lengths"
check "sleeping: it comes to its end" until_true grep -q "^done" "$run/lengths"
end=$(wait_for_entry '.TLOB_BINDING == "writing.service/request" and .TLOB_END != null and
        (.TLOB_SLEEPING_NS | tonumber) > 2900000000' -t tlob)
holds "sleeping: that is what it did" "$end" '(.TLOB_ELAPSED_NS | tonumber) > 3000000000'

# ftrace beside it, and each without the other.
mkdir $tracing/instances/beside
traced() {
        grep -c request_begin: $tracing/instances/beside/trace
}
writer sleep 1000 100
before=$(field writing.service/request .Windows)
echo 1 >$tracing/instances/beside/events/user_events/request_begin/enable
goes "beside ftrace"
equal "beside ftrace: both see each" "$(($(field writing.service/request .Windows) - before)) $(traced)" "100 100"
echo 0 >$tracing/instances/beside/events/user_events/request_begin/enable
writer sleep 1000 100
goes "after ftrace"
counts writing.service/request $((before + 200))
equal "after ftrace: it saw none" "$(traced)" 100
echo 1 >$tracing/instances/beside/events/user_events/request_begin/enable

# tlobd is killed.
before=$(field writing.service/request .Windows)
writer sleep 20000 300
echo go >&$go
pid=$(main_pid)
systemctl kill --signal=KILL --kill-whom=main tlobd
check "killed: the program comes to its end" until_true grep -q "^done" "$run/lengths"
WAIT=300 check "killed: it comes back" until_true started_anew "$pid"
counts writing.service/request $((before + 300))
equal "killed: ftrace has seen as many" "$(traced)" 400

# A new version with other fields: the kernel has the event as it is for as long as somebody asks for it.
echo 0 >$tracing/instances/beside/events/user_events/request_begin/enable
systemctl stop writing
rm "$etc/writing.service.d/tlob.conf"
systemctl daemon-reload
is_free() {
        ! grep -q 'request_.*Used' "$registered"
}
check "without bindings, nobody asks for them" until_true is_free
printf '[Service]\nExecStart=%s request sleep 1000 1 "u64 number"\nStandardInput=file:%s\nStandardOutput=truncate:%s\n' \
        "$tests/event-writer" "$run/go" "$run/lengths" >"$etc/writing.service"
systemctl daemon-reload
check "and they can have other fields" systemctl start writing
check "which are registered" until_true grep -q ready "$run/lengths"
systemctl stop writing
rmdir $tracing/instances/beside

rm -r "$etc/writing.service" "$etc/writing.service.d" /etc/tlob/tlobd.conf.d/user-events.conf
systemctl daemon-reload
finish
