# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Requests of an event loop, told apart by a key: nginx as a proxy, whose one worker has many requests
# open at once, against what it logs itself; through a restart and a kill of tlobd, and an exit with
# requests open. And marks with keys, in a service that ends windows in another thread.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
log=/var/log/nginx/times.log
tests=/usr/libexec/tlob-tests

mkdir -p "$etc/nginx.service.d"
printf '%s\n' '[X-Tlob request]' 'Start=ngx_http_process_request' 'Stop=ngx_http_free_request' 'Key=arg1' \
        'BudgetSec=400ms' '[X-Tlob wrong]' 'Start=ngx_http_create_request' 'Stop=ngx_http_free_request' 'Key=arg1' \
        'BudgetSec=1h' >"$etc/nginx.service.d/50-latency.conf"
printf '[Service]\nExecStart=%s %s\n[X-Tlob ball]\nMark=ball\nBudgetSec=20ms\n' "$tests/juggler" \
        'pass:200 nap:50000000 lose:3' >"$etc/juggler.service"
# The upstream takes as many seconds as the path says.
cat >"$run/upstream" <<'EOF'
#!/bin/sh
read -r _ path _
sleep "${path#/}"
printf 'HTTP/1.0 200 OK\r\n\r\nat last'
EOF
chmod +x "$run/upstream"
printf '%s\n' 'log_format times "$request_time $uri";' 'server { listen 8080; access_log '"$log"' times;' \
        'location / { proxy_pass http://127.0.0.1:8081; } }' >/etc/nginx/conf.d/tlob-test.conf
sed -i 's/^worker_processes.*/worker_processes 1;/' /etc/nginx/nginx.conf
systemd-socket-activate --listen=127.0.0.1:8081 --accept --inetd "$run/upstream" 2>/dev/null &
upstream=$!
systemctl daemon-reload
start_fresh

# get SECONDS: one request, which the upstream takes so long for.
get() {
        local web

        exec {web}<>/dev/tcp/localhost/8080 && printf 'GET /%s HTTP/1.0\r\n\r\n' "$1" >&"$web" && cat <&"$web"
        exec {web}>&-
}

# crowd NUMBER SECONDS: so many at once.
crowd() {
        local pids=()

        for ((i = 0; i < $1; i++)); do
                get "$2" >/dev/null &
                pids+=($!)
        done
        wait "${pids[@]}"
}

holds "it can be set up" "$(tlobctl verify -j --unit=nginx)" '.[0].Key == "arg1" and .[0].Backend == "bpf"'
tlobctl verify --unit=nginx | sed 's/^/# /'
systemctl start nginx
until_true sh -c 'tlobctl show -j nginx.service/request | grep -q "\"active\""'
answers() {
        get 0 | grep -q 'at last'
}
check "the upstream answers" until_true answers
tlobctl reset-statistics nginx.service/request
: >"$log"
nginx -s reopen 2>/dev/null
get 0 >/dev/null
until_true test -s "$log"

# All of them in one thread.
crowd 30 0.2 &
short=$!
crowd 6 0.6
wait $short
equal "each request is a window, however many are open" "$(binding nginx.service/request Windows)" 37
equal "as nginx has logged" "$(grep -c . "$log")" 37
# Its clock begins with the connection, and has milliseconds. On a busy machine the short ones may be long, too.
logged_from() {
        awk -v from="$1" '$1 >= from { n++ } END { print n + 0 }' "$log"
}
late=$(binding nginx.service/request Violations)
echo "# violations: $late, from 0.4 s on as nginx has logged them: $(logged_from 0.4)"
check "the six long ones are violations" [ "$late" -ge 6 ]
check "as is each that nginx has logged as too long" [ "$late" -ge "$(logged_from 0.45)" ]
check "and no other" [ "$late" -le "$(logged_from 0.39)" ]
check "the books balance" balanced nginx.service/request
longest=$(sort -rn "$log" | head -n 1 | cut -d' ' -f1)
measured=$(binding nginx.service/request MaxNSec)
echo "# the longest, as nginx has logged it: $longest s; as a window: $measured ns"
# It reads the clock once in a round of its loop, and may be kept from going on then. The upstream's time is in both.
check "the longest is as long as nginx says" \
        awk -v logged="$longest" -v ns="$measured" 'BEGIN { exit !(ns >= 0.6e9 && logged - ns / 1e9 > -1) }'
all_are_told() {
        tlobctl violations -j -b nginx.service/request |
                jq -e "length == ([$late, 20] | min)"' and all(has("TookNSec"))'
}
until_true all_are_told
# They are found while they are open. One that ends as soon as it is too long may be found at its end.
holds "violations do not make up states" "$(tlobctl violations -j -b nginx.service/request)" \
        "length == ([$late, 20] | min)"' and all(.State == "unknown" and .RunningNSec == null and .SleepingNSec == null and
        .Comm == "nginx" and .Unit == "nginx.service" and .ElapsedNSec >= 400000000 and
        (.ElapsedNSec < .TookNSec or .TookNSec < 500000000))'
end=$(wait_for_entry '.TLOB_BINDING == "nginx.service/request" and .TLOB_END != null and
        (.TLOB_ELAPSED_NS | tonumber) >= 600000000' -t tlob)
holds "nor do ends in the journal" "$end" '.TLOB_END == "stop" and .TLOB_STATE == "unknown" and .TLOB_RUNNING_NS == null and
        (.TLOB_ELAPSED_NS | tonumber) >= 600000000 and (.MESSAGE | test("running|sleeping") | not)'
jq -r .MESSAGE <<<"$end" | sed 's/^/# /'
tlobctl violations -b nginx.service/request | sed 's/^/# /'
tlobctl show nginx.service/request | sed 's/^/# /'

sum=$(tlobctl metrics | sed -n 's/^tlob_window_seconds_sum{binding="nginx.service.request".* //p')
elapsed=$(binding nginx.service/request ElapsedNSec)
check "their lengths add up for Prometheus: $sum s, $elapsed ns" awk -v sum="$sum" -v ns="$elapsed" \
        -v longest="$measured" 'BEGIN { d = sum - ns / 1e9
                exit !(sum > 30 * 0.2 + 6 * 0.6 && ns <= 37 * longest && d > -0.001 && d < 0.001) }'

# What begins with the connection does not end with the request.
does_not_match() {
        tlobctl show -j nginx.service/wrong | jq -r '.[0].StateReason' | grep -q '^No end has the key of a begin'
}
check "keys that never match are remarked" until_true does_not_match

# Windows that are open go on.
tlobctl reset-statistics nginx.service/request
crowd 10 1 &
crowd=$!
until_true sh -c '[ "$(tlobctl show -j nginx.service/request | jq .[0].Counters.open)" = 10 ]'
systemctl restart tlobd
wait $crowd
equal "a restart of tlobd loses none" "$(binding nginx.service/request Windows)" 10
equal "nor a violation" "$(binding nginx.service/request Violations)" 10
crowd 10 1 &
crowd=$!
until_true sh -c '[ "$(tlobctl show -j nginx.service/request | jq .[0].Counters.open)" = 10 ]'
kill -KILL "$(systemctl show -P MainPID tlobd)"
wait $crowd
until_true tlobctl status >/dev/null
equal "a kill of tlobd neither" "$(binding nginx.service/request Windows)" 20
check "the books balance" balanced nginx.service/request

# What is open ends with its process, and its place is free.
crowd 5 3 2>/dev/null &
crowd=$!
until_true sh -c '[ "$(tlobctl show -j nginx.service/request | jq .[0].Counters.open)" = 5 ]'
systemctl kill --signal=KILL nginx
until_true binding_has nginx.service/request Counters.exit 5
equal "windows end with their process" "$(counter nginx.service/request exit)" 5
check "the books balance" balanced nginx.service/request
wait $crowd

systemctl start juggler
until_true sh -c '[ "$(systemctl show -P SubState juggler)" = dead ]'
equal "marks with a key end in another thread" "$(counter juggler.service/ball in-budget)" 200
equal "those that were lost end with the program" "$(counter juggler.service/ball exit)" 3
equal "one was too long" "$(binding juggler.service/ball Violations)" 1
# While one tlobd takes over from another, each begin is told by the probes of both. That is not a begin
# with a key that is in use, of which there are as many here.
printf '[Service]\nExecStart=%s again:4000\nStandardOutput=file:%s\n[X-Tlob ball]\nMark=ball\nBudgetSec=10s\n' \
        "$tests/juggler" "$run/again" >"$etc/again.service"
systemctl daemon-reload
until_true sh -c 'tlobctl show -j again.service/ball | grep -q "\"Backend\":\"bpf\""'
systemctl start again
for ((i = 0; i < 2; i++)); do
        pause 0.5
        systemctl restart tlobd
done
until_true sh -c '[ "$(systemctl show -P SubState again)" = dead ]'
equal "each end is one, whoever tells of it" "$(counter again.service/ball in-budget)" 4000
echo "# begun $(counter again.service/ball starts), abandoned $(counter again.service/ball abandoned)"
check "and so is each begin, but for one at a time" [ "$(counter again.service/ball starts)" -ge 7990 ]
longest=$(binding again.service/ball MaxNSec)
check "and no window is longer than it is: $longest ns, $(cat "$run/again")" \
        [ "$longest" -le "$(sed -n 's/^longest //p' "$run/again")" ]

# More windows than some kernels have timers for.
printf '[Service]\nExecStart=%s lose:2000 nap:20000000000\n[X-Tlob ball]\nMark=ball\nBudgetSec=100ms\n' "$tests/juggler" \
        >"$etc/leaker.service"
systemctl daemon-reload
until_true sh -c 'tlobctl show -j leaker.service/ball | grep -q "\"Backend\":\"bpf\""'
systemctl start leaker
all_are_late() {
        [ "$(binding leaker.service/ball Violations)" = 2001 ]
}
check "each that is late is found while it is open" until_true all_are_late
equal "all of them are open" "$(counter leaker.service/ball open)" 2001
systemctl stop leaker
equal "and end with it" "$(counter leaker.service/ball exit)" 2001

holds "marks are listed" "$(tlobctl functions -j "$tests/juggler" 'Mark=*')" 'map(.Name) | index("ball") != null'
refuse "a budget of a state is refused" 1 "of a window that any thread may end only the length is known" \
        tlobctl add-binding bad --unit=nginx.service --start=ngx_http_process_request --stop=ngx_http_free_request \
        --key=arg1 --sleeping-budget=1ms
refuse "a function without such an argument is refused" 1 "only the first 6 arguments" \
        tlobctl add-binding bad --unit=nginx.service --start=ngx_http_process_request --stop=ngx_http_free_request \
        --key=arg9 --budget=1s

kill $upstream
finish
