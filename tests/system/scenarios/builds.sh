# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Builds of a program: what was measured in one is compared with what is measured in the next, and a binding can be
# for one of them only.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
before=/usr/libexec/tlob-tests/changeling
after=/usr/libexec/tlob-tests/changeling-changed
programs=/usr/local/lib/builds
mkdir -p "$programs"
start_fresh

# An upgrade that makes a service slower, while it is measured.
cp /usr/libexec/tlob-tests/server "$programs/server"
printf '[Service]\nExecStart=%s\n[X-Tlob request]\nFunction=handle_request\nBudgetSec=1s\n' "$programs/server" \
        >"$etc/upgraded.service"
systemctl daemon-reload
systemctl start upgraded
WAIT=60 check "it is measured" until_true has_windows upgraded.service/request 1100
holds "there is one build yet" "$(tlobctl show -j upgraded.service/request)" '.[0].Builds == []'
cp /usr/libexec/tlob-tests/server-slow "$programs/new"
mv "$programs/new" "$programs/server"
# The old one ends when the service stops.
systemctl stop upgraded
systemctl start upgraded
check "there are two builds" until_true sh -c \
        "tlobctl show -j upgraded.service/request | jq -e '.[0].Builds | length == 2 and .[0][0] != .[1][0]'"
worse=$(WAIT=120 wait_for_entry '.TLOB_P99_NS != null' -t tlob)
holds "that it has become slower is told" "$worse" \
        '.TLOB_BINDING == "upgraded.service/request" and .OBJECT_SYSTEMD_UNIT == "upgraded.service" and
        (.TLOB_P99_NS | tonumber) > (.TLOB_P99_NS_BEFORE | tonumber) * 1.25 and
        .TLOB_BUILD_ID != .TLOB_BUILD_ID_BEFORE'
matches "in words" "$(jq -r .MESSAGE <<<"$worse")" \
        '^upgraded.service/request: p99 [0-9.]+ms -> [0-9.]+ms since build [0-9a-f]{12} '
tlobctl show upgraded.service/request | grep -A1 Builds | sed 's/^/# /'
matches "and both are shown" "$(tlobctl show upgraded.service/request)" \
        'Builds: +[0-9a-f]{12}: p50 [0-9.]+ms, p99 [0-9.]+ms, p99.9 [0-9.]+ms of [0-9]+ windows'

# The next tlobd knows the build before, and what of it was told.
builds=$(tlobctl show -j upgraded.service/request | jq -c '[.[0].Builds[][0]]')
systemctl restart tlobd
equal "the next tlobd knows both builds" \
        "$(tlobctl show -j upgraded.service/request | jq -c '[.[0].Builds[][0]]')" "$builds"
before_lengths=$(tlobctl show -j upgraded.service/request | jq '[.[0].Builds[1][1][][1]] | add')
systemctl kill -s KILL tlobd
check "one that comes after a crash, too" until_true sh -c \
        "[ \"\$(tlobctl show -j upgraded.service/request | jq '[.[0].Builds[1][1][][1]] | add')\" = $before_lengths ]"

# The file is replaced, and the service restarted, while nobody looks.
windows=$(binding upgraded.service/request Windows)
systemctl kill -s STOP tlobd
cp /usr/libexec/tlob-tests/server "$programs/new"
mv "$programs/new" "$programs/server"
systemctl restart upgraded
systemctl kill -s KILL tlobd
WAIT=60 check "replaced while nobody looked: nothing that was counted is lost" \
        until_true has_windows upgraded.service/request $((windows + 100))
holds "and the build before is known" "$(tlobctl show -j upgraded.service/request)" \
        "[.[0].Builds[][0]] == ($builds | reverse)"

# The same by writing in the file, with nobody running it.
systemctl stop upgraded
windows=$(binding upgraded.service/request Windows)
systemctl kill -s STOP tlobd
cp /usr/libexec/tlob-tests/server-slow "$programs/server"
systemctl kill -s KILL tlobd
check "written to while nobody looked: the next tlobd is ready" until_true systemctl is-active tlobd
systemctl start upgraded
WAIT=60 check "written to while nobody looked: nothing that was counted is lost" \
        until_true has_windows upgraded.service/request $((windows + 20))
holds "and the build before is known" "$(tlobctl show -j upgraded.service/request)" "[.[0].Builds[][0]] == $builds"
systemctl stop upgraded
rm "$etc/upgraded.service"

# BuildID=: for one build only.
cp "$before" "$programs/pinned"
build=$(tlobctl verify -j --executable="$programs/pinned" --function=request --budget=1s | jq -r '.[0].BuildID')
printf '[Binding pinned]\nExecutable=%s\nFunction=request\nBudgetSec=1s\nBuildID=%s\n' "$programs/pinned" "$build" \
        >/etc/tlob/bindings.d/pinned.conf
check "BuildID=: it can be set up" tlobctl reload
equal "BuildID=: it is active" "$(binding pinned State)" active
"$programs/pinned"
equal "BuildID=: it measures that build" "$(binding pinned Windows)" 1
cp "$after" "$programs/new"
mv "$programs/new" "$programs/pinned"
check "BuildID=: another one is waited for" until_true binding_has pinned State waiting
refuse "BuildID=: and its budget is not said to be kept" 3 '' tlobctl is-ok pinned
matches "BuildID=: and says why" "$(binding pinned StateReason)" "pinned is build [0-9a-f]+, not BuildID=$build"
"$programs/pinned"
equal "BuildID=: another one is not measured" "$(binding pinned Windows)" 1
cp "$before" "$programs/new"
mv "$programs/new" "$programs/pinned"
check "BuildID=: it is active again" until_true binding_has pinned State active
"$programs/pinned"
equal "BuildID=: that one is, when it comes back" "$(binding pinned Windows)" 2
refuse "BuildID=: no build-id" 1 "is not a build-id" \
        tlobctl verify --executable="$programs/pinned" --function=request --budget=1s --build-id=1.2

rm -r "$programs" /etc/tlob/bindings.d/pinned.conf
finish
