# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A package with a daemon and its library that dpkg upgrades while the daemon works: its scripts restart it, or leave
# the old one to go on, beside a new one; and at last the functions that are measured are gone. The instrument is the
# daemon, which writes at its end how often it called them.

. "${BASH_SOURCE[0]%/*}/assert.sh"

dropin=/etc/systemd/system/packaged.service.d
tests=/usr/libexec/tlob-tests
daemon=/usr/sbin/packaged
bindings=(serve work)
start_fresh

# make_package VERSION [COMMAND]: the command is what is done after the files are there.
make_package() {
        local tree=$run/tree

        install -D "$tests/packaged-$1" "$tree$daemon"
        install -D -m 644 "$tests/libpackaged-$1.so" "$tree/usr/lib/libpackaged.so.1"
        mkdir -p "$tree/DEBIAN" "$tree/lib/systemd/system"
        printf 'Package: packaged\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: test\n' \
                "$1" >"$tree/DEBIAN/control"
        printf '#!/bin/sh\nset -e\n%s\n' "${2-}" >"$tree/DEBIAN/postinst"
        chmod 755 "$tree/DEBIAN/postinst"
        printf '[Service]\nExecStart=%s\nStandardOutput=append:%s\n' "$daemon" "$run/counts" \
                >"$tree/lib/systemd/system/packaged.service"
        dpkg-deb --build "$tree" "$run/packaged-$1${2:+-restart}.deb" >/dev/null
        rm -r "$tree"
}

make_package 1
make_package 2
make_package 2 'systemctl daemon-reload; systemctl try-restart packaged.service'
make_package 3
: >"$run/counts"

# upgrade VERSION
upgrade() {
        dpkg --install "$run/packaged-$1.deb"
}

total() {
        awk -v column="$1" '{ n += $column } END { print n + 0 }' "$run/counts"
}

# A program has its probes before it runs. A library gets them in a process of the unit a moment after that has begun,
# on kernels where it costs others nothing: tlobd counts how long that took, and the daemon makes a call in 0.2 ms.
late_calls() {
        tlobctl show -j packaged.service/work |
                jq '.[0].Counters | ((.["processes-late-ns"] // 0) / 200000 | floor) + (.processes // 0)'
}

missing_calls() {
        echo $(($(total 3) - $(binding packaged.service/work Windows)))
}

# all_counted: once no daemon runs.
all_counted() {
        binding_has packaged.service/serve Windows "$(total 2)" && [ "$(missing_calls)" -ge 0 ] &&
                [ "$(missing_calls)" -le "$(late_calls)" ]
}

# Where a process gets its probes while it calls, the ends of some calls come before a start.
balanced_but_for_late() {
        tlobctl show -j "$1" | jq -e --argjson missing "$(missing_calls)" \
                '.[0].Counters | .starts == .["in-budget"] and .nested == 0 and .lost == 0 and .unmatched <= $missing'
}

# stopped TEXT: what the daemons say, and what tlobd has counted.
stopped() {
        check "$1: it stops" systemctl stop packaged
        check "$1: all calls have been counted, in all versions" until_true all_counted
        echo "# $(total 2) calls, windows: $(binding packaged.service/serve Windows) of the program," \
                "$(binding packaged.service/work Windows) of the library, where $(late_calls) may be missing"
        equal "$1: it ended as it should" "$(systemctl show -P Result packaged)" success
        check "$1: the books of the program balance" balanced packaged.service/serve
        check "$1: the books of the library balance" balanced_but_for_late packaged.service/work
}

grow() {
        for name in "${bindings[@]}"; do
                check "$1: $name is measured" grows "packaged.service/$name"
        done
}

# offset FILE FUNCTION
offset() {
        tlobctl functions -j "$1" "$2" | jq ".[] | select(.Name == \"$2\").Offset"
}

mkdir -p "$dropin"
cat >"$dropin/tlob.conf" <<'END'
[X-Tlob serve]
Function=serve
BudgetSec=10s
[X-Tlob work]
Executable=libpackaged.so.1
Function=packaged_work
BudgetSec=10s
END
check "it can be installed" upgrade 1
places="$(offset $daemon serve) $(offset /usr/lib/libpackaged.so.1 packaged_work)"
systemctl daemon-reload
check "it waits for its unit" until_true binding_has packaged.service/work StateReason "packaged.service is not running"
check "it starts" systemctl start packaged
check "it is measured" until_true has_windows packaged.service/serve 1200

# Its script restarts it.
pid=$(systemctl show -P MainPID packaged)
check "restarted: it is upgraded" upgrade 2-restart
check "restarted: it is another process" [ "$(systemctl show -P MainPID packaged)" != "$pid" ]
equal "restarted: with the functions at other places" "$(offset $daemon serve) $(offset /usr/lib/libpackaged.so.1 packaged_work)" \
        "$(awk '{ print $1 + 1088, $2 + 1088 }' <<<"$places")"
grow restarted
check "restarted: nothing is to be said" until_true binding_has packaged.service/serve StateReason ""
check "restarted: it is measured in the new version" until_true sh -c \
        "tlobctl show -j packaged.service/serve | jq -e '.[0].Builds | length == 2 and .[0][0] != .[1][0]'"
tlobctl show packaged.service/serve | grep -A1 Builds | sed 's/^/# /'
matches "restarted: both builds have percentiles" "$(tlobctl show packaged.service/serve | grep -A1 Builds)" \
        'p50 [0-9.]+.s, p99 [0-9.]+.s.* of [0-9]+ windows'
stopped restarted

# Nobody does: the old one goes on, and starts a process of the new one.
told_of_both() {
        tlobctl show -j packaged.service/serve | grep -q 'still runs the old version of .*: both are measured'
}
both_run() {
        [ "$(pgrep -cx packaged)" = 2 ]
}
check "not restarted: it starts" systemctl start packaged
grow "not restarted"
check "not restarted: it is upgraded" upgrade 1
check "not restarted: both versions are measured" until_true told_of_both
grow "not restarted"
check "not restarted: one of the new version starts" systemctl kill --signal=HUP --kill-whom=main packaged
check "not restarted: it does" until_true both_run

# Beside them, probes come and go.
attached=0
for _ in {1..100}; do
        tlobctl add-binding other --unit=packaged.service --executable=/usr/lib/libpackaged.so.1 \
                --function=packaged_other --budget=10s >/dev/null || break
        binding_has other State active && attached=$((attached + 1))
        tlobctl remove-binding other >/dev/null || break
done
equal "not restarted: a hundred times, a probe came and went" "$attached" 100
stopped "not restarted"
equal "not restarted: both versions ran" "$(tail -n 2 "$run/counts" | cut -d' ' -f1 | sort | xargs)" "1 2"

# The functions are gone.
check "gone: it starts" systemctl start packaged
grow gone
check "gone: it is upgraded" upgrade 3
for name in "${bindings[@]}"; do
        check "gone: $name says so" until_true says "packaged.service/$name" \
                "still runs the old version of .*: the new version cannot be: No function '(serve|packaged_work)' in"
        tlobctl show -j "packaged.service/$name" | jq -r '.[0] | .State + ": " + .StateReason' | sed 's/^/# /'
done
grow gone
check "gone: one of the new version starts" systemctl kill --signal=HUP --kill-whom=main packaged
check "gone: it does" until_true both_run
grow gone
stopped gone
check "gone: the new one starts" systemctl start packaged
for name in "${bindings[@]}"; do
        check "gone: $name fails" until_true binding_has "packaged.service/$name" State failed
        tlobctl show -j "packaged.service/$name" | jq -r '.[0] | .State + ": " + .StateReason' | sed 's/^/# /'
done
check "gone: the new one stops" systemctl stop packaged
equal "gone: it ended as it should" "$(systemctl show -P Result packaged)" success
check "gone: and comes back" upgrade 1
check "gone: it is found again" until_true binding_has packaged.service/serve StateReason "packaged.service is not running"

# Nobody can measure the old library when tlobd has not seen it in its place.
says_old() {
        says packaged.service/work 'still runs the old version of /usr/lib/libpackaged.so.1, which was replaced: restart the unit'
}
check "unseen: it starts" systemctl start packaged
grow unseen
systemctl stop tlobd
check "unseen: it is upgraded" upgrade 2
check "unseen: tlobd comes back" systemctl start tlobd
check "unseen: that the unit runs the old library is said" until_true says_old
# As long as it is true: looks come after 1, 3, 7, 15 s.
sleep 16
check "unseen: and said later on" says_old
check "unseen: the unit is restarted" systemctl restart packaged
check "unseen: nothing is to be said" until_true binding_has packaged.service/work StateReason ""
grow unseen
systemctl stop packaged

dpkg --purge packaged >/dev/null
rm -r "$dropin"
systemctl daemon-reload
finish
