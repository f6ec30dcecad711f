# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What the sandbox of tlobd.service hides from it: programs, unit files and configuration in homes and temporary
# directories. All of it is measured and read, and shown by the paths that were written.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
home=/home/user
victim=/usr/libexec/tlob-tests/victim
section=$'[X-Tlob a]\nFunction=victim_a\nBudgetSec=10ms\n'

books() {
        tlobctl show -j "$1" | jq -c '.[0] | [.Windows, .Violations]'
}

has_books() {
        [ "$(books "$1")" = "$2" ]
}

has_violations() {
        [ "$(binding "$1" Violations)" -gt 0 ]
}

# unit FILE PROGRAM LINE...: a service that runs this, and a budget for it.
unit() {
        printf '%s\n' '[Service]' "ExecStart=$2 a( sleep:20000000 )" Type=oneshot "${@:3}" "$section" >"$1"
}

# add NAME EXECUTABLE: a binding for the machine.
add() {
        tlobctl add-binding "$1" --executable="$2" --function=victim_a --budget=10ms
}

mkdir -p $home/bin $home/units
chmod 0700 $home
for place in $home/bin /root /tmp /var/tmp; do
        cp $victim "$place/victim"
done
ln -s $home/bin/victim /tmp/absolute
ln -s ../home/user/bin/victim /tmp/relative
ln -s /tmp/absolute /usr/local/bin/to-a-home
unit $etc/in-home.service $home/bin/victim
unit $etc/in-root.service /root/victim
unit $etc/in-tmp.service /tmp/victim
unit $etc/in-var-tmp.service /var/tmp/victim
unit $etc/by-link.service /usr/local/bin/to-a-home

# With a /tmp of its own, in which that path is another file.
cat >$etc/private.service <<END
[Service]
PrivateTmp=yes
StandardOutput=null
ExecStartPre=cp $victim /tmp/victim
ExecStart=/tmp/victim repeat:100000 ( a( sleep:20000000 ) )
$section
END

# A system of its own.
jail=$home/jail
for file in "$victim" $(ldd "$victim" | grep -o '/[^ ]*'); do
        install -D "$(realpath "$file")" "$jail$file"
done
unit $etc/jailed.service $victim "RootDirectory=$jail"

# Unit files, a drop-in, a directory of them, and a file of bindings that are links.
unit $home/units/linked.service $victim
systemctl --quiet link $home/units/linked.service
printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:20000000 )\n' $victim |
        tee $etc/dropped.service >$etc/listed.service
mkdir $etc/dropped.service.d $home/units/listed.service.d
printf '%s\n' "$section" | tee $home/units/x.conf >$home/units/listed.service.d/x.conf
ln -s $home/units/x.conf $etc/dropped.service.d/x.conf
ln -s $home/units/listed.service.d $etc/listed.service.d
printf '[Binding from-a-link]\nExecutable=/root/victim\nFunction=victim_b\nBudgetSec=1s\n' >/root/from-a-link.conf
systemctl daemon-reload
mkdir -p /etc/tlob/bindings.d
start_fresh
ln -s /root/from-a-link.conf /etc/tlob/bindings.d/from-a-link.conf

equal "tlobd itself sees none of it" "$(find "/proc/$(main_pid)/root"/{home,root,tmp,var/tmp} -mindepth 1 2>/dev/null | wc -l)" 0
check "nor can it write there" sh -c "! nsenter --target=$(main_pid) --mount touch /tmp/x /var/tmp/x /home/x 2>/dev/null"
sees=$(readlink "/proc/$(main_pid)/ns/mnt")
[ "$sees" != "$(readlink /proc/1/ns/mnt)" ]
equal "its mounts are its own" $? 0

for name in in-home in-root in-tmp in-var-tmp by-link jailed linked dropped listed; do
        equal "$name: it is found before it runs" "$(binding $name.service/a State): $(binding $name.service/a StateReason)" \
                "waiting: $name.service is not running"
        systemctl start $name
        equal "$name: it is measured" "$(books $name.service/a)" '[1,1]'
done
equal "a program in a home has the path that was written" "$(binding in-home.service/a Executable)" $home/bin/victim
equal "so has one in /tmp" "$(binding in-tmp.service/a Executable)" /tmp/victim
equal "one in a unit's own tree has the one from outside" "$(binding jailed.service/a Executable)" "$jail$victim"

windows=$(binding in-tmp.service/a Windows)
systemctl start private
check "private: the unit's own file is measured" until_true has_violations private.service/a
equal "by the path that it has there" "$(binding private.service/a Executable)" /tmp/victim
equal "and not the one that the machine has there" "$(binding in-tmp.service/a Windows)" "$windows"
systemctl stop private

check "a reload reads bindings in a file that is a link" tlobctl reload
equal "and they measure" "$(binding from-a-link State)" active
rm /etc/tlob/bindings.d/from-a-link.conf
tlobctl reload

for path in $home/bin/victim /root/victim /tmp/victim /tmp/absolute /tmp/relative; do
        check "a binding for the machine: $path" add machine "$path"
        "$path" 'a(' sleep:20000000 ')'
        check "it is measured" until_true has_books machine '[1,1]'
        equal "and shown as it was given" "$(binding machine Executable)" "$path"
        tlobctl remove-binding machine
done
matches "a violation names the program" "$(tlobctl violations -j)" '"/tmp/victim"'

# What is mounted while tlobd runs.
mkdir $home/mounted
mount -t tmpfs -o mode=755 mounted $home/mounted
cp $victim $home/mounted/victim
check "a program on a file system that was mounted later can be bound" add machine $home/mounted/victim
$home/mounted/victim 'a(' sleep:20000000 ')'
check "it is measured" until_true has_books machine '[1,1]'
tlobctl remove-binding machine
check "and the file system can be unmounted" until_true umount $home/mounted

# What is replaced while it is measured.
check "a program in /tmp can be bound" add replaced /tmp/victim
cp $victim /tmp/new
inode=$(stat -c %i /tmp/new)
mv /tmp/new /tmp/victim
/tmp/victim 'a(' sleep:20000000 ')'
again() {
        /tmp/victim 'a(' ')'
        [ "$(binding replaced Windows)" -ge 2 ]
}
check "what replaces it is measured, too" until_true again
equal "it is another file" "$(stat -c %i /tmp/victim)" "$inode"

windows=$(binding replaced Windows)
check "tlobd can be restarted" systemctl restart tlobd
equal "and has its binding" "$(binding replaced State): $(binding replaced Executable)" "active: /tmp/victim"
equal "with what was counted in both files" "$(binding replaced Windows)" "$windows"
/tmp/victim 'a(' ')'
equal "and measures" "$(binding replaced Windows)" $((windows + 1))

refuse "what is not there is not there" 1 '/tmp/nothing: No such file or directory$' add nothing /tmp/nothing
equal "nothing that is shown has the way by which tlobd sees it" \
        "$(tlobctl list-bindings -j | grep -c /proc/1/; journalctl --boot -o cat -u tlobd -t tlob | grep -c /proc/1/)" $'0\n0'

# Where tlobd may not look through the root of PID 1, all else is measured.
mkdir -p /run/systemd/system/tlobd.service.d
printf '[Service]\nCapabilityBoundingSet=\nCapabilityBoundingSet=CAP_SYS_ADMIN CAP_DAC_READ_SEARCH\n' \
        >/run/systemd/system/tlobd.service.d/blind.conf
systemctl daemon-reload
check "without CAP_SYS_PTRACE, it starts" systemctl restart tlobd
check "a program in /tmp is not found then, and the reason says why" says replaced \
        '/tmp/victim: No such file or directory\. .*/proc/1/root: Permission denied'
check "the journal, too" wait_for_entry '.MESSAGE | test("Failed to open /proc/1/root.*Permission denied")' -u tlobd
check "it can be bound" add seen $victim
$victim 'a(' sleep:20000000 ')'
check "and is measured" until_true has_books seen '[1,1]'
rm -r /run/systemd/system/tlobd.service.d
systemctl daemon-reload
systemctl restart tlobd
equal "with it, what was not found is" "$(binding replaced State)" active

rm -r $etc/{in-home,in-root,in-tmp,in-var-tmp,by-link,private,jailed,linked,dropped,listed}.service \
        $etc/{dropped,listed}.service.d $home {/root,/tmp,/var/tmp}/victim /tmp/{absolute,relative} /root/from-a-link.conf
tlobctl remove-binding replaced
tlobctl remove-binding seen
systemctl daemon-reload
finish
