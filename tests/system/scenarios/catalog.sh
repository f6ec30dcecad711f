# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# journalctl -x explains what tlobd reports.

. "${BASH_SOURCE[0]%/*}/assert.sh"

start_fresh
check "add a binding" tlobctl add-binding nap --executable=libc.so.6 --function=clock_nanosleep --budget=100ms
sleep 0.5
check "its violation is in the journal" wait_for_entry '.TLOB_BINDING == "nap" and .TLOB_END != null' -t tlob
holds "it was found when its time was over" "$(wait_for_entry '.TLOB_BINDING == "nap" and .TLOB_END == null' -t tlob)" \
        '.TLOB_ELAPSED_NS | tonumber >= 100000000'

text=$(journalctl --boot -q -x -t tlob)
matches "a violation is explained" "$text" '^.. Subject: nap did not keep its budget'
matches "with its times, as people write them" "$text" '^.. [0-9.]+m?s sleeping: blocked'
matches "and its budget" "$text" '^.. of 100ms\. Until then it had taken [0-9.]+m?s:'
matches "a completion has its true length" "$text" '^.. taken [0-9.]+(ms|s): [0-9.]+[mu]?s running, '
equal "no text has nanoseconds" "$(grep -E '^.. .*[0-9]{6}' <<<"$text" | grep -E '^(░|-)')" ""
matches "a completion is explained" "$text" '^.. Subject: A window of nap that did not keep its budget has ended'
matches "the manual is named" "$text" 'Documentation: man:tlobd\(8\)'
equal "every field that a text names is there" "$(grep -c '@[A-Z_]*@' <<<"$text")" 0

# One that is over too soon.
check "a minimum: add a binding" tlobctl add-binding early --executable=libc.so.6 --function=clock_nanosleep --min-budget=10s
sleep 0.2
entry=$(wait_for_entry '.TLOB_BINDING == "early" and .TLOB_END == null' -t tlob)
matches "a minimum: its violation is in the journal" "$(jq -r .MESSAGE <<<"$entry")" \
        '^early: under its 10s minimum in sleep\[[0-9]+\]: [0-9.]+m?s \(running '
equal "a minimum: with its budget" "$(jq -r '.TLOB_BUDGET, .TLOB_BUDGET_NS' <<<"$entry")" $'minimum\n10000000000'
holds "a minimum: with its length" "$entry" '.TLOB_ELAPSED_NS | tonumber >= 200000000'
entry=$(wait_for_entry '.TLOB_BINDING == "early" and .TLOB_END != null' -t tlob)
matches "a minimum: and its end" "$(jq -r .MESSAGE <<<"$entry")" \
        '^early: ended after [0-9.]+m?s in sleep\[[0-9]+\], [0-9.]+s under its 10s minimum '
holds "a minimum: of the same length" "$entry" '.TLOB_ELAPSED_NS | tonumber >= 200000000'
equal "a minimum: tlobctl knows it" "$(tlobctl violations -j -b early | jq -r ".[0].Budget")" minimum
tlobctl remove-binding early

printf '[Binding bad]\nExecutable=libc.so.6\nFunction=no_such_function\nBudgetSec=1s\n' >/etc/tlob/bindings.d/bad.conf
tlobctl reload 2>/dev/null
check "a failure is in the journal" wait_for_entry '.TLOB_BINDING == "bad"' -t tlob
matches "and explained" "$(journalctl --boot -q -x -t tlob)" 'Subject: The binding bad could not be set up'

while read -r id; do
        matches "the catalog has $id" "$(journalctl --list-catalog "$id" 2>&1)" "^$id tlobd: "
done < <(sed -n 's/.*_STR *"\([0-9a-f]*\)".*/\1/p' /usr/include/tlob/tlob-messages.h)

finish
