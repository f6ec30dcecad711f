# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Files as the processes of a unit see them: below RootDirectory=, or where something else is mounted on a path. And
# what is said when no process of a unit has the file that is bound.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
victim=$tests/victim
jail=/srv/jail
nap=$'[X-Tlob nap]\nExecutable=libc.so.6\nFunction=clock_nanosleep\nBudgetSec=10s\n'

# A system of its own: a program with its loader and its libraries, which are other files than the machine's.
libc=$(ldd "$victim" | awk '$1 == "libc.so.6" { print $3 }')
libc=$(realpath "$libc")
for file in "$victim" $(ldd "$victim" | grep -o '/[^ ]*'); do
        install -D "$(realpath "$file")" "$jail$file"
done
mkdir -p "$jail/etc"
ldconfig -r "$jail" 2>/dev/null
jailed=$(realpath "$jail$(ldd "$victim" | awk '$1 == "libc.so.6" { print $3 }')")

# Both nap again and again: a library gets its probes when a process of the unit has it.
cat >"$etc/jailed.service" <<END
[Service]
RootDirectory=$jail
ExecStart=$victim repeat:100000 ( sleep:50000000 )
$nap
END
cat >"$etc/mounted.service" <<END
[Service]
BindReadOnlyPaths=$jailed:$libc
ExecStart=$victim sleep:1000000 repeat:100000 ( sleep:50000000 )
$nap
END
cat >"$etc/elsewhere.service" <<END
[Service]
ExecStart=/usr/bin/sleep infinity
[X-Tlob a]
Executable=$victim
Function=victim_a
BudgetSec=1s
END
mkdir -p /opt/wrapped
cp /usr/bin/yes /opt/wrapped/true
mkfifo "$run/full"
exec {full}<>"$run/full"
cat >"$etc/wrapped.service" <<END
[Service]
Environment=PATH=/opt/wrapped
ExecStart=$victim exec
StandardOutput=file:$run/full
[X-Tlob a]
Function=victim_a
BudgetSec=1s
END
cat >"$etc/script.service" <<END
[Service]
ExecStart=/opt/wrapped/start
[X-Tlob a]
Function=main
BudgetSec=1s
END
printf '#!/bin/sh\nexec /usr/bin/sleep infinity\n' >/opt/wrapped/start
chmod +x /opt/wrapped/start
systemctl daemon-reload
start_fresh

# What is only there is found there.
install -D "$victim" "$jail/opt/only"
printf '[Service]\nRootDirectory=%s\nExecStart=/opt/only sleep:1000000000000\n' $jail >"$etc/only.service"
systemctl daemon-reload
matches "the functions of a unit with RootDirectory= can be had before it runs" \
        "$(tlobctl functions only.service victim_a)" victim_a
systemctl start only
matches "the functions of a unit with RootDirectory= are those of its program" \
        "$(tlobctl functions only.service victim_a)" victim_a
matches "and of its libraries" "$(tlobctl functions --libraries only.service clock_nanosleep)" 'clock_nanosleep'
systemctl stop only

# RootDirectory=: before it runs, as well as then.
equal "the library of a unit with RootDirectory= is found before it runs" \
        "$(binding jailed.service/nap Executable)" "$jailed"
equal "and its binding waits for the unit" "$(binding jailed.service/nap StateReason)" \
        "jailed.service is not running"
equal "which is as it should be" "$(tlobctl is-ok jailed.service/nap)" ok
systemctl start jailed.service
check "it is measured when it runs" until_true has_windows jailed.service/nap 1
check "and nothing is wrong" binding_has jailed.service/nap StateReason ""
equal "it is the same file when it runs" "$(binding jailed.service/nap Executable)" "$jailed"
systemctl stop jailed.service
windows=$(binding jailed.service/nap Windows)
systemctl start jailed.service
check "and after a restart" until_true has_windows jailed.service/nap $((windows + 1))

# Another file is mounted in its place, which is only seen when it runs.
systemctl start mounted.service
check "what is mounted for a unit is found when it has started" until_true has_windows mounted.service/nap 1
check "and nothing is wrong" binding_has mounted.service/nap StateReason ""

# A file that nobody there runs.
systemctl start elsewhere.service
check "a binding that nobody can reach says so" until_true says elsewhere.service/a \
        "^No process of elsewhere.service has loaded $victim; its main process runs /usr/bin/sleep$"
equal "and is active all the same" "$(binding elsewhere.service/a State)" active
pause 8
equal "it is logged once" \
        "$(journalctl --boot -u tlobd -o cat | grep -c "'elsewhere.service/a' measures nothing\\.")" 1
equal "and nobody says that it is well" "$(tlobctl is-ok elsewhere)" unmeasured

# A wrapper becomes another program.
systemctl start wrapped.service
check "of a wrapper, the program that really runs is named" until_true says wrapped.service/a \
        "ExecStart=; its main process runs /opt/wrapped/true: restart the unit if its ExecStart= was changed, else write Executable=/opt/wrapped/true"
systemctl start script.service
check "of a script, too" until_true says script.service/a \
        "not an ELF file but a script.* \(its main process runs /usr/bin/sleep\)\. Write Executable="

# An upgrade while it runs: what is started is that program, and no longer systemd's own, which becomes it.
cp "$victim" "$run/upgraded"
cat >"$etc/upgraded.service" <<END
[Service]
Type=exec
ExecStart=/opt/upgraded sleep:0 say:x
StandardInput=file:$run/never
[X-Tlob a]
Function=victim_a
BudgetSec=1s
END
cp "$victim" /opt/upgraded
systemctl daemon-reload
systemctl start upgraded.service
check "before an upgrade, nothing is wrong" until_true binding_has upgraded.service/a StateReason ""
cp "$run/upgraded" /opt/new
mv /opt/new /opt/upgraded
systemctl restart tlobd
check "a unit that runs what was there before an upgrade is measured in that" until_true \
        says upgraded.service/a "upgraded.service still runs the old version of /opt/upgraded.*both are measured"
matches "its functions are those of what is there now" "$(tlobctl functions upgraded.service victim_a)" victim_a
systemctl restart upgraded.service
check "and then nothing is wrong" until_true binding_has upgraded.service/a StateReason ""

systemctl stop jailed mounted elsewhere wrapped script upgraded

# A container, whose manager sees the machine's files.
container="systemd-nspawn --quiet --directory=$jail --keep-unit --register=no --private-network --console=pipe --as-pid2"
cat >"$etc/contained.service" <<END
[Service]
Type=oneshot
Delegate=yes
KillMode=mixed
ExecStart=/usr/bin/$container /opt/only repeat:3 ( a( sleep:20000000 ) )
[X-Tlob a]
Executable=$jail/opt/only
Function=victim_a
BudgetSec=10ms
[X-Tlob program]
Function=victim_a
BudgetSec=10ms
END
systemctl daemon-reload
check "what it names is ready before it starts" until_true says contained.service/a "contained.service is not running"
check "a container runs" timeout 60 systemctl start contained
equal "what runs in it is measured" "$(binding contained.service/a Violations)" 3
matches "what starts it is not meant" "$(binding contained.service/program StateReason)" \
        'The program is that of the container of contained.service, and none runs in its cgroup yet'

# What is named as the container has it, too: a program that is not on the machine, and a library that is, and is
# another one there. What starts the container has loaded the machine's.
cat >"$etc/inner.service" <<END
[Service]
Delegate=yes
KillMode=mixed
ExecStart=/usr/bin/$container /opt/only sleep:500000000 repeat:100000 ( a( sleep:20000000 ) )
[X-Tlob a]
Executable=/opt/only
Function=victim_a
BudgetSec=10ms
$nap
[X-Tlob program]
Function=victim_a
BudgetSec=10ms
[X-Tlob both]
Executable=/usr/bin/both
Function=victim_a
BudgetSec=10ms
END
cp /usr/bin/sleep /usr/bin/both
install -D "$victim" "$jail/usr/bin/both"
sed '/^\[X-Tlob a]/,$ d; s/ --as-pid2//' "$etc/inner.service" >"$etc/first.service"
printf '[X-Tlob program]\nFunction=victim_a\nBudgetSec=10ms\n' >>"$etc/first.service"
systemctl daemon-reload
check "what is only in a container waits for it" until_true says inner.service/a \
        "^/opt/only is looked for in the container of inner.service, and none runs in its cgroup yet$"
check "as does what is another program there" until_true says inner.service/both "none runs in its cgroup yet$"
check "and so does a library there" until_true says inner.service/nap "^libc.so.6 is looked for in the container"
systemctl start inner
check "it is measured when the container runs" until_true has_windows inner.service/a 3
check "as is its library" until_true has_windows inner.service/nap 3
check "a program that is another one on the machine is the one in the container" until_true \
        binding_has inner.service/both State active
# A process of the machine with a file of that name, which is another one.
cp "$victim" /opt/only
/opt/only sleep:60000000000 &
other=$!
equal "a file of that name elsewhere is none of its users" "$(tlobctl show inner.service/a 2>&1 | grep -c 'outside inner.service')" 0
kill $other
rm /opt/only
equal "nothing was said to have failed" "$(journalctl --boot -q -t tlob -o cat | grep -c '^\(inner\|contained\).service.*not measured')" 0
check "its first program is not taken for the one to be measured" until_true says inner.service/program \
        "^The first program in the container of inner.service is [^ ]*/systemd-nspawn, which runs others: write"
equal "nor said to be well" "$(tlobctl is-ok inner.service/program)" unmeasured
matches "its functions are not offered without a word" \
        "$(tlobctl functions inner.service 2>&1)" 'inner.service starts a container by .*, of which no program is seen'
windows=$(binding inner.service/a Windows)
systemctl restart inner
check "and when it is started again" until_true has_windows inner.service/a $((windows + 3))
systemctl stop inner
matches "without a container, there are no functions" "$(tlobctl functions inner.service 2>&1)" \
        "inner.service starts a container by .*/systemd-nspawn, of which no program is seen: start it"
check "then it waits again" until_true says inner.service/a "none runs in its cgroup yet"
systemctl start first
check "a program that is the first of a container needs no name" until_true has_windows first.service/program 3
matches "and its functions are those of the unit" "$(tlobctl functions first.service victim_a)" victim_a
systemctl stop first

# A library that only LD_LIBRARY_PATH leads to.
mkdir -p /opt/lib
cp "$tests/libreach.so" /opt/lib/libreach.so.1.2
ln -s libreach.so.1.2 /opt/lib/libreach.so
cat >/opt/loading <<END
while sleep 0.1; do
        echo
done | $tests/reach-caller $(yes 'say:once call:1' | head -n 200 | xargs)
END
cat >"$etc/loading.service" <<END
[Service]
Environment=LD_LIBRARY_PATH=/opt/lib
ExecStart=/bin/bash /opt/loading
[X-Tlob reach]
Executable=libreach.so
Function=reach_call
BudgetSec=1s
END
systemctl daemon-reload
check "a library that is in no directory of the loader is missed" until_true says loading.service/reach \
        "^loading.service is not running, and its program or library is not there: The loader's directories have no library 'libreach.so'"
refuse "verify says so, too" 1 "The loader's directories have no library 'libreach.so'" tlobctl verify --unit=loading.service
systemctl start loading
check "and found when a process has loaded it" until_true has_windows loading.service/reach 1
equal "where it is" "$(binding loading.service/reach Executable)" /opt/lib/libreach.so.1.2
systemctl stop loading

# A root with a name that is no text, which nobody can be told.
odd=$'/srv/odd\xff'
cp -r "$jail" "$odd"
printf 'exec chroot "%s" /opt/only sleep:60000000000\n' "$odd" >/opt/odd
cat >"$etc/odd.service" <<END
[Service]
ExecStart=/bin/sh /opt/odd
[X-Tlob a]
Executable=/opt/only
Function=victim_a
BudgetSec=1s
END
systemctl daemon-reload
systemctl start odd
check "a path that is no text is refused" until_true says odd.service/a "at a path with bytes that are not text"
check "and everything can be read" sh -c \
        'busctl call org.tlob1 /org/tlob1 org.freedesktop.DBus.ObjectManager GetManagedObjects >/dev/null && tlobctl list-bindings -j >/dev/null'
systemctl stop odd
rm -r "$odd" "$etc/odd.service"
systemctl daemon-reload

# A program that locks itself in once it runs, as servers do: its files stay what they were.
mkdir -p /srv/empty
cat >"$etc/locked.service" <<END
[Service]
ExecStart=/usr/bin/python3 -c 'import os, time; os.chroot("/srv/empty"); [time.sleep(0.05) for _ in range(10000)]'
$nap
[X-Tlob threads]
Executable=/usr/bin/python3
Function=PyEval_SaveThread
BudgetSec=10s
END
systemctl daemon-reload

# Both measure, and go on to.
both_measure() {
        local name before

        for name in nap threads; do
                before=$(binding "locked.service/$name" Windows)
                until_true has_windows "locked.service/$name" $((before + 5)) || return 1
                binding_has "locked.service/$name" State active && binding_has "locked.service/$name" StateReason '' || return 1
        done
}

systemctl start locked
check "a program that locks itself in: both bindings begin" until_true eval \
        'has_windows locked.service/nap 1 && has_windows locked.service/threads 1'
check "and measure" both_measure
pause 3
check "also when it has been looked at again" both_measure
systemctl daemon-reload
pause 1
check "and by systemd, too" both_measure
matches "its functions can be listed" "$(tlobctl functions locked.service)" PyEval_SaveThread
systemctl restart tlobd
check "a tlobd that comes later finds it, too" both_measure
systemctl stop locked
rm "$etc/locked.service"
systemctl daemon-reload

# Another process of the unit has one of that name first.
mkdir -p /opt/other
cp "$tests/libreach.so" /opt/other
cat >/opt/loading <<END
LD_LIBRARY_PATH=/opt/other $tests/reach-caller say:x < <(sleep 60) >/dev/null &
sleep 1
exec 7< <(while sleep 0.1; do echo; done)
exec $tests/reach-caller $(yes 'say:once call:1' | head -n 200 | xargs) <&7
END
systemctl start loading
check "the main process is believed, not others" until_true eval \
        '[ "$(binding loading.service/reach Executable)" = /opt/lib/libreach.so.1.2 ] && has_windows loading.service/reach 5'
systemctl stop loading

# Processes that read files end with the daemon, whatever ends it.
reads_files() {
        pgrep -f /usr/libexec/tlobd
}
[ "$(reads_files | wc -l)" -ge 2 ]
equal "some processes read files" $? 0
pid=$(main_pid)
systemctl kill --signal=KILL --kill-whom=main tlobd
check "a daemon that is killed is there again" until_true started_anew "$pid"
leftovers() {
        journalctl --boot -u tlobd -o cat | grep -c "remains running after unit stopped"
}
before=$(leftovers) # of the kill, which they hear of when systemd does
systemctl stop tlobd
refuse "nothing of it is left when it has been stopped" 1 '' reads_files
equal "and systemd has found nothing left" "$(leftovers)" "$before"
finish
