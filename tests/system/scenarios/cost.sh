# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What a window costs in the kernel's own monitor, against the BPF back end on the same kernel. Nothing
# passes or fails by it: this prints figures, and checks that both have measured every window.

. "${BASH_SOURCE[0]%/*}/assert.sh"

marks=/usr/libexec/tlob-tests/bench/bench-marks
rounds=100
check_rounds=5
windows=32 # a round

binding() {
        cat <<END
[Binding $1]
Executable=$marks
Start=marks_$1_begin
Stop=marks_$1_end
BudgetSec=1min
Backend=$1
END
}

{
        binding kernel
        binding bpf
} >"$run/marks.conf"
start_fresh "$run/marks.conf"
equal "one binding by each back end" "$(tlobctl show -j kernel bpf | jq -c '[.[].Backend]')" '["kernel","bpf"]'

# All windows are measured: the monitor has a slot for each of them.
instance=/sys/kernel/tracing/instances/cost
mkdir $instance
echo 'event == "start"' >$instance/events/rv/event_tlob/filter
echo 1 >$instance/events/rv/event_tlob/enable
$marks $check_rounds >/dev/null
echo 0 >$instance/events/rv/event_tlob/enable
expected=$(((check_rounds + 1) * windows))
equal "the monitor begins every window" "$(grep -c 'x start' $instance/trace)" $expected
rmdir $instance
equal "and so does BPF" "$(tlobctl show -j bpf | jq '.[0].Windows')" $expected

$marks $rounds >"$run/figures"
equal "all rounds were run" "$(grep -c . "$run/figures")" $((3 * rounds))

# quartiles WORD: of the numbers on standard input.
quartiles() {
        sort -n | awk -v text="$1" '
                { v[NR] = $1 }
                END { print "# " text ": " v[int((NR + 1) / 2)] " (middle half " v[int((NR + 3) / 4)] " to " v[int((3 * NR + 1) / 4)] ")" }'
}

for way in none kernel bpf; do
        sed -n "s/^marks.$way [0-9]* //p" "$run/figures" | quartiles "a window, $way, in ns"
done
# of WAY: what its probes add, in each round.
ratio() {
        awk -v above="marks.$1" -v below="marks.$2" '
                { ns[$1, $2] = $3; if ($2 > n) n = $2 }
                END {
                        for (i = 1; i <= n; i++)
                                printf "%.3f\n", (ns[above, i] - ns["marks.none", i]) / (ns[below, i] - ns["marks.none", i])
                }' "$run/figures"
}
ratio kernel bpf | quartiles "a window's probes, kernel against bpf"

systemctl stop tlobd
finish
