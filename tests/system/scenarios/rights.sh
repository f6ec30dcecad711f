# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A user without rights tries every method and sets every property of every object, whatever there
# is: reads are answered and show neither stacks nor addresses, all else is refused and changes
# nothing. With polkit, and without it.

. "${BASH_SOURCE[0]%/*}/assert.sh"

# What anybody may call. A method that is not here has to be refused.
open=(
        org.freedesktop.DBus.Introspectable.Introspect
        org.freedesktop.DBus.ObjectManager.GetManagedObjects
        org.freedesktop.DBus.Peer.GetMachineId
        org.freedesktop.DBus.Peer.Ping
        org.tlob1.Binding.GetCost
        org.tlob1.Manager.GetBinding
        org.tlob1.Manager.GetViolations
        org.tlob1.Manager.ListBindings
)

nobody_calls() {
        as_nobody busctl --json=short call org.tlob1 "$@"
}

# Every object, as "PATH".
objects() {
        as_nobody busctl tree --list org.tlob1
}

# members PATH: "INTERFACE KIND MEMBER SIGNATURE" of its methods and properties. Each property is read
# and set by itself, through the methods of org.freedesktop.DBus.Properties.
members() {
        as_nobody busctl introspect --no-legend org.tlob1 "$1" | awk '
                /^[^.]/ { interface = $1 }
                interface == "org.freedesktop.DBus.Properties" { next }
                $2 == "method" || $2 == "property" { print interface, $2, substr($1, 2), $3 }'
}

# arguments INTERFACE.MEMBER SIGNATURE: those with which root's call would succeed, in $arguments. A
# method that is not known here gets what it may not look at before it has asked who calls.
binding=(3 Executable s libc.so.6 Function s clock_nanosleep BudgetSec s 1s)
arguments() {
        case $1 in
        org.tlob1.Manager.AddBinding) arguments=(mine "${binding[@]}" 0) ;;
        org.tlob1.Manager.Verify) arguments=("${binding[@]}") ;;
        org.tlob1.Manager.GetStack) arguments=("$window") ;;
        org.tlob1.Manager.RemoveBinding) arguments=(added 0) ;;
        org.tlob1.Manager.SetBudget) arguments=(added 2000000000 0) ;;
        org.tlob1.Manager.GetBinding) arguments=(added) ;;
        org.tlob1.Binding.SetBudget) arguments=(2000000000 0) ;;
        org.tlob1.Lender.Lend) arguments=(0 0 0 0) ;;
        *) generic_arguments "$2" ;;
        esac
}

# generic_arguments SIGNATURE: zeros, empty strings and arrays of nothing.
generic_arguments() {
        local types=$1 i

        arguments=()
        for ((i = 0; i < ${#types}; i++)); do
                case ${types:i:1} in
                -) ;;
                s) arguments+=("") ;;
                o) arguments+=(/) ;;
                g) arguments+=("") ;;
                a)
                        arguments+=(0)
                        break # arrays come last, or the method is above
                        ;;
                *) arguments+=(0) ;;
                esac
        done
}

# may_not TEXT COMMAND...: it is refused for want of rights, or because there is nothing to write to.
may_not() {
        local text=$1

        shift
        refuse "$text" 1 'Access denied|is not writable' "$@"
}

is_open() {
        local method

        for method in "${open[@]}"; do
                [ "$1" != "$method" ] || return 0
        done
        return 1
}

# try_member WHEN PATH INTERFACE KIND MEMBER SIGNATURE
try_member() {
        local what="$1: $2: $3.$5"

        if [ "$4" = property ]; then
                check "$what: anyone may read it" as_nobody busctl get-property org.tlob1 "$2" "$3" "$5"
                generic_arguments "$6"
                may_not "$what: nobody may set it" \
                        as_nobody busctl set-property org.tlob1 "$2" "$3" "$5" "$6" "${arguments[@]}"
                return
        fi
        arguments "$3.$5" "$6"
        [ "$6" = - ] || arguments=("$6" "${arguments[@]}")
        if is_open "$3.$5"; then
                check "$what: anyone may call it" nobody_calls "$2" "$3" "$5" "${arguments[@]}"
        else
                may_not "$what: not everyone may call it" nobody_calls "$2" "$3" "$5" "${arguments[@]}"
        fi
}

# What a change would change: files, bindings, budgets, and counters, which only grow.
state() {
        (cd / && find etc/tlob run/tlob -type f -path '*.d/*' -exec sha256sum {} + | sort -k2)
        tlobctl show -j nap added | jq -c '.[] | [.Name, .Source, .State, .BudgetNSec, .ConfiguredBudgetNSec, .Windows > 0]'
}

# nobody_tries_all WHEN
nobody_tries_all() {
        local before path interface kind member signature n=0 n_before

        before=$(state)
        n_before=$(wc -l <errors)
        for path in $(objects); do
                while read -r interface kind member signature <&3; do
                        try_member "$1" "$path" "$interface" "$kind" "$member" "$signature"
                        n=$((n + 1))
                done 3< <(members "$path")
        done
        # The manager, who lends, and two bindings have as many at least: 12 methods and 14 properties, 7, and 4 and 20.
        check "$1: all of it was tried ($n members)" [ "$n" -ge 81 ]
        equal "$1: nothing was changed" "$(state)" "$before"
        nobody_calls /org/tlob1 org.tlob1.Manager GetBinding s "end ${1// /-}" 2>/dev/null
        check "$1: all errors have come" wait_for_line errors "end ${1// /-}"
        equal "$1: each was that the caller may not, or that nothing can be written there" \
                "$(tail -n +$((n_before + 1)) errors | jq -r .error_name | grep -v NoSuchBinding | sort -u)" \
                "$(printf 'org.freedesktop.DBus.Error.%s\n' AccessDenied PropertyReadOnly)"
}

# systemd_is_not_asked: calls about a unit of which tlobd knows nothing, by somebody without rights.
# That systemd was asked would show before the call is refused.
systemd_is_not_asked() {
        local call=(/org/tlob1 org.tlob1.Manager)

        may_not "not everyone may add a binding for a unit" nobody_calls "${call[@]}" \
                AddBinding "sa{sv}t" mine 4 "${binding[@]:1}" Unit s unheard-of.service 0
        may_not "not everyone may have a unit looked at" nobody_calls "${call[@]}" \
                Verify "a{sv}" 4 "${binding[@]:1}" Unit s unheard-of.service
        refuse "systemd is not asked for them" 1 '' grep -q unheard <(jq -r '.path, .payload.data[]?' calls)
        check "it is asked for root" busctl call org.tlob1 "${call[@]}" \
                Verify "a{sv}" 4 "${binding[@]:1}" Unit s unheard-of.service
        check "and that would have been seen" wait_for_line calls unheard
}

# All that anybody can read, and the signals that were sent.
all_reads() {
        local path

        nobody_calls /org/tlob1 org.freedesktop.DBus.ObjectManager GetManagedObjects
        nobody_calls /org/tlob1 org.freedesktop.DBus.Properties GetAll s org.tlob1.Manager
        nobody_calls /org/tlob1 org.tlob1.Manager ListBindings
        nobody_calls /org/tlob1 org.tlob1.Manager GetViolations u 0
        for path in /org/tlob1/binding/{nap,added}; do
                nobody_calls "$path" org.freedesktop.DBus.Properties GetAll s org.tlob1.Binding
                nobody_calls "$path" org.tlob1.Binding GetCost
        done
        cat "$run/signals"
}

# addresses PID: numbers among those on standard input that are in one of its mappings, or in the
# kernel.
addresses() {
        grep -oE '0x[0-9a-f]+|[0-9]+' | sort -u | while read -r number; do
                [ ${#number} -gt 8 ] || continue # those are too small
                printf '%x\n' "$number" 2>/dev/null
        done | awk -v maps="/proc/$1/maps" '
                function padded(s) { return sprintf("%16s", s) }
                BEGIN {
                        while ((getline line <maps) > 0) {
                                split(line, f, /[- ]/)
                                from[++n] = padded(f[1])
                                to[n] = padded(f[2])
                        }
                        if (n == 0)
                                print "no mappings"
                }
                $1 ~ /^ffff/ && $1 != "ffffffffffffffff" { print }
                { for (i = 1; i <= n; i++) if (padded($1) >= from[i] && padded($1) < to[i]) print }'
}

cd "$run" || exit 1
cat >nap.conf <<'END'
[Binding nap]
Executable=libc.so.6
Function=clock_nanosleep
BudgetSec=100ms
END
start_fresh nap.conf
check "root may add a binding" tlobctl add-binding added --executable=libsqlite3.so.0 --function=sqlite3_step --budget=1s
SYSTEMD_LOG_LEVEL=debug busctl monitor --json=short --match="type='signal',sender='org.tlob1'" >signals 2>signals.log &
SYSTEMD_LOG_LEVEL=debug busctl monitor --json=short --match="type='error',sender='org.tlob1'" >errors 2>errors.log &
SYSTEMD_LOG_LEVEL=debug busctl monitor --json=short --match="type='method_call',destination='org.freedesktop.systemd1'" >calls 2>calls.log &
# Whoever becomes a monitor loses its name.
check "somebody listens to signals" wait_for_line signals.log member=NameLost
check "and to errors" wait_for_line errors.log member=NameLost
check "and to what systemd is asked" wait_for_line calls.log member=NameLost
sqlite3 :memory: 'SELECT 1' >/dev/null

# In an open window, so that its addresses are those of the moment.
sleep 300 &
sleeper=$!
check "a violation is seen" wait_for_line signals '"member":"Violation"'
window=$(busctl --json=short call org.tlob1 /org/tlob1 org.tlob1.Manager GetViolations u 1 | jq '.data[0][0].id.data')
stack=$(busctl --json=short call org.tlob1 /org/tlob1 org.tlob1.Manager GetStack t "$window" | jq -r '.data[0][]')
check "root sees its stack, of several functions" [ "$(wc -l <<<"$stack")" -gt 3 ]

nobody_tries_all "with polkit"
systemd_is_not_asked
all_reads >reads
# The innermost function is "blocked_in" of each report.
for frame in $(tail -n +2 <<<"$stack"); do
        refuse "no frame of the stack is shown to anybody: $frame" 1 '' grep -wF -- "$frame" reads
done
matches "what is shown has been read" "$(cat reads)" "\"id\":\\{\"type\":\"t\",\"data\":$window\\}"
equal "no address is shown to anybody" "$(addresses $sleeper <reads)" ""
matches "an address would have been found" "$(awk -F- '{ print "0x" $1 }' /proc/$sleeper/maps | addresses $sleeper)" '^[0-9a-f]+$'

# Calls with something far too large in them. The bus ends the connection of whoever sends more than
# 32 MiB, and an error that repeats a name is as long as that.
caller=/usr/libexec/tlob-tests/caller
before=$(main_pid)
n_max=$((32 * 1024 * 1024))
# With sanitizers, memory that grows is copied each time.
[ ! -e /etc/systemd/system/tlobd.service.d/sanitizers.conf ] || n_max=$((4 * 1024 * 1024))
for what in path interface name; do
        equal "a $what of 5000 bytes is refused" "$(as_nobody $caller "$what" 5000)" \
                org.freedesktop.DBus.Error.LimitsExceeded
done
# As long as the bus lets through, with the rest of the call: an error with more words would be longer.
for large in interface:136 name:136; do
        equal "so is a ${large%:*} of $n_max bytes" "$(as_nobody $caller "${large%:*}" $((n_max - ${large#*:})))" \
                org.freedesktop.DBus.Error.LimitsExceeded
done
for what in key value; do
        equal "so is a $what of $n_max bytes" "$(as_nobody $caller "$what" $((n_max - 300)))" org.tlob1.Error.InvalidBinding
done
equal "so are a million keys" "$(as_nobody $caller keys 1000000)" org.tlob1.Error.InvalidBinding
equal "and a file descriptor" "$(as_nobody $caller descriptor 1)" org.freedesktop.DBus.Error.NotSupported
equal "tlobd runs as before" "$(main_pid)" "$before"
check "and is on the bus" tlobctl status

# polkit takes its time: a user has some calls that wait for it, and leaves room for others.
polkit=$(systemctl show -P MainPID polkit)
kill -STOP "$polkit"
as_nobody $caller calls 300 >many &
many=$!
check "most calls that would wait for polkit are refused" until_true \
        eval '[ "$(grep -c LimitsExceeded many)" -ge 284 ]'
setpriv --reuid=daemon --regid=daemon --clear-groups -- $caller calls 1 >one &
one=$!
kill -CONT "$polkit"
wait $many $one
equal "the others got polkit's answer" "$(sort many | uniq -c | awk '{ print $1, $2 }')" \
        $'16 org.freedesktop.DBus.Error.AccessDenied\n284 org.freedesktop.DBus.Error.LimitsExceeded'
equal "and so did another user" "$(cat one)" org.freedesktop.DBus.Error.AccessDenied

# Each user to whom polkit permits it may add some bindings.
rules=/etc/polkit-1/rules.d/50-tlob-rights.rules
cat >$rules <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.tlob1.manage-bindings" && (subject.user == "nobody" || subject.user == "daemon"))
                return polkit.Result.YES;
});
END
systemctl restart polkit
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nBindingsPerUserMax=3\n' >/etc/tlob/tlobd.conf.d/rights.conf
check "a limit of bindings is set" tlobctl reload
add=(busctl call org.tlob1 /org/tlob1 org.tlob1.Manager AddBinding "sa{sv}t")
disabled=(4 "${binding[@]:1}" Enabled s no)
check "one who may add bindings adds one" as_nobody "${add[@]}" mine1 "${binding[@]}" 0
check "and one that is not enabled" as_nobody "${add[@]}" mine2 "${disabled[@]}" 0
check "and one that is to stay" as_nobody "${add[@]}" mine3 "${disabled[@]}" 1
too_many='User 65534 has added 3 bindings already.*BindingsPerUserMax='
refuse "and no more than the limit" 1 "$too_many" as_nobody "${add[@]}" mine4 "${disabled[@]}" 0
refuse "nor under another's name" 1 "There is no key 'AddedBy'" \
        as_nobody "${add[@]}" mine4 5 "${disabled[@]:1}" AddedBy s 1 0
check "it reloads" as_nobody tlobctl reload
refuse "a reload does not change that" 1 "$too_many" as_nobody "${add[@]}" mine4 "${disabled[@]}" 0
check "tlobd restarts" systemctl restart tlobd
refuse "nor does a restart" 1 "$too_many" as_nobody "${add[@]}" mine4 "${disabled[@]}" 0
check "another user may add one" \
        setpriv --reuid=daemon --regid=daemon --clear-groups -- "${add[@]}" other "${disabled[@]}" 0
check "and so may root" "${add[@]}" roots "${disabled[@]}" 0
check "the first removes one" as_nobody tlobctl remove-binding mine3
check "and adds another" as_nobody "${add[@]}" mine4 "${disabled[@]}" 0
tlobctl remove-binding mine1 mine2 mine4 other roots
rm $rules /etc/tlob/tlobd.conf.d/rights.conf
check "the limit is as before" tlobctl reload

systemctl mask --runtime --now polkit 2>/dev/null
nobody_tries_all "without polkit"
systemctl unmask --runtime polkit 2>/dev/null
kill $sleeper
finish
