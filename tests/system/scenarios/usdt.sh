# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# USDT probes of PostgreSQL, which have semaphores: queries against what the server itself logs, in new and
# old sessions, through a restart of tlobd; and what an administrator reads.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
version=$(ls /usr/lib/postgresql)
unit=postgresql@$version-main.service
postgres=/usr/lib/postgresql/$version/bin/postgres
log=/var/log/postgresql/postgresql-$version-main.log

windows() {
        tlobctl show -j "$unit/query" | jq '.[0].Windows'
}

# The statements that the server has begun.
logged() {
        grep -c 'LOG:  statement: ' "$log"
}

queries() { # NUMBER
        for ((i = 0; i < $1; i++)); do
                echo "SELECT $i;"
        done | runuser -u postgres -- psql -qAt >/dev/null
}

# Each statement since the last time is a window.
each_is_a_window() { # NAME NUMBER
        local windows_before=$2 logged_before=$3 n

        n=$(($(logged) - logged_before))
        equal "$1" "$(($(windows) - windows_before))" "$n"
        echo "# $n statements"
}

mkdir -p "$etc/$unit.d"
printf '%s\n' '[X-Tlob query]' "Executable=$postgres" 'Start=usdt:postgresql:query__start' \
        'Stop=usdt:postgresql:query__done' 'BudgetSec=200ms' 'CPULimit=infinity' \
        '[X-Tlob keyed]' "Executable=$postgres" 'Start=usdt:postgresql:query__start' \
        'Stop=usdt:postgresql:query__done' 'Key=arg1' 'BudgetSec=200ms' 'CPULimit=infinity' >"$etc/$unit.d/tlob.conf"
echo "log_statement = all" >>"/etc/postgresql/$version/main/postgresql.conf"
systemctl daemon-reload
start_fresh

check "verify" tlobctl verify --unit="$unit"
tlobctl verify --unit="$unit" | sed 's/^/# /'
holds "its probes are listed" "$(tlobctl functions -j "$postgres" 'usdt:*query*')" \
        'length > 5 and all(.Kind == "usdt" and .Probe == "emulated") and
        any(.Name == "usdt:postgresql:query__start" and (.Declaration | test("^8@")))'
check "it starts" systemctl start "$unit"
check "and is active" until_true sh -c "tlobctl show -j $unit/query | grep -q '\"active\"'"

before=$(windows) statements=$(logged)
queries 500
each_is_a_window "each statement of a session is a window" "$before" "$statements"
check "and they are not few" [ "$(windows)" -ge 500 ]

# A session that is there while tlobd comes and goes.
mkfifo /run/session
runuser -u postgres -- psql -qAt >/run/answers 2>&1 </run/session &
session=$!
exec {to}>/run/session
say() {
        echo "SELECT '$1';" >&$to
        until_true grep -qx "$1" /run/answers
}
before=$(windows) statements=$(logged)
say first
check "tlobd restarts" systemctl restart tlobd
say second
pid=$(main_pid)
systemctl kill --signal=KILL --kill-whom=main tlobd
check "tlobd comes back after it was killed" until_true started_anew "$pid"
say third
each_is_a_window "a session outlives two daemons" "$before" "$statements"

# With no binding, and again with one: the semaphore has to go and to come.
mv "$etc/$unit.d/tlob.conf" /run/tlob.conf
systemctl daemon-reload
check "without a section there is no binding" until_true sh -c "! tlobctl show $unit/query 2>/dev/null"
say unseen
mv /run/tlob.conf "$etc/$unit.d/tlob.conf"
systemctl daemon-reload
check "with it there is" until_true sh -c "tlobctl show -j $unit/query | grep -q '\"active\"'"
before=$(windows) statements=$(logged)
for i in 1 2 3 4 5 6 7; do
        say "again$i"
done
each_is_a_window "an old session is measured again" "$before" "$statements"
exec {to}>&-
wait $session

runuser -u postgres -- psql -qAt -c 'SELECT pg_sleep(0.6)' >/dev/null
# On a slow machine others are long, too, but do not sleep so long.
end=$(wait_for_entry ".TLOB_BINDING == \"$unit/query\" and .TLOB_END != null and
        (.TLOB_SLEEPING_NS | tonumber) > 400000000" -t tlob)
holds "a long one is reported" "$end" '(.TLOB_ELAPSED_NS | tonumber) >= 600000000'
holds "the books balance" "$(tlobctl show -j "$unit/query" | jq '.[0].Counters')" \
        '.starts == ."in-budget" + .violated + .open + .exit + .exec + .abandoned + .removed + ."over-limit" and
        .nested == 0 and .unmatched == 0'
tlobctl show "$unit/query" | sed 's/^/# /'
for name in Windows Violations; do
        equal "with the statement as key, the $name are the same" "$(binding "$unit/keyed" $name)" \
                "$(binding "$unit/query" $name)"
done
check "and those books balance" balanced "$unit/keyed"

# What people read.
probe() {
        tlobctl verify --executable="$postgres" --budget=1s "$@"
}
refuse "a name that does not exist" 1 "near names: postgresql:query__start" \
        probe --start=usdt:postgresql:qery__start --stop=usdt:postgresql:query__done
refuse "a file without any" 1 "There are no USDT probes in /usr/bin/psql|There are no USDT probes in " \
        tlobctl verify --executable=/usr/bin/sleep --budget=1s --start=usdt:a:b --stop=usdt:a:c
refuse "the return of a probe" 1 "name the probe or the place where the window ends" \
        probe --start=usdt:postgresql:query__start --stop=return
refuse "a function" 1 "is not a function: write it as Start=" probe --function=usdt:postgresql:query__start
refuse "the kernel's monitor" 1 "[Bb]ack end 'kernel'" \
        probe --start=usdt:postgresql:query__start --stop=usdt:postgresql:query__done --backend=kernel

systemctl stop "$unit"
rm -r "$etc/$unit.d"
systemctl daemon-reload
finish
