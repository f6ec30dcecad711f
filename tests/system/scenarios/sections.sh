# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Budgets in the files of units: which sections count, in which order, for which units, and what
# becomes of them when systemd reads its files again.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system

# service NAME [LINE...]: a service that sleeps, and more lines of its file.
service() {
        local name=$1

        shift
        {
                printf '[Service]\nExecStart=/usr/bin/sleep infinity\n'
                [ $# -eq 0 ] || printf '%s\n' "$@"
        } >"$etc/$name"
}

# drop_in DIRECTORY FILE LINE...
drop_in() {
        mkdir -p "$etc/$1.d"
        printf '%s\n' "${@:3}" >"$etc/$1.d/$2"
}

library='Executable=libc.so.6'

# states: "NAME STATE BUDGET" of each.
states() {
        tlobctl list-bindings -j | jq -r '.[] | "\(.Name) \(.State) \(.BudgetNSec)"'
}

become() {
        [ "$(states)" = "$1" ]
}

why() {
        tlobctl show -j "$1" | jq -r '.[0].StateReason'
}

service plain.service '' '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
systemctl daemon-reload
start_fresh
equal "a unit that is not loaded has its bindings" "$(states)" 'plain.service/nap waiting 1000000000'
equal "and it is known where they are defined" "$(tlobctl show -j plain.service/nap | jq -r '.[0].Source')" \
        "$etc/plain.service:4"
check "systemd has nothing to say of it" [ -z "$(systemd-analyze verify "$etc/plain.service" 2>&1)" ]

# Life cycle.
systemctl start plain.service
check "it is active when the unit runs" until_true become 'plain.service/nap active 1000000000'
systemctl stop plain.service
check "and waits when it does not" until_true become 'plain.service/nap waiting 1000000000'
systemctl start plain.service
check "and is active again" until_true become 'plain.service/nap active 1000000000'

# Drop-ins, merged in systemd's order.
drop_in plain.service 50-a.conf '[X-Tlob nap]' 'BudgetSec=2s' '[X-Tlob more]' "$library" 'Function=fsync' 'BudgetSec=3s'
drop_in plain.service 60-b.conf '[X-Tlob nap]' 'BudgetSec=4s'
systemctl daemon-reload
check "drop-ins are merged" until_true become $'plain.service/more active 3000000000\nplain.service/nap active 4000000000'
mkdir -p /run/systemd/system/plain.service.d
printf '[X-Tlob nap]\nBudgetSec=5s\n' >/run/systemd/system/plain.service.d/70-c.conf
ln -s /dev/null "$etc/plain.service.d/60-b.conf.new"
mv "$etc/plain.service.d/60-b.conf.new" "$etc/plain.service.d/60-b.conf"
systemctl daemon-reload
check "one is added, another masked" until_true become $'plain.service/more active 3000000000\nplain.service/nap active 5000000000'
rm -r /run/systemd/system/plain.service.d "$etc/plain.service.d"
systemctl daemon-reload
check "without them it is as before" until_true become 'plain.service/nap active 1000000000'

# What systemd has not read does not count, whatever is in the files.
drop_in plain.service 50-a.conf '[X-Tlob nap]' 'BudgetSec=2s'
tlobctl reload
equal "a drop-in counts when systemd has read it" "$(states)" 'plain.service/nap active 1000000000'
systemctl daemon-reload
check "not before" until_true become 'plain.service/nap active 2000000000'
rm -r "$etc/plain.service.d"

# Set by hand.
check "a budget is set" tlobctl set-budget plain.service/nap 7s
equal "and holds" "$(states)" 'plain.service/nap active 7000000000'
systemctl daemon-reload
check "tlobd restarts" systemctl restart tlobd
equal "also after a restart" "$(states)" 'plain.service/nap active 7000000000'
check "it is taken back" tlobctl set-budget plain.service/nap default
equal "and the file's holds" "$(states)" 'plain.service/nap active 1000000000'
refuse "a file's binding is not removed by command, and the file is named" 1 "$etc/plain.service:4" \
        tlobctl remove-binding plain.service/nap

# daemon-reexec, after which systemd is new on the bus.
systemctl daemon-reexec
drop_in plain.service 50-a.conf '[X-Tlob nap]' 'BudgetSec=3s'
systemctl daemon-reload
check "after daemon-reexec it is followed as before" until_true become 'plain.service/nap active 3000000000'
systemctl stop plain.service
check "also when it stops" until_true become 'plain.service/nap waiting 3000000000'
rm -r "$etc/plain.service.d"

# Templates and their instances.
rm "$etc/plain.service"
service many@.service '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
drop_in many@two.service own.conf '[X-Tlob nap]' 'BudgetSec=2s'
systemctl daemon-reload
check "an instance with a drop-in of its own is known, the template is no unit" until_true become \
        'many@two.service/nap waiting 2000000000'
systemctl start many@one.service many@two.service
check "each instance has its own binding" until_true become \
        $'many@one.service/nap active 1000000000\nmany@two.service/nap active 2000000000'
systemctl stop many@one.service many@two.service
check "an instance goes when systemd forgets it" until_true become 'many@two.service/nap waiting 2000000000'
rm -r "$etc"/many@*

# Drop-ins for many: by prefix, and for all of a type.
service multi-a.service
service multi-b.service
service other.service
drop_in multi-.service x.conf '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
systemctl daemon-reload
systemctl start multi-a.service other.service
check "a drop-in by prefix is for all units of that prefix, those too that were never loaded" until_true become \
        $'multi-a.service/nap active 1000000000\nmulti-b.service/nap waiting 1000000000'
systemctl start multi-b.service
check "and for those that come" until_true become \
        $'multi-a.service/nap active 1000000000\nmulti-b.service/nap active 1000000000'
rm -r "$etc/multi-.service.d"
drop_in service x.conf '[X-Tlob all]' "$library" 'Function=fsync' 'BudgetSec=1h'
systemctl daemon-reload
check "a drop-in for all services is for all services" until_true sh -c \
        'tlobctl list-bindings -j | jq -e "map(select(.State == \"active\").Name) | contains([
        \"multi-a.service/all\", \"other.service/all\", \"dbus.service/all\", \"systemd-journald.service/all\"])"'
rm -r "$etc/service.d"
systemctl daemon-reload
check "and gone with it" until_true become ''
systemctl stop multi-a.service multi-b.service other.service
rm "$etc"/multi-?.service "$etc/other.service"

# Aliases: drop-ins of any of its names are the unit's.
service real.service
ln -s real.service "$etc/alias.service"
drop_in alias.service x.conf '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
systemctl daemon-reload
check "a drop-in of an alias is the unit's" until_true become 'real.service/nap waiting 1000000000'
systemctl start alias.service
check "which is followed by its name" until_true become 'real.service/nap active 1000000000'
systemctl stop real.service
check "to the end" until_true become 'real.service/nap waiting 1000000000'

# Masked units and those that are not there.
rm "$etc/alias.service"
rm -r "$etc/alias.service.d"
mkdir -p /usr/lib/systemd/system
mv "$etc/real.service" /usr/lib/systemd/system/
printf '[X-Tlob nap]\n%s\nFunction=nanosleep\nBudgetSec=1s\n' "$library" >>/usr/lib/systemd/system/real.service
systemctl daemon-reload
check "a unit of the vendor" until_true become 'real.service/nap waiting 1000000000'
systemctl mask --quiet real.service
check "has none when it is masked" until_true become ''
systemctl unmask --quiet real.service
check "and has when it is not any more" until_true become 'real.service/nap waiting 1000000000'
rm /usr/lib/systemd/system/real.service
drop_in ghost.service x.conf '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
systemctl daemon-reload
check "a drop-in for a unit that is not there is nothing" until_true become ''
rm -r "$etc/ghost.service.d"

# Slices and scopes.
drop_in naps.slice x.conf '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
printf '[Slice]\n' >"$etc/naps.slice"
drop_in scope x.conf '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=2s'
systemctl daemon-reload
check "a slice has bindings" until_true sh -c 'tlobctl list-bindings -j | jq -e "map(.Name) | contains([\"naps.slice/nap\"])"'
systemd-run --quiet --scope --slice=naps --unit=napper sleep 1000 &
scope=$!
check "it is active with something in it, and so is that scope" until_true sh -c \
        'tlobctl list-bindings -j | jq -e "map(select(.State == \"active\").Name) | contains([\"naps.slice/nap\", \"napper.scope/nap\"])"'
kill $scope
check "the scope's go with it" until_true sh -c '! tlobctl list-bindings -j | grep -q napper.scope'
systemctl stop naps.slice
rm -r "$etc"/naps.slice* "$etc/scope.d"
systemctl daemon-reload
check "all gone" until_true become ''

# A name that needs escaping.
name='odd\x2dname\x40.service'
service "$name" '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
systemctl daemon-reload
check "a name with escapes" until_true become "$name/nap waiting 1000000000"
systemctl start "$name"
check "is followed, too" until_true become "$name/nap active 1000000000"
check "and has its budget set" tlobctl set-budget "$name/nap" 2s
systemctl stop "$name"
check "to the end" until_true become "$name/nap waiting 2000000000"
tlobctl set-budget "$name/nap" default
rm "$etc/$name"
systemctl daemon-reload

# Mistakes stop nobody else.
service good.service '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
service bad.service '[X-Tlob]' 'BudgetSec=1s' '[X-Tlob .x]' '[X-Tlob late]' "$library" 'Function=fsync' \
        'BudgetSec=soon' '[X-Tlob typo]' "$library" 'Function=fsink' 'BudgetSec=1s' \
        '[X-Tlob lines]' 'Function=a\' 'b' 'BudgetSec=1s' '[X-Tlob strange]' "$library" 'Function=fsync' \
        'BudgetSec=1s' 'Colour=red' 'Unit=good.service'
{ printf '\xef\xbb\xbf'; sed 's/$/\r/' "$etc/good.service"; } >"$etc/windows.service"
{ cat "$etc/good.service"; yes '# nothing' | head -c 1100000; } >"$etc/huge.service"
systemctl daemon-reload
check "what is good of it is there" until_true sh -c 'tlobctl list-bindings -j | jq -e "
        map({(.Name): .State}) | add == {\"good.service/nap\": \"waiting\", \"windows.service/nap\": \"waiting\",
        \"bad.service/late\": \"failed\", \"bad.service/typo\": \"failed\", \"bad.service/lines\": \"failed\",
        \"bad.service/strange\": \"waiting\"}"'
matches "a bad value has its place" "$(why bad.service/late)" "^$etc/bad.service:9: BudgetSec=soon"
matches "a typo in a function, too" "$(why bad.service/typo)" "^$etc/bad.service:10: .*fsink.*near names: .*fsync"
matches "a value of several lines is refused" "$(why bad.service/lines)" 'continues in the next one'
check "it is in the journal of the unit" wait_for_entry '.MESSAGE | test("^bad.service/typo: not measured")' \
        -u bad.service
check "a section without a name is told of in the log" wait_for_entry \
        '.MESSAGE | test("bad.service:3: This section has no name")' -u tlobd
check "and so is Unit=" wait_for_entry '.MESSAGE | test("bad.service:[0-9]+: Unit= is not allowed")' -u tlobd
check "and a file that is too large" wait_for_entry '.MESSAGE | test("huge.service: Cannot read it")' -u tlobd
n=$(journalctl --boot -q -u bad.service -o cat | grep -c typo)
systemctl daemon-reload
tlobctl reload >/dev/null 2>&1
equal "a failure is told once, however often systemd reloads" "$(journalctl --boot -q -u bad.service -o cat | grep -c typo)" "$n"
service bad.service '[X-Tlob typo]' "$library" 'Function=fsync' 'BudgetSec=1s'
rm "$etc/huge.service" "$etc/windows.service"
systemctl daemon-reload
check "mended, it waits as others do" until_true become $'bad.service/typo waiting 1000000000\ngood.service/nap waiting 1000000000'
rm "$etc"/bad.service "$etc"/good.service
systemctl daemon-reload
check "all gone" until_true become ''
equal "systemd has answered all questions" "$(journalctl --boot -q -u tlobd -o cat | grep 'Failed to ask')" ''
matches "systemctl status has a line" "$(systemctl show -P StatusText tlobd)" '^0 bindings'
# A reload that is asked for while another one goes on, as after each daemon-reload, with more bindings than a file is
# asked about at a time.
for i in {1..36}; do
        service "many$i.service" '[X-Tlob nap]' "$library" 'Function=nanosleep' 'BudgetSec=1s'
done
systemctl daemon-reload
check "many units" tlobctl reload
for i in 1 2 3; do
        systemctl daemon-reload
        check "a reload next to one of systemd is answered" timeout 30 tlobctl reload
done
rm "$etc"/many*.service
systemctl daemon-reload
finish
