# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Without Executable= the program of the unit is measured, whatever its ExecStart= looks like; where
# that cannot be meant, it is said what to write.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim
section='[X-Tlob a]\nFunction=victim_a\nBudgetSec=10ms\n'

# unit NAME LINE...: a service of these lines, and a budget for it.
unit() {
        printf '[Service]\nType=oneshot\n%b\n' "$(printf '%s\\n' "${@:2}")" >"$etc/$1.service"
        printf '%b' "$section" >>"$etc/$1.service"
}

state() {
        tlobctl show -j "$1.service/a" | jq -r '.[0].State'
}

why() {
        tlobctl show -j "$1.service/a" | jq -r '.[0].StateReason'
}

books() {
        tlobctl show -j "$1.service/a" | jq -c '.[0] | [.Windows, .Violations]'
}

cp "$victim" /usr/local/bin/on-the-path
unit plain "ExecStart=$victim a( sleep:20000000 )"
unit prefixes "ExecStart=@-$victim other-name a( sleep:20000000 )"
unit plus "ExecStart=+:$victim a( sleep:20000000 )"
unit twice "ExecStart=$victim a( )" "ExecStart=$victim a( sleep:20000000 )"
unit other "ExecStart=$victim a( )" "ExecStart=/usr/bin/sleep 0"
unit shell "ExecStart=/bin/sh -c 'exec $victim'"
unit path "ExecStart=on-the-path a( sleep:20000000 )"
unit specifier@ 'ExecStart=/usr/libexec/tlob-tests/%i a( sleep:20000000 )'
unit script 'ExecStart=/usr/local/bin/a-script'
unit none ''
unit missing 'ExecStart=/usr/local/bin/is-not-there'
printf '#!/bin/sh\n' >/usr/local/bin/a-script
chmod +x /usr/local/bin/a-script
printf '[Unit]\n%b' "$section" >"$etc/pure.slice"
systemctl daemon-reload
start_fresh

for name in plain prefixes plus path; do
        equal "$name: it waits" "$(state $name)" waiting
        systemctl start $name
        equal "$name: its program is measured" "$(books $name)" '[1,1]'
done
systemctl start twice
equal "twice: one program in two commands" "$(books twice)" '[2,1]'
mkdir "$etc/specifier@victim.service.d"
printf '[X-Tlob a]\nPriority=err\n' >"$etc/specifier@victim.service.d/x.conf"
systemctl daemon-reload
check "specifier: it waits" until_true sh -c "tlobctl show -j specifier@victim.service/a | grep -q waiting"
systemctl start specifier@victim
equal "specifier: as systemd expands it" "$(books specifier@victim)" '[1,1]'
equal "other: two programs" "$(state other)" failed
matches "other: say which" "$(why other)" "$etc/other.service:6: .*several programs.*write Executable="
equal "shell: an interpreter" "$(state shell)" failed
matches "shell: say what else" "$(why shell)" 'ExecStart= of shell.service is /bin/sh, which runs other code: write Executable='
unit wrapped "ExecStart=/bin/sh -c 'exec $victim sleep:600000000000'"
systemctl daemon-reload
systemctl start --no-block wrapped
runs_victim() {
        tlobctl functions wrapped victim_a 2>/run/wrapped | grep -q '^victim_a '
}
check "functions are those of the program that a wrapper has become" until_true runs_victim
matches "and where that is is said" "$(cat /run/wrapped)" "runs $victim, not /bin/sh of its ExecStart=: write Executable=$victim"
says_what_runs() {
        [[ "$(why wrapped)" = *"(its main process runs $victim)"* ]]
}
says_nothing_of_it() {
        ! says_what_runs
}
for i in 1 2 3; do
        check "start $i of it: what runs is said" until_true says_what_runs
        systemctl stop wrapped
        check "and when it has ended, not any more" until_true says_nothing_of_it
        systemctl start --no-block wrapped
done
entries="$(journalctl --boot -q -t tlob -o cat | grep '^wrapped.service/a: not measured')"
matches "that is in the log" "$entries" "its main process runs $victim"
equal "and nothing of it twice, however often it is started" "$(uniq -d <<<"$(sort <<<"$entries")")" ""
systemctl stop wrapped
unit leaving "ExecStart=/usr/bin/setpriv --no-new-privs $victim sleep:600000000000"
systemctl daemon-reload
systemctl start --no-block leaving
says_what_to_write() {
        [[ "$(why leaving)" = *"whose main process runs $victim: write Executable=$victim if that is meant" ]]
}
check "of a program that becomes another one, that is proposed" until_true says_what_to_write
systemctl stop leaving
equal "script: a script" "$(state script)" failed
matches "script: say what else" "$(why script)" 'a-script is not an ELF file but a script.*Write Executable='
equal "missing: a program that is not installed is no failure" "$(state missing)" waiting
matches "missing: but told" "$(why missing)" 'its program or library is not there'
matches "a slice has no program" "$(tlobctl show -j pure.slice/a | jq -r '.[0].StateReason')" 'pure.slice has no ExecStart=: write Executable='

# One mistake in a template, and many instances: it is said of the first.
unit many@ "ExecStart=/usr/bin/perl -e sleep(60)"
systemctl daemon-reload
systemctl start --no-block many@{1..9}
says_of_all() {
        for i in {1..9}; do
                [ "$(state "many@$i")" = failed ] || return 1
        done
}
check "each instance is failed" until_true says_of_all
equal "one entry is for all of them" \
        "$(journalctl --boot -q -t tlob -o cat | grep -c '^many@[0-9].service/a: not measured')" 1
systemctl stop many@{1..9}
rm "$etc/many@.service"

# Changed by a drop-in, while it waits.
mkdir -p "$etc/shell.service.d"
printf '[Service]\nExecStart=\nExecStart=%s a( sleep:20000000 )\n' "$victim" >"$etc/shell.service.d/x.conf"
systemctl daemon-reload
check "a drop-in that changes the program mends it" until_true sh -c "tlobctl show -j shell.service/a | grep -q waiting"
systemctl start shell
equal "and that is measured" "$(books shell)" '[1,1]'

# Installed anew: another file under the same name.
cp "$victim" /usr/local/bin/new-victim
mv /usr/local/bin/new-victim /usr/local/bin/on-the-path
systemctl daemon-reload
tlobctl reload >/dev/null 2>&1
systemctl start path
equal "a program that was installed anew is measured" "$(books path)" '[2,2]'

# The unit of a binding from bindings.d is asked for its program, too.
printf '[Binding far]\nUnit=plain.service\nFunction=victim_b\nBudgetSec=1s\n' >/etc/tlob/bindings.d/far.conf
check "a binding in bindings.d takes the program of its unit" sh -c \
        'tlobctl reload 2>/dev/null; tlobctl show -j far | grep -q waiting'
check "verify resolves it" tlobctl verify /etc/tlob/bindings.d/far.conf
matches "and a whole unit" "$(tlobctl verify --unit=plain)" 'plain.service/a .*plain.service:5'
refuse "a unit with a mistake" 1 'other.service:6: .*several programs' tlobctl verify --unit=other
refuse "a unit without sections" 1 'no section \[X-Tlob NAME\] in the files that systemd has read for dbus.service' tlobctl verify --unit=dbus
refuse "a unit that is not there" 1 'There is no unit nosuch\.service' tlobctl verify --unit=nosuch
matches "what is asked for without the unit's program" \
        "$(tlobctl verify --unit=prefixes --function=victim_c --budget=1s)" "Executable: $victim"

# Required=
mkdir -p "$etc/plain.service.d"
printf '[X-Tlob must]\nFunction=no_such_function\nBudgetSec=1s\nRequired=yes\n' >"$etc/plain.service.d/x.conf"
systemctl daemon-reload
check "a required binding that cannot be set up is an error in the unit's journal" wait_for_entry \
        '.TLOB_BINDING == "plain.service/must" and .PRIORITY == "3"' -u plain.service
refuse "which verify foretells" 1 'no_such_function' tlobctl verify --unit=plain
printf '[X-Tlob must]\nFunction=victim_c\nBudgetSec=1s\nRequired=yes\n' >"$etc/plain.service.d/x.conf"
printf '[Service]\nExecStart=\nExecStart=%s say:x\n' "$victim" >>"$etc/plain.service.d/x.conf"
systemctl daemon-reload
check "mended, it waits" until_true sh -c 'tlobctl show -j plain.service/must | grep -q waiting'
check "and measures when it runs" until_true sh -c 'systemctl start plain; [ "$(tlobctl show -j plain.service/must | jq -r ".[0].State")" = waiting ]'

# cat: what is written about it, and where.
tlobctl set-budget --persist plain.service/a 3s
equal "cat shows every file that has a word about the unit, with lines" "$(tlobctl cat plain)" "\
# $etc/plain.service
    5  [X-Tlob a]
    6  Function=victim_a
    7  BudgetSec=10ms

# $etc/plain.service.d/x.conf
    1  [X-Tlob must]
    2  Function=victim_c
    3  BudgetSec=1s
    4  Required=yes

# /etc/tlob/bindings.d/far.conf
    1  [Binding far]
    2  Unit=plain.service
    3  Function=victim_b
    4  BudgetSec=1s

# /etc/tlob/overrides.d/plain.service\\x2fa.conf
    3  [Override plain.service/a]
    4  BudgetSec=3s"
holds "as JSON, too" "$(tlobctl cat -j plain)" 'map(select(.Text == "[Binding far]"))[0].File == "/etc/tlob/bindings.d/far.conf"'
refuse "of a unit without any" 1 'No file has bindings of dbus.service' tlobctl cat dbus

# edit: verified before it counts.
editor=$run/editor
write_editor() {
        printf '#!/bin/sh\ncat >"$1" <<"END"\n%s\nEND\n' "$1" >"$editor"
        chmod +x "$editor"
}
export EDITOR=$editor
target=$etc/prefixes.service.d/50-tlob.conf
write_editor $'[X-Tlob a]\nBudgetSec=soon'
refuse "what is wrong is not installed" 1 "$target:2: BudgetSec=soon" tlobctl edit prefixes
check "nothing is left of it" [ ! -e "$etc/prefixes.service.d" ]
write_editor $'[X-Tlob b]\nFunction=nowhere\nBudgetSec=1s'
refuse "nor what cannot be resolved" 1 "$target:1: No function 'nowhere'" tlobctl edit prefixes
refuse "and whose program that is" 1 "the program of ExecStart= of prefixes.service: if another one is meant" tlobctl edit prefixes
write_editor $'[X-Tlob a]\nBudgetSec=4s\n[X-Tlob b]\nFunction=victim_b\nBudgetSec=1s'
check "what is good is" tlobctl edit prefixes
check "and applied when the command is done" [ "$(tlobctl list-bindings -j -u prefixes | jq -c 'map([.Name, .BudgetNSec])')" = \
        '[["prefixes.service/a",4000000000],["prefixes.service/b",1000000000]]' ]
printf '#!/bin/sh\nsed -i s/4s/5s/ "$1"\n' >"$editor"
printf '[X-Tlob other]\nFunction=nowhere\nBudgetSec=1s\n' >"$etc/prefixes.service.d/99-other.conf"
check "it is edited again, whatever is wrong in another file" tlobctl edit prefixes
rm "$etc/prefixes.service.d/99-other.conf"
equal "from what was there" "$(tlobctl show -j prefixes.service/a | jq '.[0].BudgetNSec')" 5000000000
printf '#!/bin/sh\nexit 1\n' >"$editor"
refuse "an editor that fails changes nothing" 1 'editor failed' tlobctl edit prefixes
printf '#!/bin/sh\n:\n' >"$editor"
check "an editor that changes nothing, neither" tlobctl edit prefixes
equal "it is as before" "$(tlobctl show -j prefixes.service/a | jq '.[0].BudgetNSec')" 5000000000
write_editor '# nothing'
check "an empty text takes it away" tlobctl edit prefixes
check "file and directory" [ ! -e "$etc/prefixes.service.d" ]
equal "and it counts no more" "$(tlobctl show -j prefixes.service/a | jq '.[0].BudgetNSec')" 10000000
write_editor $'[X-Tlob a]\nBudgetSec=6s'
check "for now only" tlobctl edit --runtime prefixes
check "it is in /run" [ -e /run/systemd/system/prefixes.service.d/50-tlob.conf ]
mkdir "$etc/prefixes.service.d"
ln -s /dev/null "$target"
refuse "but not where a file below /etc hides it" 1 "systemd would read $target instead of /run" tlobctl edit --runtime prefixes
rm -r "$etc/prefixes.service.d"
mkdir -p "$etc/service.d"
echo '[Unit]' >"$etc/service.d/50-tlob.conf"
systemctl daemon-reload
write_editor $'[X-Tlob a]\nBudgetSec=7s'
check "one for all services does not hide it" tlobctl edit --runtime prefixes
equal "what was written counts" "$(tlobctl show -j prefixes.service/a | jq '.[0].BudgetNSec')" 7000000000
rm -r "$etc/service.d"
refuse "of a unit that is not there" 1 'There is no unit nosuch\.service' tlobctl edit nosuch
refuse "of a socket" 1 'dbus\.socket is not a service, slice or scope' tlobctl edit dbus.socket

rm -r "$etc"/{plain,prefixes,plus,twice,other,shell,path,specifier@,specifier@victim,script,none,missing}.service* "$etc/pure.slice" \
        /run/systemd/system/prefixes.service.d /etc/tlob/bindings.d/far.conf /usr/local/bin/{a-script,on-the-path}
systemctl daemon-reload
finish
