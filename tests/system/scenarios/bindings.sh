# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Where bindings come from and how long they last: added at run time or to stay, from files in all
# directories, with a bad one among them, across a reload and a restart.

. "${BASH_SOURCE[0]%/*}/assert.sh"

place=(--executable=libsqlite3.so.0 --function=sqlite3_step)

# binding NAME BUDGET: a section for a file.
binding() {
        printf '[Binding %s]\nExecutable=libsqlite3.so.0\nFunction=sqlite3_step\nBudgetSec=%s\n' "$1" "$2"
}

# states: "NAME STATE BUDGET" of each.
states() {
        tlobctl list-bindings -j | jq -r '.[] | "\(.Name) \(.State) \(.BudgetNSec)"'
}

start_fresh
equal "there are no bindings at first" "$(states)" ""

# Added, changed, removed.
check "add one for now" tlobctl add-binding now "${place[@]}" --budget=1s
check "add one to stay" tlobctl add-binding stay "${place[@]}" --budget=2s --persist
equal "both are active" "$(states)" $'now active 1000000000\nstay active 2000000000'
check "the first is in /run" test -f /run/tlob/bindings.d/tlobctl-now.conf
check "the second is in /etc" test -f /etc/tlob/bindings.d/tlobctl-stay.conf
holds "one knows where it comes from" "$(tlobctl show -j stay)" \
        '.[0].Source | test("^/etc/tlob/bindings.d/tlobctl-stay.conf:[0-9]+$")'
sqlite3 :memory: 'SELECT 1' >/dev/null
equal "both measure the same calls" "$(tlobctl show -j now stay | jq -c 'map(.Windows)')" '[2,2]'
check "change a budget for now" tlobctl set-budget now 1500us
check "change a budget to stay" tlobctl set-budget --persist stay 3s
equal "budgets are changed, and counters are kept" "$(tlobctl show -j now stay | jq -c 'map([.BudgetNSec, .Windows])')" \
        '[[1500000,2],[3000000000,2]]'
equal "a call is measured against the new budget" "$(sqlite3 :memory: 'SELECT 1')" 1

# Across a restart.
check "restart" systemctl restart tlobd
equal "bindings and budgets are as before" "$(states)" $'now active 1500000\nstay active 3000000000'
sqlite3 :memory: 'SELECT 1' >/dev/null
equal "and measure, and their counters go on" "$(tlobctl show -j stay | jq '.[0].Windows')" 6
check "go back to the configured budget" tlobctl set-budget --persist stay default
equal "it is back" "$(tlobctl show -j stay | jq '.[0].BudgetNSec')" 2000000000

# What a reboot leaves: /run is empty then.
systemctl stop tlobd
rm -rf /run/tlob
systemctl start tlobd
equal "what was to stay is there after a reboot, what was for now is not" "$(states)" 'stay active 2000000000'
check "remove it" tlobctl remove-binding stay
equal "no binding is left" "$(states)" ""
check "nor its file" test ! -e /etc/tlob/bindings.d/tlobctl-stay.conf

# Names that are taken, wherever.
mkdir -p /usr/lib/tlob/bindings.d /run/tlob/bindings.d
binding vendor 1s >/usr/lib/tlob/bindings.d/50-vendor.conf
binding volatile 1s >/run/tlob/bindings.d/50-volatile.conf
{ echo; binding admin 1s; } >/etc/tlob/bindings.d/50-admin.conf
check "reload" tlobctl reload
equal "bindings of all directories are active" "$(states)" \
        $'admin active 1000000000\nvendor active 1000000000\nvolatile active 1000000000'
refuse "a name that is taken in /usr/lib" 1 'exists.*/usr/lib/tlob/bindings.d/50-vendor.conf:1' \
        tlobctl add-binding vendor "${place[@]}" --budget=1s
refuse "a name that is taken in /run" 1 'exists.*/run/tlob/bindings.d/50-volatile.conf:1' \
        tlobctl add-binding volatile "${place[@]}" --budget=1s --persist
refuse "a name that is taken in /etc" 1 'exists.*/etc/tlob/bindings.d/50-admin.conf:2' \
        tlobctl add-binding admin "${place[@]}" --budget=1s
matches "the error on the bus has its name" "$(busctl --verbose call org.tlob1 /org/tlob1 org.tlob1.Manager AddBinding \
        'sa{sv}t' admin 3 Executable s libsqlite3.so.0 Function s sqlite3_step BudgetSec s 1s 0 2>&1)" \
        '50-admin.conf:2'
refuse "what a file defines is not removed, and the file is named" 1 '/usr/lib/tlob/bindings.d/50-vendor.conf' \
        tlobctl remove-binding vendor
check "its budget can be changed" tlobctl set-budget vendor 4s
equal "that holds" "$(tlobctl show -j vendor | jq '.[0].BudgetNSec')" 4000000000

# A file of the same name in /etc masks the vendor's.
ln -s /dev/null /etc/tlob/bindings.d/50-vendor.conf
check "reload" tlobctl reload
refuse "a link to /dev/null masks a binding" 1 "no binding 'vendor'" tlobctl show vendor
rm /etc/tlob/bindings.d/50-vendor.conf /run/tlob/bindings.d/50-volatile.conf

# A bad one among good ones.
sqlite3 :memory: 'SELECT 1' >/dev/null
windows=$(tlobctl show -j admin | jq '.[0].Windows')
binding bad 1parsec >/etc/tlob/bindings.d/40-bad.conf
printf '[Binding lost]\nExecutable=libsqlite3.so.0\nFunction=sqlite3_stp\nBudgetSec=1s\n' >/etc/tlob/bindings.d/41-lost.conf
printf 'this is no section\n' >/etc/tlob/bindings.d/42-noise.conf
mkdir /etc/tlob/bindings.d/43-directory.conf
refuse "a reload names the bad one" 1 '40-bad.conf:4.*1parsec' tlobctl reload
holds "the bad ones are failed, the good ones active" "$(tlobctl list-bindings -j)" '
        map({(.Name): .State}) | add ==
        {admin: "active", bad: "failed", lost: "failed", vendor: "active"}'
holds "what is wrong can be read" "$(tlobctl show -j lost)" '.[0].StateReason | test("sqlite3_stp") and test("sqlite3_step")'
check "and is in the journal" wait_for_entry '.MESSAGE_ID == "f7f92e8a0b104e8a83be1c5c2aa82403" and .TLOB_BINDING == "lost"' -t tlob
equal "counters of the good ones are kept" "$(tlobctl show -j admin | jq '.[0].Windows')" "$windows"
refuse "with none of that name, verify says so" 1 'sqlite3_stp' tlobctl verify /etc/tlob/bindings.d/41-lost.conf
check "the daemon starts with them" systemctl restart tlobd
holds "in the same states" "$(tlobctl list-bindings -j)" 'map(.State) | sort == ["active", "active", "failed", "failed"]'
rm -r /etc/tlob/bindings.d/4?-*.conf
check "once they are mended, all is well" tlobctl reload

# Of a unit that systemd has not been asked about before.
printf '[Binding late]\nUnit=dbus.service\nFunction=no_such_function\nBudgetSec=1s\n' >/etc/tlob/bindings.d/50-late.conf
refuse "a reload waits for what systemd says of units" 1 "late.*no_such_function" tlobctl reload
rm /etc/tlob/bindings.d/50-late.conf
check "and is well without" tlobctl reload

# What is refused leaves no trace.
before=$(states; find /run/tlob /etc/tlob | sort)
refuse "a budget that is none" 1 'eternity' tlobctl add-binding x "${place[@]}" --budget=eternity
refuse "a budget that is too short" 1 '1us' tlobctl add-binding x "${place[@]}" --budget=10ns
refuse "a function that is not there" 1 "sqlite3_stp.*near names: sqlite3_step" \
        tlobctl add-binding x --executable=libsqlite3.so.0 --function=sqlite3_stp --budget=1s
refuse "a library that is not there" 1 'libnothing.so.7' \
        tlobctl add-binding x --executable=libnothing.so.7 --function=f --budget=1s
refuse "a program that is no ELF file" 1 '/etc/passwd' tlobctl add-binding x --executable=/etc/passwd --function=f --budget=1s
refuse "a name that is none" 1 '[.]x|name' tlobctl add-binding .x "${place[@]}" --budget=1s
equal "nothing of it is left" "$(states; find /run/tlob /etc/tlob | sort)" "$before"

finish
