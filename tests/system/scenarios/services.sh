# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Real services, started by their own unit files, with budgets in drop-ins and a cause made on
# purpose: violations name the unit, and the three times name the cause. nginx: its own program, found
# by its ExecStart=. PostgreSQL: one function of its server, slow by a lock, by work, and for want of a
# CPU. redis: one command of its server, among those of a benchmark.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system

drop_in() {
        mkdir -p "$etc/$1.d"
        printf '%s\n' "${@:2}" >"$etc/$1.d/50-latency.conf"
}

violations() {
        tlobctl violations -j -b "$1"
}

ends_of() {
        journalctl --boot -q -o json -t tlob MESSAGE_ID=b712727f10d94a359d0790c76c950ef5 TLOB_BINDING="$1" |
                jq -s 'map({running: (.TLOB_RUNNING_NS | tonumber), waiting: (.TLOB_WAITING_NS | tonumber),
                        sleeping: (.TLOB_SLEEPING_NS | tonumber), elapsed: (.TLOB_ELAPSED_NS | tonumber),
                        unit: .OBJECT_SYSTEMD_UNIT})'
}

# dominated BINDING STATE: the last completed violation spent most of its time so.
dominated() {
        ends_of "$1" | jq -e --arg state "$2" 'length > 0 and (last | .[$state] > 0.6 * .elapsed and
                .running + .waiting + .sleeping == .elapsed)'
}

# nginx.
drop_in nginx.service '[X-Tlob request]' 'Function=ngx_http_core_run_phases' 'BudgetSec=1s' \
        '[X-Tlob any]' 'Function=ngx_http_handler' 'BudgetSec=1us'
systemctl daemon-reload
start_fresh
check "nginx: verify" tlobctl verify --unit=nginx
systemctl start nginx
until_true sh -c 'tlobctl show -j nginx.service/request | grep -q "\"active\""'
get() {
        exec {web}<>/dev/tcp/localhost/80 && printf 'GET / HTTP/1.0\r\n\r\n' >&"$web" && cat <&"$web"
        exec {web}>&-
}
check "nginx: it answers" grep -q 'Welcome to nginx' <(get)
for ((i = 1; i < 100; i++)); do
        get >/dev/null
done
equal "nginx: each request is a window" "$(tlobctl show -j nginx.service/request | jq -c '.[0] | [.Windows, .Violations]')" '[100,0]'
strace -o "$run/strace" -e trace=openat -e inject=openat:delay_enter=200000 -p "$(pgrep -f 'nginx: worker' | xargs)" 2>"$run/tracer" &
tracer=$!
wait_for_line "$run/tracer" attached
pause 0.5
get >/dev/null
kill $tracer
wait $tracer 2>/dev/null
check "nginx: a file that is opened slowly makes it long" [ "$(binding nginx.service/request MaxNSec)" -gt 190000000 ]
holds "nginx: violations name the unit and its program" "$(violations nginx.service/any)" \
        'length > 0 and all(.Unit == "nginx.service" and .Executable == "/usr/sbin/nginx" and .Comm == "nginx")'
matches "nginx: they stand among its lines" "$(journalctl --boot -q -u nginx -o cat)" \
        '^nginx.service/any: over its 1us budget in nginx'

# As tlob.binding(5) says: behind a proxy the function returns long before the answer is there.
printf 'server { listen 8080; location / { proxy_pass http://127.0.0.1:8081; } }\n' >/etc/nginx/conf.d/tlob-test.conf
systemd-socket-activate --listen=127.0.0.1:8081 --accept --inetd \
        sh -c 'sleep 0.5; printf "HTTP/1.0 200 OK\r\n\r\nat last"' 2>/dev/null &
backend=$!
systemctl reload nginx
proxied() {
        exec {web}<>/dev/tcp/localhost/8080 && printf 'GET / HTTP/1.0\r\n\r\n' >&"$web" && cat <&"$web"
        exec {web}>&-
}
# Until nginx has read its configuration anew, it answers itself.
is_proxied() {
        proxied | grep -q 'at last'
}
tlobctl reset-statistics nginx.service/request
check "nginx: a proxied request is answered after half a second" until_true is_proxied
holds "nginx: and was a short window: not what the client waited for" "$(tlobctl show -j nginx.service/request)" \
        '.[0].Windows >= 1 and .[0].MaxNSec < 250000000'
kill $backend
rm /etc/nginx/conf.d/tlob-test.conf
check "nginx: reload" systemctl reload nginx
until_true grep -q 'Welcome' <(get)
get >/dev/null
holds "nginx: new workers are measured" "$(tlobctl show -j nginx.service/request)" '.[0].Windows >= 2 and .[0].State == "active"'
check "nginx: restart" systemctl restart nginx
get >/dev/null
holds "nginx: after a restart, too" "$(tlobctl show -j nginx.service/request)" '.[0].Windows >= 3'
systemctl stop nginx

# A program in C++, by names as in the source, which can have blanks.
printf '[Service]\nType=oneshot\nExecStart=/usr/bin/apt-get --version\n' >/etc/systemd/system/cpp.service
drop_in cpp.service '[X-Tlob write]' 'Executable=libstdc++.so.6' \
        'Function=std::ostream::write(char const*, long)' 'BudgetSec=1s'
systemctl daemon-reload
cpp_is_known() {
        tlobctl show -j cpp.service/write | jq -e '.[0].StartOffset > 0'
}
check "C++: a function is found by its name in the source" until_true cpp_is_known
check "C++: also on the command line" tlobctl add-binding cpp --executable=libstdc++.so.6 \
        --function='std::ostream::flush()' --budget=1s
systemctl start cpp.service
holds "C++: and measured" "$(tlobctl show -j cpp | jq '.[0].Windows')" '. > 0'
tlobctl remove-binding cpp

# redis, under the load of its own benchmark, in its own sandbox: some 50000 commands a second, for which the probes
# take about half a CPU.
drop_in redis-server.service '[X-Tlob command]' 'Function=processCommand' 'BudgetSec=100ms' 'CPULimit=infinity' \
        '[X-Tlob sync]' 'Executable=libc.so.6' 'Function=fdatasync' 'BudgetSec=infinity'
systemctl daemon-reload
holds "redis: its functions are listed, without rights" \
        "$(as_nobody tlobctl functions -j redis-server 'process*Command')" \
        'map(.Function) | index("processCommand") != null'
check "redis: verify" tlobctl verify --unit=redis-server
check "redis: it starts" systemctl start redis-server
check "redis: and is active" until_true sh -c 'tlobctl show -j redis-server.service/command | grep -q "\"active\""'
check "redis: its benchmark" redis-benchmark -q -n 20000 -c 20 -t set,get
processed=$(redis-cli info stats | tr -d '\r' | sed -n 's/^total_commands_processed://p')
equal "redis: each command is a window, by its own count" "$(tlobctl show -j redis-server.service/command | jq '.[0].Windows')" \
        $((processed + 1))
redis-cli config set appendonly yes >/dev/null
redis-cli config set appendfsync always >/dev/null
redis-cli set key value >/dev/null
holds "redis: syncs of this unit are counted" "$(tlobctl show -j redis-server.service/sync)" '.[0].Windows > 0'
loop() {
        redis-cli eval 'local i = 0; while i < 100000000 do i = i + 1 end' 0 >/dev/null
        pause 0.1
        dominated redis-server.service/command running
}
check "redis: a script that loops is running" until_true loop
# In microseconds, of the command alone.
slow=$(redis-cli slowlog get 1 | sed -n 3p)
holds "redis: it took what its own log of slow commands says, or little more" \
        "$(violations redis-server.service/command)" \
        '.[0].TookNSec >= $slow * 1000 and .[0].TookNSec < $slow * 1200' --argjson slow "$slow"
holds "redis: the unit is the right one" "$(violations redis-server.service/command)" \
        'length > 0 and all(.Unit == "redis-server.service" and .Comm == "redis-server")'
systemctl stop redis-server

# PostgreSQL.
version=$(ls /usr/lib/postgresql)
unit=postgresql@$version-main.service
drop_in "$unit" '[X-Tlob query]' 'Function=standard_ExecutorRun' 'BudgetSec=100ms'
systemctl daemon-reload
tlobctl reload >/dev/null 2>&1
matches "postgres: ExecStart= is a script, and it is said what to write" \
        "$(tlobctl show -j "$unit/query" | jq -r '.[0].StateReason')" 'script.*Write Executable='
drop_in "$unit" '[X-Tlob query]' "Executable=/usr/lib/postgresql/$version/bin/postgres" 'Function=standard_ExecutorRun' \
        'BudgetSec=100ms' '[X-Tlob sync]' 'Executable=libc.so.6' 'Function=fdatasync' 'BudgetSec=infinity'
systemctl daemon-reload
check "postgres: with its program it waits" until_true sh -c "tlobctl show -j $unit/query | grep -q waiting"
check "postgres: it starts" systemctl start "$unit"
check "postgres: and is active" until_true sh -c "tlobctl show -j $unit/query | grep -q '\"active\"'"

sql() {
        runuser -u postgres -- psql -qAt -c "$1" 2>&1
}
# A process for each connection: the probes in its libraries come some milliseconds after it.
check "postgres: a table" sql 'SELECT pg_sleep(0.05); CREATE TABLE t AS SELECT 1 AS id, 0 AS x'
equal "postgres: what is quick is no violation" "$(violations "$unit/query" | jq length)" 0
holds "postgres: syncs of this unit are counted" "$(tlobctl show -j "$unit/sync")" '.[0].Windows > 0 and .[0].Violations == 0'

# A row that someone else holds.
runuser -u postgres -- psql -qAt >/dev/null <<'END' &
BEGIN; UPDATE t SET x = 1; SELECT pg_sleep(0.6); COMMIT;
END
holder=$!
until_true sh -c "tlobctl violations -j -b $unit/query | jq -e 'length > 0'"
sql 'UPDATE t SET x = 2' >/dev/null
wait $holder
check "postgres: a lock is sleeping" until_true dominated "$unit/query" sleeping
holds "postgres: the unit is the right one" "$(violations "$unit/query")" 'all(.Unit == $unit)' --arg unit "$unit"

# Work; on a machine that has something else to do, too, it may have to wait for half of the time.
work() {
        sql 'SELECT sum(sqrt(i)) FROM generate_series(1, 4000000) i' >/dev/null
        pause 0.1
        dominated "$unit/query" running
}
check "postgres: work is running" until_true work

# The same work, and no CPU to do it.
if grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
        systemctl set-property --runtime "$unit" CPUQuota=10%
        sql 'SELECT sum(sqrt(i)) FROM generate_series(1, 1000000) i' >/dev/null
        check "postgres: a CPU quota is waiting" until_true dominated "$unit/query" waiting
else
        # In sessions of their own, since the kernel can share out the CPU by session.
        pids=()
        for ((i = 0; i < 8; i++)); do
                setsid taskset -c 0 sh -c 'while :; do :; done' &
                pids+=($!)
        done
        taskset -apc 0 "$(head -n1 "/var/lib/postgresql/$version/main/postmaster.pid")" >/dev/null
        sql 'SELECT sum(sqrt(i)) FROM generate_series(1, 500000) i' >/dev/null
        kill "${pids[@]}"
        check "postgres: a crowded CPU is waiting" until_true dominated "$unit/query" waiting
fi
holds "postgres: every violation has ended, and the books balance" \
        "$(tlobctl show -j "$unit/query" | jq '.[0].Counters')" \
        '.starts == ."in-budget" + .violated + .open + .exit + .exec + .abandoned + .removed + ."over-limit"'

systemctl stop "$unit"
check "postgres: it waits when it is stopped" until_true sh -c "tlobctl show -j $unit/query | grep -q waiting"
rm -r "$etc/nginx.service.d" "$etc/redis-server.service.d" "$etc/$unit.d"
systemctl daemon-reload
finish
