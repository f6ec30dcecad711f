# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What scenarios are written with. A check prints "ok" or "not ok" and a sentence; a scenario goes
# on after a failed check, and ends with finish, which gives its exit status. Waiting is for an
# event, with a time limit.

set -u

# shellcheck disable=SC2034
run=$(mktemp -d -p /run) # for a scenario's own files, not in an overlay
n_checks=0
n_failed=0

# Seconds for anything that should come at once, on a slow machine. In emulation, the BPF programs alone take half a
# minute to load if others take the CPU, too.
if grep -qw 'QEMU TCG' /proc/cpuinfo; then
        WAIT=${WAIT:-120}
else
        WAIT=${WAIT:-30}
fi

passed() {
        n_checks=$((n_checks + 1))
        echo "ok $n_checks - $*"
}

# failed TEXT [DETAIL...]: each detail is shown on lines of its own.
failed() {
        n_checks=$((n_checks + 1))
        n_failed=$((n_failed + 1))
        echo "not ok $n_checks - $1"
        shift
        for _; do
                printf '%s\n' "$_" | sed 's/^/#   /'
        done
}

# check TEXT COMMAND...: the command succeeds.
check() {
        local text=$1 output status

        shift
        output=$("$@" 2>&1)
        status=$?
        if [ $status -eq 0 ]; then
                passed "$text"
        else
                failed "$text" "exit status $status of: $*" "$output"
        fi
}

# refuse TEXT STATUS PATTERN COMMAND...: the command fails with this status, and says something that
# matches the pattern (an extended regular expression).
refuse() {
        local text=$1 expected=$2 pattern=$3 output status

        shift 3
        output=$("$@" 2>&1)
        status=$?
        if [ $status -ne "$expected" ]; then
                failed "$text" "exit status $status instead of $expected of: $*" "$output"
        elif ! grep -qE -- "$pattern" <<<"$output"; then
                failed "$text" "nothing that matches \"$pattern\" in:" "$output"
        else
                passed "$text"
        fi
}

equal() {
        if [ "$2" = "$3" ]; then
                passed "$1"
        else
                failed "$1" "got \"$2\" instead of \"$3\""
        fi
}

# matches TEXT STRING PATTERN
matches() {
        if grep -qE -- "$3" <<<"$2"; then
                passed "$1"
        else
                failed "$1" "nothing that matches \"$3\" in:" "$2"
        fi
}

# holds TEXT JSON EXPRESSION [JQ-OPTION...]: the jq expression is true of it.
holds() {
        local text=$1 json=$2 expression=$3

        shift 3
        if [ -n "$json" ] && jq -e "$@" "$expression" >/dev/null 2>&1 <<<"$json"; then
                passed "$text"
        else
                failed "$text" "not true: $expression" "of: $json"
        fi
}

# balanced BINDING: what must hold whatever happened.
balanced() {
        tlobctl show -j "$1" | jq -e '.[0].Counters | .starts == .["in-budget"] + .violated + .open + .exit + .exec +
                .abandoned + .removed + .["over-limit"] and .unmatched == 0 and .nested == 0'
}

# In both, what goes on in the background must not hold the standard error that check() captures.

# wait_for_line FILE PATTERN: until the growing file, in $run, has a line that matches; prints it. Who writes it may not
# have made it yet. (In an overlay, tail would look for changes each second, by a nap that some scenarios would measure.)
wait_for_line() {
        local line status tail tail_fd

        : >>"$1"
        exec {tail_fd}< <(exec timeout "$WAIT" tail -n +1 -f "$1" 2>/dev/null)
        tail=$!
        line=$(grep -m1 -E -- "$2" <&"$tail_fd")
        status=$?
        exec {tail_fd}<&-
        kill $tail 2>/dev/null
        [ $status -ne 0 ] || printf '%s\n' "$line"
        return $status
}

# wait_for_entry PATTERN [JOURNALCTL-OPTION...]: until an entry of the journal whose JSON matches is
# there; prints it.
wait_for_entry() {
        local pattern=$1 entry='' journal_fd

        shift
        exec {journal_fd}< <(
                exec 2>/dev/null
                timeout "$WAIT" journalctl --boot --lines=all --follow --output=json --all "$@" |
                        jq --unbuffered -c "select($pattern)"
        )
        IFS= read -r -t "$WAIT" -u "$journal_fd" entry
        exec {journal_fd}<&-
        [ -n "$entry" ] && printf '%s\n' "$entry"
}

# pause SECONDS: without a call that a scenario may have put a probe on.
mkfifo "$run/never"
exec {never}<>"$run/never"
pause() {
        read -rt "$1" -u "$never" _ || true # it ends by its time-out
}

# until_true COMMAND...: for what has no event to wait for.
until_true() {
        local deadline=$((SECONDS + WAIT))

        until "$@" >/dev/null 2>&1; do
                [ $SECONDS -lt $deadline ] || return 1
                pause 0.1
        done
}

# kill_for_calls: a system call that the unit does not list ends tlobd, with SIGSYS, rather than
# failing: so each scenario shows that the list has all that is needed.
kill_for_calls() {
        local dropins=/etc/systemd/system/tlobd.service.d

        [ ! -e $dropins/sanitizers.conf ] && [ ! -e $dropins/calls.conf ] || return 0
        mkdir -p $dropins
        printf '[Service]\nSystemCallErrorNumber=kill\n' >$dropins/calls.conf
        systemctl daemon-reload
}

# start_fresh: tlobd with no bindings but those of [FILE...], which go to bindings.d.
start_fresh() {
        systemctl stop tlobd 2>/dev/null
        rm -rf /run/tlob /usr/lib/tlob/bindings.d /etc/tlob/overrides.d /etc/tlob/bindings.d/*.conf
        [ $# -eq 0 ] || cp "$@" /etc/tlob/bindings.d/
        kill_for_calls
        check "tlobd starts" systemctl start tlobd
}

main_pid() {
        systemctl show -P MainPID tlobd
}

# started_anew PID: tlobd is ready, and another process than PID, which was killed. (That it is
# active is true of PID, too, until systemd has heard of its end.)
started_anew() {
        [ "$(main_pid)" != "$1" ] && systemctl is-active tlobd
}

# binding NAME PROPERTY: what tlobctl shows of it.
binding() {
        tlobctl show -j "$1" | jq -r ".[0].$2"
}

# binding_has BINDING PROPERTY VALUE
binding_has() {
        [ "$(binding "$1" "$2")" = "$3" ]
}

# says BINDING PATTERN: its state has a reason that matches.
says() {
        grep -qE -- "$2" <<<"$(binding "$1" StateReason)"
}

# has_windows BINDING N: it has had so many at least.
has_windows() {
        [ "$(binding "$1" Windows)" -ge "$2" ]
}

# grows BINDING: there are new windows of it.
grows() {
        until_true has_windows "$1" $(($(binding "$1" Windows) + 1))
}

# reported_windows BINDING: the numbers of those that were reported as violations, one a line.
reported_windows() {
        journalctl --boot -q -t tlob -o json MESSAGE_ID=270a2c0044b740cdb4f203a0156802cb |
                jq -r --arg binding "$1" 'select(.TLOB_BINDING == $binding) | .TLOB_WINDOW_ID'
}

# told_twice BINDING: the numbers of those that were, and of whose second entry it is not said that it may be one.
told_twice() {
        journalctl --boot -q -t tlob -o json MESSAGE_ID=270a2c0044b740cdb4f203a0156802cb |
                jq -r --arg binding "$1" 'select(.TLOB_BINDING == $binding and .TLOB_REPEATED == null) | .TLOB_WINDOW_ID' |
                sort | uniq -d
}

# unwritten: how many entries the journal never got, of violations, their ends, and of what tlobd says of itself; as it
# has told itself.
unwritten() {
        journalctl --boot -q -t tlob -o json MESSAGE_ID=d809078b7e0c45c2a95ce24db022bb4d |
                jq -s 'map(.TLOB_UNWRITTEN | tonumber) | add // 0'
}

# counter BINDING NAME: one of its counters.
counter() {
        tlobctl show -j "$1" | jq ".[0].Counters[\"$2\"]"
}

# aborted_windows: how many the kernel's monitor has lost track of, as tlobd counts them.
aborted_windows() {
        tlobctl status -j | jq '[.Limitations[] | capture("so far: (?<n>[0-9]+) windows aborted").n | tonumber] | add // 0'
}

# seen_or_aborted ABORTED COMMAND...: a command that is true when a violation has been seen; or the
# monitor has lost track of more windows than ABORTED.
seen_or_aborted() {
        local before=$1

        shift
        "$@" || [ "$(aborted_windows)" -gt "$before" ]
}

# as_nobody COMMAND...: without rights, and without anyone to ask for a password.
as_nobody() {
        setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@" </dev/null
}

finish() {
        equal "no system call was denied" "$(journalctl --boot -q -o cat -u tlobd --grep='status=31/SYS')" ""
        echo "1..$n_checks"
        [ "$n_failed" -eq 0 ] && [ "$n_checks" -gt 0 ]
        exit
}
