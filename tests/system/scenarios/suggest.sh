# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# "tlobctl suggest": of a service whose functions are known, what it finds and how long calls take; of
# PostgreSQL under the load of its own benchmark; of services whose files were replaced; that a drop-in
# can be used as it is; ^C, and what is left behind.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
server=/usr/libexec/tlob-tests/server
version=$(ls /usr/lib/postgresql)
unit=postgresql@$version-main.service

printf '[Service]\nExecStart=%s\n' "$server" >"$etc/known.service"
printf '[Service]\nExecStart=/usr/bin/sleep infinity\n' >"$etc/idle.service"
systemctl daemon-reload
start_fresh

left() {
        tlobctl list-bindings -j | jq '[.[] | select(.Name | startswith("suggest-"))] | length'
}

systemctl start known
tlobctl suggest -j known --for=10s >/run/known.json
holds "known: what is a request is found" "$(cat /run/known.json)" 'any(.Name == "handle_request")'
holds "known: and how long it takes" "$(cat /run/known.json)" \
        '.[] | select(.Name == "handle_request") | .P50NSec >= 2000000 and .P50NSec < 30000000 and .Windows > 5 and
        .RunningNSec > 2000000 * .Windows and .SleepingNSec > 0'
holds "known: and the system call that it sleeps in" "$(cat /run/known.json)" 'any(.Start == "syscall:flock")'
holds "known: and the steps between its waits" "$(cat /run/known.json)" \
        '.[] | select(.Start == "event:syscalls:sys_exit_poll") | .Stop == "event:syscalls:sys_enter_poll" and .Windows > 5 and
        .P50NSec >= 2000000 and .P50NSec < 40000000'
holds "known: what never ends, and what waits for work, is none" "$(cat /run/known.json)" \
        'all(.Name != "main" and .Name != "serve" and .Name != "syscall:poll")'
equal "known: nothing is left" "$(left)" 0
check "known: it is as it was" systemctl is-active known

# USDT probes of a library.
printf '[Service]\nEnvironment=LD_LIBRARY_PATH=%s\nExecStart=%s-shared\n' "${server%/*}" "$server" >"$etc/shared.service"
systemctl daemon-reload
systemctl start shared
tlobctl suggest -j shared --for=10s >/run/shared.json
holds "a library: its USDT probes are found" "$(cat /run/shared.json)" \
        '.[] | select(.Start == "usdt:tlobrequest:handle__start") | .Stop == "usdt:tlobrequest:handle__done" and
        (.Executable | endswith("/librequest.so")) and .Windows > 5 and .P50NSec >= 2000000 and .P50NSec < 30000000'
systemctl stop shared
rm "$etc/shared.service"

# Files are replaced while a service runs: it goes on with the old ones, in which stacks are read.
libc=$(ldd "$server" | awk '$1 == "libc.so.6" { print $3 }')
programs=/opt/suggest
mkdir "$programs"
cp "$server" "$server-shared" "${server%/*}/librequest.so" "$libc" "$programs"
for name in server server-shared; do
        printf '[Service]\nEnvironment=LD_LIBRARY_PATH=%s\nExecStart=%s\n' "$programs" "$programs/$name" >"$etc/old-$name.service"
done
systemctl daemon-reload
systemctl start old-server old-server-shared
maps_libc() {
        local pid

        for unit_name in old-server old-server-shared; do
                pid=$(systemctl show -P MainPID "$unit_name")
                grep -q "$programs/libc.so.6" "/proc/$pid/maps" || return 1
        done
}
check "replaced: both have loaded their libc" until_true maps_libc
for name in libc.so.6 librequest.so server; do
        cp -a "$programs/$name" "$programs/$name.new"
        mv "$programs/$name.new" "$programs/$name"
done
tlobctl suggest -j old-server --for=6s >/run/replaced.json 2>/run/replaced.txt
holds "replaced: a function of the program is found, and measured" "$(cat /run/replaced.json)" \
        'any(.Name == "handle_request" and .Executable == "/opt/suggest/server" and .Windows > 5)'
equal "replaced: nothing is to be said of libc, nor of the program" "$(grep -c 'was replaced' /run/replaced.txt)" 0
stacks_are_read() { # but for one in 20
        local unread

        unread=$(sed -n 's/^Note: \([0-9]* of [0-9]*\) stacks could not be read.*/\1/p' "$1")
        [ -z "$unread" ] || [ $((${unread% of *} * 20)) -le "${unread#* of }" ]
}
check "replaced: stacks are read" stacks_are_read /run/replaced.txt
tlobctl suggest -j old-server-shared --for=6s >/run/replaced.json 2>/run/replaced.txt
matches "replaced: a library, of which it is said" "$(cat /run/replaced.txt)" \
        '^Note: /opt/suggest/librequest.so was replaced while old-server-shared.service ran: restart the unit'
equal "replaced: once" "$(grep -c 'was replaced' /run/replaced.txt)" 1
check "replaced: a library, stacks are read" stacks_are_read /run/replaced.txt
holds "replaced: nothing of that library is proposed" "$(cat /run/replaced.json)" \
        'length > 0 and all(.Executable | endswith("/librequest.so") | not)'
systemctl restart old-server-shared
tlobctl suggest -j old-server-shared --for=6s >/run/replaced.json 2>/run/replaced.txt
holds "replaced: restarted, its functions are" "$(cat /run/replaced.json)" \
        'any(.Executable == "/opt/suggest/librequest.so" and .Windows > 5)'
equal "replaced: restarted, nothing is said" "$(grep -c 'was replaced' /run/replaced.txt)" 0
systemctl stop old-server old-server-shared
rm -r "$programs" "$etc"/old-server{,-shared}.service
systemctl daemon-reload

# The drop-in, as it is.
tlobctl suggest known --for=4s >/run/known.txt
sed 's/^/# /' /run/known.txt
mkdir -p "$etc/known.service.d"
sed -n '/^# \/etc/,$p' /run/known.txt >"$etc/known.service.d/50-latency.conf"
systemctl daemon-reload
section=$(sed -n 's/^\[X-Tlob \(.*\)\]$/\1/p' "$etc/known.service.d/50-latency.conf" | head -n 1)
check "known: the drop-in can be used" until_true sh -c "tlobctl show -j 'known.service/$section' | grep -q '\"active\"'"
check "known: tlobd has nothing to say against it" tlobctl verify --unit=known
rm -r "$etc/known.service.d"
systemctl daemon-reload

# ^C ends a step, and what is known is shown; a kill leaves bindings, which the next one removes.
# A shell has what it begins in the background ignore ^C.
interrupt() { # SECONDS...
        local pid status=0 begin=$SECONDS

        env --default-signal=INT tlobctl suggest -j known --for=60s >/run/known.json &
        pid=$!
        for seconds; do
                pause "$seconds"
                kill -INT "$pid"
        done
        wait "$pid" || status=$?
        [ "$status" = 0 ] && [ $((SECONDS - begin)) -lt 30 ]
}
check "^C: it ends in time" interrupt 3 3
holds "^C: what is known is shown" "$(cat /run/known.json)" 'any(.Name == "handle_request")'
equal "^C: nothing is left" "$(left)" 0
not_for_it() {
        tlobctl suggest -j known --for=6s >/run/known.json &
        pause 1
        kill -INT $!
        pause 3
        kill -INT $!
        wait $!
}
check "^C, in the background: it goes on" not_for_it
holds "^C, in the background: to its end" "$(cat /run/known.json)" '.[] | select(.Name == "handle_request") | .Windows > 50'
ended() {
        local pid status=0 begin=$SECONDS

        tlobctl suggest -j known --for=60s >/run/ended.json &
        pid=$!
        pause 2
        kill -TERM "$pid"
        wait "$pid" || status=$?
        [ "$status" = 143 ] && [ $((SECONDS - begin)) -lt 10 ]
}
check "SIGTERM: all of it ends, by that" ended
equal "SIGTERM: nothing was measured any more" "$(cat /run/ended.json)" ""
equal "SIGTERM: nothing is left" "$(left)" 0
tlobctl suggest known --for=10s >/dev/null 2>&1 &
killed=$!
check "a kill: it measures" until_true sh -c "tlobctl list-bindings -j | grep -q suggest-$killed"
kill -KILL $killed
wait $killed
check "a kill: a binding is left" [ "$(left)" -gt 0 ]
tlobctl suggest -j known --for=2s >/dev/null
equal "a kill: the next one removes it" "$(left)" 0
systemctl stop known

# PostgreSQL.
systemctl start "$unit"
runuser -u postgres -- createdb bench
runuser -u postgres -- pgbench -i -q bench 2>/dev/null
runuser -u postgres -- pgbench -c 4 -T 25 -P 1 bench >/run/bench 2>&1 &
bench=$!
pause 6
# Of a file that many processes have, one descriptor is enough.
(ulimit -n 40 && exec tlobctl suggest "$unit" --for=14s) >/run/postgres.txt 2>&1
sed 's/^/# /' /run/postgres.txt
wait $bench
sed 's/^/# /' /run/bench
matches "postgres: queries are found by their USDT probe" "$(cat /run/postgres.txt)" 'usdt:postgresql:query__start +[0-9]+'
matches "postgres: with its own program" "$(cat /run/postgres.txt)" "Executable=/usr/lib/postgresql/$version/bin/postgres"
matches "postgres: no transaction has failed" "$(cat /run/bench)" 'number of failed transactions: 0 '
systemctl stop "$unit"

# A binding.
printf '[X-Tlob request]\nFunction=handle_request\nBudgetSec=1s\n' >>"$etc/known.service"
systemctl daemon-reload
systemctl start known
check "a binding: it has windows" until_true sh -c '[ "$(tlobctl show -j known.service/request | jq ".[0].Windows")" -gt 5 ]'
proposal=$(tlobctl suggest known.service/request)
matches "a binding: a budget is proposed" "$proposal" '^tlobctl set-budget known.service/request [0-9.]+ms$'
check "a binding: which can be set" sh -c "$(grep '^tlobctl' <<<"$proposal")"
systemctl stop known

# What people read.
refuse "a unit that does not run" 1 'known.service does not run' tlobctl suggest known
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\n' >/run/systemd/system/starter.service
systemctl daemon-reload
systemctl start starter
refuse "a unit that has done its work" 1 'starter.service is active, but has no process: name the unit' tlobctl suggest starter
refuse "a unit that is none" 1 'There is no unit nobody.service' tlobctl suggest nobody
refuse "no time" 2 'write 2s to 1h' tlobctl suggest known --for=1ms
systemctl start idle
refuse "a unit that does nothing" 1 'Nothing was found to be measured in idle.service' tlobctl suggest idle --for=2s
matches "nobody may" "$(as_nobody tlobctl suggest idle --for=2s 2>&1)" 'can only be sampled by root'
systemctl stop idle

rm "$etc"/{known,idle}.service
systemctl daemon-reload
finish
