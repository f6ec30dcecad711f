# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A service whose program is stripped, as nearly all of Debian's are, and a server that knows the names: what is found
# and proposed by them can be used by tlobd, which does not know them.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
program=/usr/local/bin/stripped
debug=/run/served

cp "$tests/server-stripped" "$program"
mkdir -p "$debug"
cp "$tests/server-debug" "$debug/"
printf '[Service]\nExecStart=%s\n' "$program" >"$etc/stripped.service"
printf '[Service]\nExecStart=/usr/bin/debuginfod -d :memory: -p 8002 -F %s\n' "$debug" >"$etc/names.service"
systemctl daemon-reload
start_fresh
systemctl start names stripped

export DEBUGINFOD_CACHE_PATH=/run/debuginfod HOME=/root
refuse "nobody is asked who was not named" 1 "stripped; install its debug symbols, or set DEBUGINFOD_URLS" \
        tlobctl functions stripped.service request
export DEBUGINFOD_URLS=http://localhost:8002
asked() {
        rm -rf "$DEBUGINFOD_CACHE_PATH" # it remembers, too, that there was nothing
        tlobctl functions -j stripped.service request >/run/functions
}
check "the server knows the function" until_true asked
row=$(jq '.[] | select(.Declaration == "handle_request")' </run/functions)
offset=$(jq -r .Name <<<"$row")
build_id=$(jq -r .BuildID <<<"$row")
matches "it has an offset" "$offset" '^0x[0-9a-f]+$'
check "it can be measured there" tlobctl add-binding by-hand --unit=stripped --function="$offset" --budget=1s \
        --build-id="$build_id"
check "it is" until_true sh -c "[ \"\$(tlobctl show -j by-hand | jq '.[0].Windows')\" -gt 10 ]"
tlobctl remove-binding by-hand

tlobctl suggest -j stripped --for=8s >/run/stripped.json
holds "suggest: what is a request is found by its name" "$(cat /run/stripped.json)" 'any(.Name == "handle_request")'
holds "suggest: and measured at its offset" "$(cat /run/stripped.json)" \
        '.[] | select(.Name == "handle_request") | .Start == $offset and .Windows > 5' --arg offset "$offset"
# Which of those that are called about as often is best depends on how long they had to wait meanwhile.
mkdir -p "$etc/stripped.service.d"
is_named() {
        tlobctl suggest stripped --for=8s >/run/stripped.txt
        sed -n '/^# \/etc/,$p' /run/stripped.txt >"$etc/stripped.service.d/50-latency.conf"
        grep -qx '# handle_request' "$etc/stripped.service.d/50-latency.conf"
}
check "suggest: the drop-in names it for people" until_true is_named
sed 's/^/# /' /run/stripped.txt
check "suggest: and has its build" grep -qx "BuildID=$build_id" "$etc/stripped.service.d/50-latency.conf"
systemctl daemon-reload
section=$(sed -n 's/^\[X-Tlob \(.*\)\]$/\1/p' "$etc/stripped.service.d/50-latency.conf" | head -n 1)
check "suggest: the drop-in can be used" until_true binding_has "stripped.service/$section" State active

systemctl stop names stripped
rm -r "$etc"/{stripped,names}.service "$etc/stripped.service.d" "$program" "$debug"
systemctl daemon-reload
finish
