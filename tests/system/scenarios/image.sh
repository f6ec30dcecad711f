# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A service with RootImage=: its program and its library are those of the image, which only its own processes see. The
# instrument is the program, which writes a line for each call.

. "${BASH_SOURCE[0]%/*}/assert.sh"

unit=/etc/systemd/system/imaged.service
victim=/usr/libexec/tlob-tests/victim
program=/opt/only # in the image, that is
reason="The files of imaged.service are in its RootImage=, which is not mounted"

# A system of its own: a program that is on no other, and libraries that are other files than the machine's.
tree=$run/tree
for file in $(ldd "$victim" | grep -o '/[^ ]*'); do
        install -D "$(realpath "$file")" "$tree$file"
done
install -D "$victim" "$tree$program"
mkdir -p "$tree"/{dev,etc,proc,run,sys,tmp,var/tmp}
touch "$tree/etc/"{machine-id,os-release,resolv.conf}
ldconfig -r "$tree" 2>/dev/null

# Guests have no loop devices, but a disk for it.
disk=$(grep -lx 'tlob-scratch *' /sys/block/*/{device/,}serial 2>/dev/null | cut -d/ -f4)
image=/dev/$disk
if [ -z "$disk" ]; then
        image=$run/image
        truncate -s 32M "$image"
fi
check "an image can be made" mke2fs -q -F -t ext4 -d "$tree" "$image" 32M

# Each start waits for a line before it calls anything, and so for tlobd, which finds the image when it is mounted.
mkfifo "$run/go"
exec {go}<>"$run/go"
cat >"$unit" <<END
[Service]
RootImage=$image
ExecStart=$program say:ready repeat:50 ( a( sleep:2000000 ) ) say:done sleep:100000000000
StandardInput=file:$run/go
StandardOutput=append:$run/calls
[X-Tlob path]
Executable=$program
Function=victim_a
BudgetSec=10s
[X-Tlob program]
Function=victim_a
BudgetSec=10s
[X-Tlob library]
Executable=libc.so.6
Function=clock_nanosleep
BudgetSec=10s
END
systemctl daemon-reload
: >"$run/calls"
start_fresh

# all_are STATE [REASON]
all_are() {
        local name

        for name in path program library; do
                binding_has "imaged.service/$name" State "$1" && binding_has "imaged.service/$name" StateReason "${2-}" ||
                        return 1
        done
}

calls() {
        grep -c '^a ' "$run/calls"
}

# counted N: what the program has written, and tlobd.
counted() {
        [ "$(calls)" = "$1" ] || return 1
        for name in path program library; do
                binding_has "imaged.service/$name" Windows "$1" || return 1
        done
}

# Those of this tlobd, as others may run on the machine: what is loaded anew has other numbers.
loaded_programs() {
        cat "/proc/$(systemctl show -P MainPID tlobd)/fdinfo/"* 2>/dev/null | grep '^prog_id:' | sort -u
}

# lines N WORD: the program has written so many of them.
lines() {
        [ "$(grep -c "^$2" "$run/calls")" = "$1" ]
}

# measured N: the N-th start calls its functions.
measured() {
        check "start $1: all that is bound has its probes" until_true all_are active
        check "start $1: it has begun" until_true lines "$1" ready
        echo go >&"$go"
        check "start $1: it makes its calls" until_true lines "$1" "done"
        check "start $1: each has been counted, and no other" until_true counted $(($1 * 50))
}

# A file system is in use by whoever has a file of it open: a disk cannot be made anew then, and has its loop device.
in_use() {
        if [ -b "$image" ]; then
                ! mke2fs -q -F -n -t ext4 "$image"
        else
                grep -qxF "$image" /sys/block/loop*/loop/backing_file
        fi
}

not_in_use() {
        ! in_use
}

check "before it runs, that is said" until_true all_are waiting "$reason"
refuse "and by tlobctl functions, too" 1 "imaged.service .*RootImage=" tlobctl functions imaged.service victim_a
check "it starts" systemctl start imaged
measured 1
check "its image is in use" in_use
matches "its functions are those of its program" "$(tlobctl functions imaged.service victim_a)" victim_a
matches "and of its libraries" "$(tlobctl functions --libraries imaged.service clock_nanosleep)" clock_nanosleep
loaded=$(loaded_programs)
matches "programs are loaded" "$loaded" '^prog_id:.[1-9]'
check "it is started again" systemctl restart imaged
measured 2
equal "by the programs that were loaded" "$(loaded_programs)" "$loaded"
check "tlobd, too" systemctl restart tlobd
check "and all that is bound has its probes" until_true all_are active
check "it stops" systemctl stop imaged
check "and that is said again" until_true all_are waiting "$reason"
check "tlobd holds no file of the image" until_true not_in_use
check "it starts once more" systemctl start imaged
measured 3
# The image is mounted anew before tlobd has seen that it was unmounted.
systemctl kill -s STOP tlobd
check "it is started again while tlobd is slow" systemctl restart imaged
systemctl kill -s CONT tlobd
measured 4
for name in path program library; do
        check "the books of $name balance" balanced imaged.service/$name
done
check "it stops in the end" systemctl stop imaged
check "tlobd holds no file of the image then, either" until_true not_in_use

# The way that images are shipped. Not in guests, which have one disk for it.
if [ -f "$image" ] && grep -qw squashfs /proc/filesystems; then
        rm "$image"
        check "a compressed one can be made" mksquashfs "$tree" "$image" -quiet -no-progress
        check "it starts from that" systemctl start imaged
        measured 5
        check "and stops" systemctl stop imaged
        check "tlobd holds no file of that" until_true not_in_use
fi
rm -r "$tree"
equal "nothing was said of it to have failed or changed" "$(journalctl --boot -q -t tlob -t tlobd -p notice -o cat | grep imaged)" ""
equal "nor the service" "$(systemctl show -P Result imaged)" success

rm "$unit"
systemctl daemon-reload
finish
