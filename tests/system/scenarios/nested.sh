# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Where cgroups lie in each other: a delegated one below a unit's, a unit in a slice of a slice, a shell, and a
# whole system in a container, from the same files, with units of the same names. Each window is counted in
# exactly the bindings that it belongs to.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim
section=$'[X-Tlob a]\nFunction=victim_a\nBudgetSec=5ms\n'
bindings=(same.service/a same@known.service/a deep.service/a outer.slice/a outer-inner.slice/a every)

# one_window NAME [LINE...]: a service with a window, and a budget.
one_window() {
        local name=$1

        shift
        {
                printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:20000000 )\n' "$victim"
                [ $# -eq 0 ] || printf '%s\n' "$@"
                printf '%s' "$section"
        } >"$etc/$name"
}

# windows: of all bindings, as "same same@known deep outer inner every".
windows() {
        tlobctl show -j "${bindings[@]}" | jq -r 'map(.Windows) | join(" ")'
}

# missed_instances: what is said of instances that found no spare bindings.
missed_instances() {
        tlobctl status -j | jq -c '.Limitations | map(select(test("instances of templates")))'
}

one_window same.service
one_window same@.service
mkdir -p "$etc/same@known.service.d"
printf '[X-Tlob a]\nBudgetSec=6ms\n' >"$etc/same@known.service.d/own.conf"
one_window deep.service 'Slice=outer-inner.slice'
for slice in outer outer-inner; do
        printf '[Slice]\n%sExecutable=%s\n' "$section" "$victim" >"$etc/$slice.slice"
done
printf '[Binding every]\nExecutable=%s\nFunction=victim_a\nBudgetSec=5ms\n' "$victim" >"$run/every.conf"
printf '[Service]\nDelegate=yes\nType=oneshot\nExecStart=/bin/sh -c "mkdir $$below && echo $$$$ >$$below/cgroup.procs && exec %s \x27a(\x27 sleep:20000000 \x27)\x27"\nEnvironment=below=/sys/fs/cgroup/system.slice/holder.service/same.service\n%sExecutable=%s\n' \
        "$victim" "$section" "$victim" >"$etc/holder.service"
systemctl daemon-reload
start_fresh "$run/every.conf"
equal "nothing has run" "$(windows)" '0 0 0 0 0 0'

systemctl start same.service
equal "a unit" "$(windows)" '1 0 0 0 0 1'
"$victim" 'a(' sleep:20000000 ')' >/dev/null
equal "the same program in a shell" "$(windows)" '1 0 0 0 0 2'
systemctl start deep.service
equal "a unit in a slice of a slice is in both" "$(windows)" '1 0 1 1 1 3'
systemd-run --quiet --wait --slice=outer "$victim" 'a(' sleep:20000000 ')'
equal "another unit in the outer one is in that" "$(windows)" '1 0 1 2 1 4'
systemctl start holder.service
equal "a delegated cgroup with a unit's name is its owner's" "$(windows) $(tlobctl show -j holder.service/a | jq '.[0].Windows')" \
        '1 0 1 2 1 5 1'
systemctl start same@known.service
equal "an instance" "$(windows)" '1 1 1 2 1 6'

# A system in a container, whose root is this one's: it starts units of the same names from the same files.
printf '[Unit]\nWants=same.service same@known.service same@new.service deep.service leave.service\n' >"$etc/inside.target"
printf '[Unit]\nAfter=same.service same@known.service same@new.service deep.service\n[Service]\nType=oneshot\nExecStart=/bin/systemctl --force --force poweroff\n' \
        >"$etc/leave.service"
systemctl daemon-reload
mkdir "$run/root"
mount --bind / "$run/root"
mkdir -p "$run/root/run/host"
before=$(missed_instances)
check "a container with systemd boots and ends" timeout 90 systemd-run --quiet --wait --pipe --unit=inside -p Delegate=yes -p KillMode=mixed \
        systemd-nspawn --quiet --directory="$run/root" --volatile=state --keep-unit --register=no --private-network \
        --console=pipe --boot systemd.unit=inside.target
equal "what has run in it is nobody's but everybody's" "$(windows)" '1 1 1 2 1 10'
equal "nor has an instance in it taken anything" "$(missed_instances)" "$before"
equal "nor is it known" "$(tlobctl list-bindings -j | jq 'map(.Name) | index("same@new.service/a")')" null
holds "its violations name the unit that holds the container" "$(tlobctl violations -j -b every | jq '.[:4]')" \
        'map(.Unit) | unique == ["inside.service"]'
umount "$run/root"
systemctl start same.service
equal "and outside all is as before" "$(windows)" '2 1 1 2 1 11'

rm -r "$etc"/same* "$etc"/{deep,holder,leave}.service "$etc"/outer*.slice "$etc/inside.target"
systemctl daemon-reload
finish
