# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Who may do what: reading is open, changing asks polkit, and without polkit it takes root.

. "${BASH_SOURCE[0]%/*}/assert.sh"

binding=(--executable=libsqlite3.so.0 --function=sqlite3_step --budget=1s)
rules=/etc/polkit-1/rules.d/50-tlob-test.rules

# The rule is in force once polkitd has been started with it.
write_rule() {
        cat >$rules
        systemctl restart polkit
}

# nobody_may_read WHEN
nobody_may_read() {
        check "$1: anyone may list bindings" as_nobody tlobctl list-bindings
        check "$1: anyone may see violations" as_nobody tlobctl violations
        check "$1: anyone may see a binding's counters" as_nobody tlobctl show step
        check "$1: anyone may see the status" as_nobody tlobctl status
}

# nobody_may_change_nothing WHEN
nobody_may_change_nothing() {
        local before

        before=$(tlobctl list-bindings -j | jq -c 'map([.Name, .BudgetNSec])')
        refuse "$1: not everyone may add a binding" 1 'Access denied.*root.*polkit' \
                as_nobody tlobctl add-binding mine "${binding[@]}"
        refuse "$1: not everyone may remove a binding" 1 'Access denied' as_nobody tlobctl remove-binding step
        refuse "$1: not everyone may change a budget" 1 'Access denied' as_nobody tlobctl set-budget step 2s
        refuse "$1: not everyone may reload" 1 'Access denied' as_nobody tlobctl reload
        refuse "$1: not everyone may reset counters" 1 'Access denied' as_nobody tlobctl reset-statistics
        refuse "$1: not everyone may have files opened" 1 'Access denied' as_nobody tlobctl verify "${binding[@]}"
        equal "$1: nothing was changed" "$(tlobctl list-bindings -j | jq -c 'map([.Name, .BudgetNSec])')" "$before"
}

start_fresh
rm -f $rules
check "root may add a binding" tlobctl add-binding step "${binding[@]}"
nobody_may_read "with polkit"
nobody_may_change_nothing "with polkit"
equal "the error on the bus is AccessDenied" \
        "$(as_nobody busctl call org.tlob1 /org/tlob1 org.tlob1.Manager Reload 2>&1 >/dev/null | grep -cE 'Access denied|may not')" 1

write_rule <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.tlob1.manage-bindings" && subject.user == "nobody")
                return polkit.Result.YES;
});
END
check "a rule lets someone add a binding" as_nobody tlobctl add-binding mine "${binding[@]}"
check "and change a budget" as_nobody tlobctl set-budget mine 2s
check "and remove a binding" as_nobody tlobctl remove-binding mine
check "and reload" as_nobody tlobctl reload
refuse "but not look into programs" 1 'Access denied.*org.tlob1.inspect' as_nobody tlobctl verify "${binding[@]}"

write_rule <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.tlob1.inspect" && subject.user == "nobody")
                return polkit.Result.YES;
});
END
check "another rule lets someone look into programs" as_nobody tlobctl verify "${binding[@]}"
refuse "but not change anything" 1 'Access denied.*org.tlob1.manage-bindings' as_nobody tlobctl set-budget step 2s

# Without polkit at all.
rm $rules
systemctl mask --runtime --now polkit 2>/dev/null
nobody_may_read "without polkit"
nobody_may_change_nothing "without polkit"
check "without polkit: root may change a budget" tlobctl set-budget step 3s
check "without polkit: root may reload" tlobctl reload
systemctl unmask --runtime polkit 2>/dev/null

finish
