# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Instances that nobody has seen before: the template has a section, and each new instance runs over its
# budget in its first millisecond. Each has its violation, under its own full name, also when many come at
# once, when tlobd does not listen, and in whatever slice they are.

. "${BASH_SOURCE[0]%/*}/assert.sh"

N=50
etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim
# Of their own program: a process has the probes in its libraries some milliseconds after it has begun.
section=$'[X-Tlob nap]\nFunction=victim_a\nBudgetSec=200us\n'

# template NAME [LINE...]: of services that violate, and end.
template() {
        local name=$1

        shift
        {
                printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:1000000 )\n' "$victim"
                [ $# -eq 0 ] || printf '%s\n' "$@"
                printf '%s' "$section"
        } >"$etc/$name@.service"
}

# reported TEMPLATE: the full names of violations of its instances, and the units that they happened in.
reported() {
        journalctl --boot -q -t tlob -o json MESSAGE_ID=270a2c0044b740cdb4f203a0156802cb |
                jq -r --arg template "$1@" 'select(.TLOB_BINDING | startswith($template)) |
                        "\(.TLOB_BINDING) \(.TLOB_UNIT) \(.OBJECT_SYSTEMD_UNIT)"' | sort
}

# expected TEMPLATE INSTANCE...
expected() {
        for i in "${@:2}"; do
                echo "$1@$i.service/nap $1@$i.service $1@$i.service"
        done | sort
}

all_are_reported() {
        [ "$(reported "$1")" = "$(expected "$@")" ]
}

# each_is_reported TEXT TEMPLATE INSTANCE...: once, and nothing else.
each_is_reported() {
        until_true all_are_reported "${@:2}"
        equal "$1" "$(reported "$2")" "$(expected "${@:2}")"
}

# missed: how many found no spare, as tlobd counts them.
missed() {
        tlobctl status -j | jq '[.Limitations[] | capture("^(?<n>[0-9]+) instances").n | tonumber] | add // 0'
}

# units TEMPLATE INSTANCE...
units() {
        printf "$1@%s.service " "${@:2}"
}

# stopped COMMAND...: while tlobd does not listen.
stopped() {
        local pid

        pid=$(systemctl show -P MainPID tlobd)
        kill -STOP "$pid"
        "$@"
        kill -CONT "$pid"
}

template one
template crowd
template deaf
template few
template slow
sed -i 's/^Type=oneshot$//; s/1000000/1000000000000/; s/^BudgetSec=.*/BudgetSec=50ms/' "$etc/slow@.service"
template placed 'Slice=placed-%i.slice'
template moved
mkdir -p "$etc/moved@.service.d" "$etc/moved@own.service.d"
printf '[Service]\nSlice=else-where.slice\n' >"$etc/moved@.service.d/slice.conf"
printf '[Service]\nSlice=its-own.slice\n' >"$etc/moved@own.service.d/slice.conf"
printf '[Service]\nDelegate=yes\nType=oneshot\nExecStart=/bin/sh -c "mkdir $below && echo 0 >$below/cgroup.procs && exec %s \x27a(\x27 sleep:1000000 \x27)\x27"\nEnvironment=below=/sys/fs/cgroup/system.slice/pretender.service/one@pretended.service\n' \
        "$victim" >"$etc/pretender.service"
systemctl daemon-reload
start_fresh
equal "a template has no bindings of its own" "$(tlobctl list-bindings -j)" '[]'

for ((i = 0; i < N; i++)); do
        systemctl start "one@$i.service" || break
        # It makes another spare when it gets to it.
        tlobctl status >/dev/null
done
mapfile -t numbers < <(seq 0 $((N - 1)))
each_is_reported "$N instances, one after the other: $N violations, each under its own name" one "${numbers[@]}"

# shellcheck disable=SC2046
systemctl start $(units crowd {1..12})
each_is_reported "a dozen at once" crowd {1..12}
equal "nobody was missed" "$(missed)" 0
systemctl start pretender.service
pause 0.2
equal "a cgroup with an instance's name, below another unit, is none" "$(reported one | wc -l)" "$N"

# In other slices than most.
systemctl start placed@a.service placed@b.service
each_is_reported "a slice for each instance" placed a b
systemctl start moved@new.service moved@own.service
each_is_reported "the template's drop-in has a Slice=, and an instance's, too" moved new own

# One that goes on running.
systemctl start slow@it.service
check "it is active at once" until_true sh -c 'tlobctl show -j slow@it.service/nap | jq -e ".[0].State == \"active\""'
check "and reported while it runs" wait_for_entry '.TLOB_BINDING == "slow@it.service/nap" and .TLOB_END == null' -t tlob
check "daemon-reload" systemctl daemon-reload
tlobctl reload
equal "a reload leaves its window alone" "$(tlobctl show -j slow@it.service/nap | jq -c '.[0] | [.Windows, .Violations, .Counters.open]')" '[1,1,1]'
systemctl restart slow@it.service
check "it is measured when it starts again" until_true sh -c \
        'tlobctl show -j slow@it.service/nap | jq -e ".[0] | .Windows == 2 and .Violations == 2 and .Counters.exit == 1"'
check "its budget is set by hand" tlobctl set-budget slow@it.service/nap 1h
systemctl stop slow@it.service
check "it goes when systemd forgets it" until_true sh -c '! tlobctl list-bindings -j | grep -q slow@it'
systemctl start slow@it.service
equal "and has that budget when it comes back" "$(tlobctl show -j slow@it.service/nap | jq '.[0].BudgetNSec')" 3600000000000
systemctl stop slow@it.service

# A change of the template is for those that come.
sed -i 's/BudgetSec=.*/BudgetSec=1h/' "$etc/few@.service"
systemctl daemon-reload
tlobctl reload
systemctl start few@quiet.service
pause 0.2
equal "the template's budget is another now" "$(reported few)" ''
sed -i 's/BudgetSec=.*/BudgetSec=200us/' "$etc/few@.service"
systemctl daemon-reload

# While tlobd does not listen.
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nSpareInstances=%s\n' $((N < 64 ? N : 64)) >/etc/tlob/tlobd.conf.d/spares.conf
tlobctl reload
# shellcheck disable=SC2046
stopped systemctl start $(units deaf "${numbers[@]}")
each_is_reported "$N at once, and tlobd does not listen" deaf "${numbers[@]}"
printf '[Daemon]\nSpareInstances=3\n' >/etc/tlob/tlobd.conf.d/spares.conf
tlobctl reload
before=$(missed)
# shellcheck disable=SC2046
stopped systemctl start $(units few {1..10})
until_true sh -c '[ "$(journalctl --boot -q -t tlob -o cat | grep -c "^few@.*over its")" -ge 3 ]'
equal "with three spares for ten, seven are missed, and counted" "$(missed)" $((before + 7))
equal "the others are told" "$(reported few | wc -l)" 3
systemctl start few@11.service
check "and there are spares again" until_true sh -c 'journalctl --boot -q -t tlob -o cat | grep -q "^few@11.service/nap: over"'

rm -r "$etc"/{one,crowd,deaf,few,slow,placed}@.service "$etc"/moved@* "$etc/pretender.service" \
        /etc/tlob/tlobd.conf.d/spares.conf
systemctl daemon-reload
check "without sections nothing is kept ready" until_true sh -c '! bpftool prog show | grep -q on_cgroup_mkdir'
finish
