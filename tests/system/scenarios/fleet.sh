# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What docs/FLEET.md says of the journal: the violations of one machine are sent by systemd-journal-upload, found where
# systemd-journal-remote has written them, and read there as if they were at home.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
central=$run/central
mkdir "$central"
start_fresh

check "a binding" tlobctl add-binding request --executable="$victim" --function=victim_a --budget=5ms
"$victim" repeat:20 '(' 'a(' sleep:10000000 ')' ')' >/dev/null
check "violations" until_true binding_has request Violations 20

ip link set lo up
/lib/systemd/systemd-journal-remote --listen-http=127.0.0.1:19532 --output="$central" >"$run/remote.log" 2>&1 &
remote=$!
listens() {
        (exec 3<>/dev/tcp/127.0.0.1/19532) 2>/dev/null
}
check "the other machine listens" until_true listens
/lib/systemd/systemd-journal-upload --url=http://127.0.0.1:19532 --save-state="$run/state" >"$run/upload.log" 2>&1 &
upload=$!

# reports OPTION...: of violations, with what tlobd has written.
reports() {
        journalctl --no-pager -o json -t tlob "$@" |
                jq -cS 'select(.TLOB_BINDING == "request" and .TLOB_END == null) | with_entries(select(.key | startswith("TLOB_")))' |
                sort
}
arrived() {
        [ "$(reports --directory="$central" | wc -l)" -ge 20 ]
}
check "they arrive" until_true arrived
check "with all their fields" diff <(reports --directory="$central") <(reports)
# What the OpenTelemetry Collector and Alloy ask journalctl for, in docs/examples.
found() {
        journalctl --no-pager -o json _SYSTEMD_UNIT=tlobd.service "$@" | jq -r 'select(.TLOB_END == null).TLOB_BINDING' | grep -cx request
}
check "collectors find them by their kind" [ "$(found MESSAGE_ID=270a2c0044b740cdb4f203a0156802cb)" -ge 20 ]
check "and by their identifier" [ "$(found SYSLOG_IDENTIFIER=tlob)" -ge 20 ]
matches "a page can be made of them" "$(tlobctl report --directory="$central" --since=1h)" \
        "Latency budgets on $(uname -n)"
refuse "they close the gate of a rollout" 1 '' tlobctl is-ok --directory="$central" --since=1h request
kill $upload
sleep 2
refuse "what does not arrive is not known" 4 'ends before' tlobctl is-ok --directory="$central" --since=1s request
kill $remote
tail -n 3 "$run/remote.log" "$run/upload.log" | sed 's/^/# /'
finish
