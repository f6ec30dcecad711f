# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Whatever comes, the daemon answers: a program that breaks its budget all the time, a journal that stands
# still, a client that does not read, callers that ask all the time. And it comes back when it is killed, stays
# when it is signalled, and there is one of it.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
victim=$tests/victim
refusal='^$' # an error that is an answer too

milliseconds() {
        echo $((${EPOCHREALTIME/./} / 1000))
}

# ask SECONDS: asks the daemon all the time, and notes the longest that it took, in ms: check() runs
# it in a shell of its own.
ask() {
        local end=$(($(milliseconds) + $1 * 1000)) begin took longest=0

        while begin=$(milliseconds) && [ "$begin" -lt "$end" ]; do
                busctl call org.tlob1 /org/tlob1 org.freedesktop.DBus.Peer Ping 2>"$run/error" ||
                        grep -q "$refusal" "$run/error" || {
                        cat "$run/error" >&2
                        return 1
                }
                took=$(($(milliseconds) - begin))
                [ "$took" -le "$longest" ] || longest=$took
        done >/dev/null
        echo "$longest" >"$run/longest"
}

# answers TEXT SECONDS: each time within five seconds, which is no figure of how fast it is, but tells a loop that
# comes round from one that does not (it was silent for 15 to 58 s), however busy the machine.
answers() {
        local longest

        rm -f "$run/longest"
        check "$1: it answers" ask "$2"
        longest=$(cat "$run/longest")
        echo "# the longest silence was $longest ms"
        check "$1: each time within five seconds" [ "${longest:-5000}" -lt 5000 ]
}

# storm THREADS: in the background, in $storm; it breaks its budget all the time.
storm() {
        "$victim" "threads:$1" '(' storm:1000000000 ')' >/dev/null &
        storm=$!
}

end_storm() {
        kill -KILL "$storm"
        wait "$storm" 2>/dev/null
}

memory() { # in kB
        sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(main_pid)/status"
}

# within MS TEXT COMMAND...: it succeeds, and takes no longer.
within() {
        local limit=$1 text=$2 begin took

        shift 2
        begin=$(milliseconds)
        check "$text" "$@"
        took=$(($(milliseconds) - begin))
        check "within $limit ms ($took)" [ $took -lt "$limit" ]
}

add_storm() {
        tlobctl add-binding storm --executable="$victim" --function=victim_storm --budget=1us --cpu-limit=infinity
}

# links: how many of the daemon's own programs are attached to something.
links() {
        local programs

        programs=$(sed -n 's/^prog_id:\t*//p' "/proc/$(main_pid)/fdinfo/"* 2>/dev/null | sort -u | jq -s .)
        bpftool link -j | jq --argjson programs "$programs" 'map(select(.prog_id | IN($programs[]))) | length'
}

undelivered() {
        busctl get-property org.tlob1 /org/tlob1 org.tlob1.Manager Undelivered
}

balance='(.starts == ."in-budget" + .violated + .open + .exit + .exec + .abandoned + .removed + ."over-limit")'

# The storms shall go on: what their probes cost is looked at elsewhere.
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/price.conf

# As it is installed: the limit is in the kernel.
start_fresh
check "a binding that is broken all the time" add_storm
storm 2
answers "a storm" 5
check "another binding gets its reports meanwhile" tlobctl add-binding other --executable="$victim" --function=victim_a --budget=1ms
"$victim" repeat:10 '(' 'a(' sleep:2000000 ')' ')' >/dev/null
entries_of_other() { # MESSAGE_ID
        journalctl -q --boot -o cat -t tlob TLOB_BINDING=other MESSAGE_ID="$1" | wc -l
}
have_ended() {
        [ "$(entries_of_other b712727f10d94a359d0790c76c950ef5)" = 10 ]
}
check "all ten" until_true have_ended
equal "and none is lost" "$(counter other lost)" 0
equal "they are ten" "$(entries_of_other 270a2c0044b740cdb4f203a0156802cb)" 10
tlobctl remove-binding other
within 5000 "set-budget is answered" tlobctl set-budget storm 2us
end_storm
counters=$(tlobctl show -j storm | jq '.[0].Counters')
holds "the books balance" "$counters" "$balance and .suppressed > 10000 and .lost == 0"

# Without a limit it is the reader alone that has to come back.
printf '[Daemon]\nRateLimitIntervalSec=0\n' >/etc/tlob/tlobd.conf.d/floods.conf
check "the limit is switched off" tlobctl reload
storm 2
answers "a storm without a limit" 5
within 5000 "remove-binding is answered" tlobctl remove-binding storm
check "a storm again" add_storm
within 5000 "SIGTERM is obeyed" systemctl stop tlobd
equal "with success" "$(systemctl show -P Result tlobd)" success

# The journal stands still.
systemctl start tlobd
journald=$(systemctl show -P MainPID systemd-journald)
kill -STOP "$journald"
answers "a journal that stands still" 5
kill -CONT "$journald"
end_storm
check "it gets what was kept, and is told what was not" wait_for_entry '.TLOB_UNWRITTEN != null' -t tlob MESSAGE_ID=d809078b7e0c45c2a95ce24db022bb4d
matches "which is counted" "$(undelivered)" 'journal-stalled" [1-9]'

# A client does not read.
before=$(memory)
tlobctl monitor >/dev/null 2>&1 &
stuck=$!
until_true sh -c "busctl list --unique | grep -q ' $stuck '"
kill -STOP $stuck
storm 2
refusal='accepts no replies from tlobd'
answers "a client that does not read" 10
refusal='^$'
echo "# memory: $before kB before, $(memory) kB with a client that does not read"
# Sanitizers keep what has been freed.
[ -e /etc/systemd/system/tlobd.service.d/sanitizers.conf ] ||
        check "memory is bounded" [ "$(memory)" -lt $((before + 40000)) ]
end_storm
kill -KILL $stuck
wait $stuck 2>/dev/null
check "when it has gone, callers are served again" until_true tlobctl list-bindings

# One without rights, who asks for the longest answers and reads none: on its own connection nothing comes
# through to anybody any more, and tlobd goes on with its work on another one.
before=$(memory)
as_nobody "$tests/caller" unread 1500 >"$run/unread" &
unread=$!
check "somebody does not read" wait_for_line "$run/unread" unread
printf '[Service]\nExecStart=%s repeat:20 ( a( sleep:20000000 ) )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=5ms\n' \
        "$victim" >/etc/systemd/system/unheard.service
# It cannot be asked whether it has its probes, and the kernel can.
has_more_links() {
        [ "$(links)" -gt "$n_links" ]
}
n_links=$(links)
systemctl daemon-reload
check "a new unit gets its probes meanwhile" until_true has_more_links
systemctl start unheard.service
has_ended() {
        [ "$(systemctl show -P ActiveState unheard.service)" = inactive ]
}
check "and runs" until_true has_ended
echo "# memory: $before kB before, $(memory) kB with one that does not read its answers"
[ -e /etc/systemd/system/tlobd.service.d/sanitizers.conf ] ||
        check "what waits for it is bounded" [ "$(memory)" -lt $((before + 40000)) ]
kill -KILL $unread
wait $unread 2>/dev/null
check "when it has gone, others are served again" until_true tlobctl list-bindings
equal "each call of the new unit was measured" "$(tlobctl show -j unheard.service/a | jq '.[0].Violations')" 20
rm /etc/tlob/tlobd.conf.d/floods.conf
tlobctl remove-binding storm

# Readers, without rights, of as many bindings as there may be.
for i in {1..1000}; do
        printf '[Binding b%s]\nExecutable=%s\nFunction=victim_%s\nBudgetSec=1h\n' "$i" "$victim" "$((i % 2))" | sed 's/victim_0/victim_b/; s/victim_1/victim_c/'
done >/etc/tlob/bindings.d/many.conf
sed -i 's/^\(Function=.*\)/\1\nUnit=none.service/' /etc/tlob/bindings.d/many.conf
tlobctl reload >/dev/null 2>&1
readers=()
for _ in 1 2 3; do
        as_nobody sh -c 'while :; do busctl call org.tlob1 /org/tlob1 org.freedesktop.DBus.ObjectManager GetManagedObjects; done' >/dev/null 2>&1 &
        readers+=($!)
done
answers "readers of a thousand bindings" 5
kill "${readers[@]}"
wait "${readers[@]}" 2>/dev/null
rm /etc/tlob/bindings.d/many.conf
tlobctl reload >/dev/null

# Signals that end programs which do not expect them.
pid=$(main_pid)
for signal in USR1 USR2 ALRM VTALRM PROF IO PWR; do
        kill -s "$signal" "$pid"
done
check "it answers" tlobctl list-bindings
equal "and has not been started anew" "$(main_pid)" "$pid"

# There is one of it.
cursor=$(journalctl -q --boot -n 0 --show-cursor | sed -n 's/^-- cursor: //p')
refuse "a second one is refused" 1 "Another tlobd" /usr/libexec/tlobd
equal "and writes nothing to the journal" "$(journalctl -q --after-cursor="$cursor" -o cat SYSLOG_IDENTIFIER=tlob + SYSLOG_IDENTIFIER=tlobd _COMM=tlobd | wc -l)" 0
equal "the first one goes on" "$(main_pid)" "$pid"

# It comes back.
for i in {1..8}; do
        pid=$(main_pid)
        systemctl kill -s KILL tlobd
        until_true started_anew "$pid"
done
check "after eight kills it is there" tlobctl list-bindings
equal "and was not given up" "$(systemctl is-active tlobd)" active

finish
