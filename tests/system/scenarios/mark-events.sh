# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Marks that are events of the program, too, on a kernel that has such: the kernel's ftrace sees them beside tlobd, and
# each without the other; and where they could do harm.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
etc=/etc/systemd/system
beside=/sys/kernel/tracing/instances/beside
events=$beside/events/user_events/tlob_window

field() { # BINDING EXPRESSION
        tlobctl show -j "$1" | jq ".[0] | $2"
}

has_ended() {
        [ "$(systemctl show -P SubState marking)" = dead ]
}

# A program waits for a line before it begins.
mkfifo "$run/go"
exec {go}<>"$run/go"

mkdir $beside
start_fresh
# So that the programs stay.
tlobctl add-binding keeper --executable=$tests/victim --function=victim_a --budget=10s 2>/dev/null

for example in mark-example-events mark-example-joined-events; do
        cat >"$etc/marking.service" <<END
[Service]
ExecStart=$tests/$example 100
[X-Tlob request]
Mark=request
BudgetSec=10s
END
        # So that the event is there.
        "$tests/event-marks-user" plain <"$run/go" >/dev/null &
        holder=$!
        check "$example: the event is registered" until_true test -d $events
        systemctl daemon-reload
        check "$example: it is bound" until_true says marking.service/request "is not running"
        : >$beside/trace
        echo 1 >$events/enable
        systemctl start marking
        check "$example: it ends" until_true has_ended
        equal "$example: each is a window" "$(field marking.service/request .Windows)" 100
        head -14 $beside/trace | sed 's/^/# /'
        equal "$example: ftrace has each begin and end" \
                "$(grep -c 'tlob_window: mark=request key=0x0 (0) phase=(0)' $beside/trace) \
$(grep -c 'tlob_window: mark=request key=0x0 (0) phase=(1)' $beside/trace)" "100 100"
        : >$beside/trace
        echo 0 >$events/enable
        systemctl start marking
        check "$example: without ftrace it ends" until_true has_ended
        equal "$example: and again" "$(field marking.service/request .Windows)" 200
        check "$example: the books balance" balanced marking.service/request
        equal "$example: without ftrace nothing is written" "$(grep -c tlob_window: $beside/trace)" 0
        rm "$etc/marking.service"
        systemctl daemon-reload
        echo 1 >$events/enable
        "$tests/$example" 100 >/dev/null
        equal "$example: without tlobd ftrace has each" "$(grep -c 'mark=request key' $beside/trace)" 200
        echo 0 >$events/enable
        echo go >&$go
        wait $holder
done

# Where they could do harm.
harmless() { # TEXT ARGUMENT...
        rm -f "$run/said"
        "$tests/event-marks-user" "${@:2}" <"$run/go" >"$run/said" 2>&1 &
        program=$!
        until_true grep -q ready "$run/said"
        echo 1 >$events/enable
        : >$beside/trace
        echo go >&$go
        if [ "$2" = unloaded ] || [ "$2" = forgotten ]; then
                until_true grep -q unloaded "$run/said"
                echo 0 >$events/enable
                echo 1 >$events/enable
                echo go >&$go
        fi
        wait $program
        equal "$1" "$(tail -1 "$run/said")" well
        # While the event is there, and has a name.
        n_seen=$(seen)
        echo 0 >$events/enable
}

seen() {
        grep -c 'mark=harmless key' $beside/trace
}

harmless "as it is" plain
equal "all are there" "$n_seen" 200
harmless "its descriptors are closed, and others" closed "$run/file"
harmless "it forks" forked
equal "those of children are there, too" "$n_seen" 600
harmless "a library with marks is unloaded" unloaded "$tests/libevent-marks.so"
harmless "and by who has closed all descriptors" forgotten "$tests/libevent-marks.so"
harmless "it comes and goes" reloaded "$tests/libevent-marks.so"
harmless "it comes when there are threads" late "$tests/libevent-marks.so"
harmless "it ends while a thread writes" busy

# A service that may not open the file, and gets it from systemd (OpenFile= of 253 and later).
exec {data}<>/sys/kernel/tracing/user_events_data
setpriv --reuid=daemon --regid=daemon --clear-groups bash -c \
        'exec 3<&'$data'; export LISTEN_FDS=1 LISTEN_FDNAMES=user_events LISTEN_PID=$$; exec "$0" plain' \
        "$tests/event-marks-user" <"$run/go" >"$run/said" 2>&1 &
program=$!
check "given the file: it is ready" until_true grep -q ready "$run/said"
echo 1 >$events/enable
: >$beside/trace
echo go >&$go
wait $program
equal "given the file: all are there" "$(tail -1 "$run/said") $(seen)" "well 200"
echo 0 >$events/enable
setpriv --reuid=daemon --regid=daemon --clear-groups "$tests/event-marks-user" plain <"$run/go" >"$run/said" 2>&1 &
program=$!
until_true grep -q ready "$run/said"
echo go >&$go
wait $program
equal "without the file: it is as without events" "$(cat "$run/said")" "ready
well"

rmdir $beside
tlobctl remove-binding keeper
finish
