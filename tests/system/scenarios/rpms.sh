# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# RPMs, by rpm itself, though on Debian, which has other names for what they require: installed, upgraded while something
# is measured, and erased.

. "${BASH_SOURCE[0]%/*}/assert.sh"
. "${BASH_SOURCE[0]%/*}/package.sh"

tests=/usr/libexec/tlob-tests

# Older ones on Debian want to be told that this is meant.
options=(--nodeps)
! rpm --force-debian --version >/dev/null 2>&1 || options+=(--force-debian)
by_rpm() {
        rpm "${options[@]}" "$@"
}

# Directories such as /usr/share/zsh/site-functions are of a package of each distribution that has RPMs.
all_files() {
        find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var -o -path /root \) -prune -o \
                ! -type d -print | sort
}

all_files >"$run/before"
check "they can be installed" by_rpm --install "$tests"/rpms/old/*.rpm
check "what is there is what was packaged" by_rpm --verify tlobd tlobctl tlobd-cockpit libtlob-mark libtlob-devel python3-tlob
equal "what is optional is not enabled" "$(systemctl is-enabled tlob-metrics.timer)" disabled
check "the service can be started" systemctl start tlobd
# As a distribution has it that enables nothing by itself: what somebody has chosen is as it was after an upgrade.
mkdir -p /etc/systemd/system-preset
echo 'disable *' >/etc/systemd/system-preset/00-none.preset
systemctl enable tlobd
equal "it tells the version of the packages" "$(tlobctl metrics | grep '^tlob_build_info')" 'tlob_build_info{version="0.1~test1-1"} 1'
check "a violation is reported" "$tests/violation"
upgraded_while_measuring by_rpm --upgrade "$tests"/rpms/new/*.rpm
equal "it is still enabled" "$(systemctl is-enabled tlobd)" enabled
rm -r /etc/systemd/system-preset
check "they can be erased" by_rpm --erase tlobd tlobctl tlobd-cockpit libtlob-mark libtlob-devel python3-tlob
equal "nothing runs" "$(systemctl is-active tlobd tlob-metrics.timer | xargs)" "inactive inactive"
all_files >"$run/after"
equal "what was changed by hand is left, and nothing else" "$(diff "$run/before" "$run/after" | grep '^[<>]' | xargs)" \
        "> /etc/tlob/bindings.d/tlobctl-stays.conf > /etc/tlob/tlobd.conf.rpmsave"
rm -r /etc/tlob
check "in /run, too" test ! -e /run/tlob
finish
