# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What systemd reads while a unit runs is for its next start: files with mistakes, a mask, another Slice= or
# RootDirectory=. What runs is measured until then, call by call. And names: of a unit by its alias, and of the slice
# that has all units. The instrument is the program, which writes a line for each call.

. "${BASH_SOURCE[0]%/*}/assert.sh"

units=/usr/local/lib/systemd/system
etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim
calls=/run/unloaded-calls

log_has() {
        journalctl --boot -q -u tlobd -o cat | grep -qE -- "$1"
}

counter() {
        tlobctl show -j r.service/a | jq ".[0].Counters[\"$1\"]"
}

# It may be ended within a call.
counted() {
        [ "$(counter in-budget)" = "$(grep -c '^a ' "$calls")" ]
}

load_state() {
        [ "$(systemctl show -P LoadState r)" = "$1" ]
}

# drop_in TEXT: pending, until the unit is started again.
drop_in() {
        printf '[Service]\n%s\n' "$1" >"$etc/r.service.d/pending.conf"
        systemctl daemon-reload
}

# goes_on WHAT: it is measured as before.
goes_on() {
        check "$1: what has changed is known" tlobctl reload
        check "$1: it is measured on" grows r.service/a
        equal "$1: its probes have not been touched" "$(counter removed)" 0
}

mkdir -p "$units" "$etc/r.service.d"
cat >"$units/r.service" <<END
[Service]
ExecStart=$victim repeat:1000000 ( a( sleep:2000000 ) sleep:3000000 )
StandardOutput=append:$calls
[Install]
Alias=other.service
[X-Tlob a]
Function=victim_a
BudgetSec=10s
END
systemctl daemon-reload
start_fresh
check "a service is measured before it runs" until_true binding_has r.service/a StateReason "r.service is not running"
check "it runs" systemctl start r
check "it is measured" grows r.service/a

drop_in "ExecStart=/bin/true"
check "systemd cannot load it any more" load_state bad-setting
check "that is in the log" until_true log_has "r.service runs, but systemd cannot load it any more"
goes_on "with a mistake in a drop-in"
check "another reload changes nothing" tlobctl reload
goes_on "after a reload"
rm "$etc/r.service.d/pending.conf"
systemctl daemon-reload
check "it can again" load_state loaded
goes_on "without the mistake"

check "it is masked" systemctl mask r
check "systemd has no files of it" until_true load_state masked
goes_on "masked"
check "and unmasked" systemctl unmask r
goes_on "unmasked"

drop_in "Slice=pending.slice"
goes_on "with another slice for its next start"
drop_in "RootDirectory=/usr"
goes_on "with another root for its next start"
install -D "$victim" /srv/unloaded/second
drop_in $'RootDirectory=/srv/unloaded\nExecStart=\nExecStart=/second repeat:1000000 ( a( ) sleep:3000000 )'
pause 2
goes_on "with another root and another program there"
equal "both are measured" "$(tlobctl show -j r.service/a | jq -r '.[0].StateReason')" \
        "r.service still runs $victim, and runs /srv/unloaded/second from its next start on: both are measured"
rm "$etc/r.service.d/pending.conf"
systemctl daemon-reload
goes_on "without"
check "it stops" systemctl stop r
check "each call was counted, and no other" until_true counted

drop_in "Slice=pending.slice"
check "it starts in another slice" systemctl start r
check "there it is measured" grows r.service/a
rm "$etc/r.service.d/pending.conf"

# By its alias.
check "it has an alias" systemctl enable r
systemctl daemon-reload
check "a binding by that" tlobctl add-binding late --unit=other --executable="$victim" --function=victim_a --budget=1us
equal "is for the unit" "$(tlobctl show -j late | jq -r '.[0].Unit')" r.service
check "its budget is violated" until_true sh -c '[ "$(tlobctl show -j late | jq ".[0].Violations")" -gt 0 ]'
for name in r r.service other other.service; do
        equal "is-ok $name" "$(tlobctl is-ok $name)" violated
        equal "list-bindings -u $name" \
                "$(tlobctl list-bindings -j -u $name | jq -c 'map(.Name) | sort')" '["late","r.service/a"]'
        check "violations -u $name" sh -c 'tlobctl violations -j -u "$0" | jq -e "length > 0"' $name
done
refuse "what is no unit is none" 4 "no binding 'another'" tlobctl is-ok another
check "the binding goes" tlobctl remove-binding late
systemctl disable r

# In the slice that has all.
mkdir -p "$etc/-.slice.d"
printf '[X-Tlob b]\nExecutable=%s\nFunction=victim_b\nBudgetSec=10s\n' "$victim" >"$etc/-.slice.d/b.conf"
systemctl daemon-reload
in_root() {
        [ "$(tlobctl show -j -- -.slice/b | jq -r ".[0].$1")" = "$2" ]
}
check "a section for the root slice" until_true in_root State active
check "somebody runs" systemd-run -q --wait "$victim" 'b(' ')'
check "and is measured" until_true in_root Windows 1

systemctl stop r
rm -r /srv/unloaded "$etc/r.service.d" "$etc/-.slice.d" "$units/r.service" "$calls"
systemctl daemon-reload
finish
