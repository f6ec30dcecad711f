# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# For guests only: the machine's clock is set, forward and back, and the machine sleeps, while
# windows are open. Lengths are those of the monotonic clock: neither may change one. The instrument
# is what the victims sleep by that clock.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
cat >"$run/clock.conf" <<END
[Binding nap]
Executable=$victim
Function=victim_a
BudgetSec=5ms

[Binding long]
Executable=$victim
Function=victim_b
BudgetSec=20s
END
start_fresh "$run/clock.conf"

naps=60
"$victim" repeat:$naps '(' a'(' sleep:50000000 ')' ')' &
for jump in '+1 hour' '-3 hours' '+10 days' '-1 week'; do
        pause 0.4
        date --set="$jump" >/dev/null
        echo "# it is $(date)"
done
wait $!
equal "the victim has ended" $? 0
equal "each nap is in the books" "$(binding nap Windows)" $naps
equal "and over its budget" "$(binding nap Violations)" $naps
ends() {
        journalctl --boot -q -t tlob -o json TLOB_BINDING="$1" | jq -s '[.[] | select(.TLOB_END)]'
}
all_told() {
        holds=$(ends nap | jq length)
        [ "$holds" -gt 0 ]
}
check "ends are in the journal" until_true all_told
holds "none is longer by a jump" "$(ends nap)" \
        'map(.TLOB_ELAPSED_NS | tonumber) | min >= 50000000 and max < 10000000000'

# By a clock that goes on then.
uptime() {
        awk '{ print int($1) }' /proc/uptime
}
"$victim" b'(' sleep:3000000000 ')' &
long=$!
pause 0.5
before=$(uptime)
check "it sleeps until its clock wakes it" rtcwake -m mem -s 30
holds "for half a minute" $(($(uptime) - before)) '. >= 25'
wait $long
equal "the victim has ended after that" $? 0
equal "its window has" "$(binding long Windows)" 1
equal "the machine's sleep was not its own" "$(binding long Violations)" 0
"$victim" a'(' sleep:50000000 ')'
equal "and what comes after is measured" "$(binding nap Violations)" $((naps + 1))
finish
