# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Marks of services, the examples of the documentation: from drop-ins, bindings.d, tlobctl and D-Bus; each request
# is a window; what an administrator reads.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
example=$tests/mark-example

printf '[Service]\nType=oneshot\nExecStart=%s 200\n' "$example" >"$etc/marked.service"
mkdir "$etc/marked.service.d"
printf '%s\n' '[X-Tlob request]' 'Mark=request' 'BudgetSec=20ms' '[X-Tlob load]' 'Mark=load' 'BudgetSec=10s' \
        '[X-Tlob first]' 'Start=usdt:tlob:load__end' 'Stop=usdt:tlob:request__begin' 'BudgetSec=10s' \
        '[X-Tlob wrong]' 'Mark=reqest' 'BudgetSec=1s' >"$etc/marked.service.d/tlob.conf"
printf '[Service]\nType=oneshot\nExecStart=%s 100\n[X-Tlob request]\nMark=request\nBudgetSec=20ms\n[X-Tlob batch]\nMark=batch\nBudgetSec=10s\n' \
        "$tests/mark-example-cc" >"$etc/marked-cc.service"
systemctl daemon-reload
start_fresh
mkdir -p /etc/tlob/bindings.d
printf '[Binding everywhere]\nExecutable=%s\nMark=request\nBudgetSec=10s\n' "$example" >/etc/tlob/bindings.d/marks.conf
tlobctl reload 2>/dev/null

field() { # BINDING EXPRESSION
        tlobctl show -j "$1" | jq ".[0] | $2"
}

holds "all but one of the drop-in can be set up" "$(tlobctl verify -j --unit=marked 2>/dev/null)" \
        'length == 4 and (map(select(has("Error"))) | length == 1)'
tlobctl verify --unit=marked 2>&1 | sed 's/^/# /'
holds "marks are listed as such" "$(tlobctl functions -j "$example" 'Mark=*')" \
        'map(.Name) == ["load", "request"] and all(.[]; .Kind == "mark" and .Probe == "emulated")'
matches "and as they are written" "$(tlobctl functions marked 'Mark=*')" '^Mark=request +0x'
refuse "one that a program has not is missing, with near names" 1 \
        "No mark 'reqest' in $example; near names: request" tlobctl verify --unit=marked
equal "its binding has failed" "$(field marked.service/wrong .State)" '"failed"'
equal "a mark is two probes" "$(field marked.service/request '[.Start, .Stop] | join(" ")')" \
        '"usdt:tlob:request__begin usdt:tlob:request__end"'

systemctl start marked
equal "each request is a window" "$(field marked.service/request .Windows)" 200
check "each long one is a violation" [ "$(field marked.service/request .Violations)" -ge 20 ]
matches "all of them with traps" "$(tlobctl show marked.service/request)" 'Without traps: none of 200 windows'
equal "what is not one mark has no such counter" "$(field marked.service/first '.Counters["without-traps"]')" null
equal "a begin and an end by themselves are one" "$(field marked.service/load .Windows)" 1
equal "as is what lies between two marks" "$(field marked.service/first .Windows)" 1
equal "without a unit each is a window, too" "$(field everywhere .Windows)" 200
for name in request load; do
        check "the books of '$name' balance" balanced "marked.service/$name"
done
# On a slow machine other requests are long, too, but do not sleep so long.
end=$(wait_for_entry '.TLOB_BINDING == "marked.service/request" and .TLOB_END != null and
        (.TLOB_SLEEPING_NS | tonumber) > 40000000' -t tlob)
holds "a long request is in the journal" "$end" '.TLOB_END == "stop" and (.TLOB_ELAPSED_NS | tonumber) >= 50000000'
violation=$(wait_for_entry ".TLOB_WINDOW_ID == $(jq .TLOB_WINDOW_ID <<<"$end") and .TLOB_END == null" -t tlob)
holds "and as it was found" "$violation" \
        '.TLOB_BINDING == "marked.service/request" and .TLOB_UNIT == "marked.service" and .TLOB_BUDGET_NS == "20000000" and
        .TLOB_COMM == "mark-example" and (.MESSAGE | test("^marked.service/request: over its 20ms budget"))'
tlobctl show marked.service/request | sed 's/^/# /'

systemctl start marked-cc
equal "C++: each request is a window, also those left by exceptions" "$(field marked-cc.service/request .Windows)" 100
check "C++: each long one is a violation" [ "$(field marked-cc.service/request .Violations)" -ge 10 ]
equal "C++: so is each life of an object" "$(field marked-cc.service/batch .Windows)" 20
for name in request batch; do
        check "C++: the books of '$name' balance" balanced "marked-cc.service/$name"
done

printf '[Service]\nType=oneshot\nExecStart=%s 100\n' "$tests/mark-example-rs" >"$etc/marked-rs.service"
mkdir "$etc/marked-rs.service.d"
printf '%s\n' '[X-Tlob request]' 'Mark=request' 'BudgetSec=20ms' '[X-Tlob job]' 'Mark=job' 'BudgetSec=10s' \
        >"$etc/marked-rs.service.d/tlob.conf"
systemctl daemon-reload
check "Rust: its marks are bound" until_true says marked-rs.service/job "is not running"
systemctl start marked-rs
equal "Rust: each request is a window, however it is left" "$(field marked-rs.service/request .Windows)" 100
check "Rust: each long one is a violation" [ "$(field marked-rs.service/request .Violations)" -ge 10 ]
equal "Rust: and what ends on another thread" "$(field marked-rs.service/job '[.Windows, .Violations] | @csv')" '"100,0"'
for name in request job; do
        check "Rust: the books of '$name' balance" balanced "marked-rs.service/$name"
done

# A service that shares memory with tlobd, as a user who may nothing: most of its windows take no trap. It says how many
# it began, and goes on while tlobd is killed.
printf '[Service]\nUser=daemon\nEnvironment=TLOB_TEST_MARKS=/run/tlob/marks\nExecStart=%s %s\n%s\n' "$tests/joiner" \
        'ready pair:2000000 nap:60000000 turns:500 thread:200000 idle:4000000000 ready pair:2000000 quick' \
        'SystemCallFilter=@system-service' >"$etc/joiner.service"
printf '%s\n' '[X-Tlob request]' 'Mark=request' 'BudgetSec=50ms' >>"$etc/joiner.service"
systemctl daemon-reload
check "joined: its mark is bound" until_true says joiner.service/request "is not running"
systemctl start joiner
# Two million and more: the probes of half of them would be a second's work.
check "joined: its windows are counted" until_true sh -c 'tlobctl show -j joiner.service/request | jq -e ".[0].Windows > 2000000"'
tlobctl show joiner.service/request | sed 's/^/# /'
systemctl kill --signal=KILL tlobd
check "joined: it ends well" until_true sh -c '[ "$(systemctl show -P SubState joiner)" = dead ]'
made=$(journalctl --boot -q -o cat -u joiner | sed -n 's/^result \([0-9]*\) .*/\1/p')
check "joined: tlobd is there again" until_true tlobctl status
equal "joined: each window is counted, also those while tlobd was away" "$(field joiner.service/request .Windows)" "$made"
check "joined: the books balance" balanced joiner.service/request
check "joined: the one that slept is a violation" [ "$(field joiner.service/request .Violations)" -ge 1 ]
holds "joined: nearly all of them without a trap" "$(tlobctl show -j joiner.service/request)" \
        '.[0] | .ProbesNSec < ($made | tonumber) * 200 and .Counters["without-traps"] > .Windows * 0.9 and
        .Counters["without-traps"] < .Windows' --arg made "$made"
matches "joined: which an administrator reads" "$(tlobctl show joiner.service/request)" 'Without traps: 9[0-9]\.[0-9]% of windows'

# A service in Python, which runs already when it gets a budget. It reads numbers from a pipe.
file=/usr/lib/marked-py/marks.so
mkdir "${file%/*}"
mkfifo /run/marked-py
exec {numbers}<>/run/marked-py
check "Python: a file of marks is made" python3 -m tlob -o "$file" request job:key
holds "Python: it has them" "$(tlobctl functions -j "$file" 'Mark=*')" 'map(.Name) == ["job", "request"]'
printf '[Service]\nExecStart=/usr/bin/python3 %s %s\nStandardInput=file:/run/marked-py\n' "$tests/mark.py" "$file" \
        >"$etc/marked-py.service"
systemctl daemon-reload
systemctl start marked-py

# It does so many, and all have been done.
do_requests() {
        local before

        before=$(journalctl --boot -q -o cat -u marked-py | grep -c '^Did ')
        echo "$1" >&"$numbers"
        until_true sh -c "[ \$(journalctl --boot -q -o cat -u marked-py | grep -c '^Did ') -gt $before ]"
}

has_probes() { # PROCESSES
        [ "$(counter marked-py.service/request processes)" -ge "$1" ] && [ "$(counter marked-py.service/job processes)" -ge "$1" ]
}

check "Python: it works without a budget" do_requests 10
mkdir "$etc/marked-py.service.d"
printf '%s\n' '[X-Tlob request]' "Executable=$file" 'Mark=request' 'BudgetSec=20ms' \
        '[X-Tlob job]' "Executable=$file" 'Mark=job' 'BudgetSec=20ms' >"$etc/marked-py.service.d/tlob.conf"
systemctl daemon-reload
check "Python: the process gets probes" until_true has_probes 1
check "Python: and works with one" do_requests 40
holds "Python: the marks of the service are listed" "$(tlobctl functions -j marked-py 'Mark=*')" \
        'map(.Name) == ["job", "request"] and all(.[]; .Executable == $file)' --arg file "$file"
matches "Python: and in which file they are" "$(tlobctl functions marked-py 'Mark=re*')" "^$file +Mark=request +0x"
refuse "Python: others are not there" 1 "No mark of /usr/bin/python3.* and 1 library matches 'Mark=x\*'" \
        tlobctl functions marked-py 'Mark=x*'
equal "Python: each request is a window, also those left by exceptions" "$(field marked-py.service/request .Windows)" 40
equal "Python: so is each job, however many there are at a time" "$(field marked-py.service/job .Windows)" 40
for name in request job; do
        check "Python: long ones of '$name' are violations" [ "$(field "marked-py.service/$name" .Violations)" -ge 4 ]
        check "Python: the books of '$name' balance" balanced "marked-py.service/$name"
done
end=$(wait_for_entry '.TLOB_BINDING == "marked-py.service/request" and .TLOB_END != null and
        (.TLOB_SLEEPING_NS | tonumber) > 40000000' -t tlob)
holds "Python: a long request is in the journal" "$end" '.TLOB_END == "stop" and (.TLOB_ELAPSED_NS | tonumber) >= 50000000 and
        .TLOB_UNIT == "marked-py.service"'
systemctl restart marked-py
check "Python: the next process gets probes" until_true has_probes 2
check "Python: and tlobd restarts" systemctl restart tlobd
check "Python: they are there again" until_true has_probes 1
check "Python: another go" do_requests 40
equal "Python: none is missed" "$(field marked-py.service/request .Windows) $(field marked-py.service/job .Windows)" "80 80"
equal "Python: it knows nothing of all this" "$(journalctl --boot -q -o cat -u marked-py | grep -ci tlob)" 0
systemctl stop marked-py

# At run time, by both ways.
check "tlobctl adds one" tlobctl add-binding added --executable="$example" --mark=request --budget=10s
check "as does D-Bus" busctl --quiet call org.tlob1 /org/tlob1 org.tlob1.Manager AddBinding 'sa{sv}t' called 3 \
        Executable s "$example" Mark s load BudgetSec s 10s 0
systemctl start marked
equal "they measure" "$(field added .Windows) $(field called .Windows)" "200 1"
check "tlobd restarts" systemctl restart tlobd
check "they are there again" until_true sh -c "tlobctl show -j added | grep -q '\"active\"'"
systemctl start marked
equal "and go on" "$(field added .Windows)" 400

# What people read.
refuse "a file without any" 1 "There are no marks in /usr/bin/sleep" \
        tlobctl verify --executable=/usr/bin/sleep --mark=request --budget=1s
refuse "what is no name" 1 "Mark=a-b is not the name of a mark" \
        tlobctl verify --executable="$example" --mark=a-b --budget=1s
refuse "the kernel's monitor" 1 "[Bb]ack end 'kernel'" \
        tlobctl verify --executable="$example" --mark=request --budget=1s --backend=kernel
refuse "a pattern that nothing matches" 1 "No mark of $example matches 'Mark=x\*'" tlobctl functions "$example" 'Mark=x*'

tlobctl remove-binding added called
rm -r "$etc"/marked{,-py,-rs}.service* "$etc/marked-cc.service" /usr/lib/marked-py /etc/tlob/bindings.d/marks.conf
systemctl daemon-reload
finish
