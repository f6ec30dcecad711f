# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A program in Go that Debian has built, which is stripped: its functions by name, each run counted, while bindings come
# and go. What it prints is what it prints without.

. "${BASH_SOURCE[0]%/*}/assert.sh"

runs=20 numbers=50
seq -s , $numbers | sed 's/.*/[&]/' >/run/numbers.json
gron /run/numbers.json >"$run/without"

cat >/etc/systemd/system/gron.service <<'END'
[Service]
Type=oneshot
ExecStart=/usr/bin/gron /run/numbers.json
StandardOutput=append:/run/gron.out
[X-Tlob run]
Function=main.gron
BudgetSec=1min
[X-Tlob fill]
Function=main.(*statements).fill
BudgetSec=1min
END
systemctl daemon-reload
start_fresh
check "a function of a stripped program in Go is found" until_true says gron.service/run "gron.service is not running"
check "and a method" until_true says gron.service/fill "gron.service is not running"

holds "each way out of it is a return, and not one that the scheduler takes" "$(tlobctl show -j gron.service/run)" \
        '.[0] | .WaysOut as $n | .TailCalls == 0 and (.StopNote | startswith("\($n) way"))'

counters() {
        tlobctl show -j "$1" | jq '.[0].Counters'
}
for ((i = 1; i <= runs; i++)); do
        systemctl start gron || break
        cat "$run/without"
done >"$run/expected"
equal "all runs are counted" "$(counter gron.service/run starts)" $runs
holds "and all end" "$(counters gron.service/run)" ".[\"in-budget\"] + .switched == $runs"
fill=$(counters gron.service/fill)
holds "each call is counted" "$fill" ".starts + .nested == $runs * ($numbers + 1)"
# Of which all that are left to do in that run may be the outermost on their thread.
holds "the outermost as a window, unless its goroutine leaves its thread" "$fill" \
        ".starts >= $runs and .starts <= $runs + $numbers * .switched"
check "it prints what it prints without" cmp /run/gron.out "$run/expected"

# While it runs, probes come and go.
rm /run/gron.out
seq -s , 20000 | sed 's/.*/[&]/' >/run/numbers.json
gron /run/numbers.json >"$run/without"
: >"$run/times"
touch "$run/going"
while [ -e "$run/going" ]; do
        tlobctl add-binding coming --unit=gron.service --executable=/usr/bin/gron --function='main.(*statements).fill' \
                --budget=1min || break
        echo come >>"$run/times"
        tlobctl remove-binding coming >/dev/null 2>&1
done &
more=0
deadline=$((SECONDS + WAIT))
have_come() {
        [ "$(grep -c . "$run/times")" -ge 5 ]
}
until [ $more -ge 10 ] && { have_come || [ $SECONDS -ge $deadline ]; }; do
        more=$((more + 1))
        systemctl start gron || break
        cat "$run/without"
done >"$run/expected"
rm "$run/going"
wait
check "probes have come and gone" have_come
equal "$more runs more" "$(counter gron.service/run starts)" $((runs + more))
check "print the same, too" cmp /run/gron.out "$run/expected"
finish
