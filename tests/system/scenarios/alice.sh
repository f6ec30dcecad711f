# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What the scenarios share in which a user, alice, who lingers, has a tlobd of her own.

. "${BASH_SOURCE[0]%/*}/assert.sh"

# shellcheck disable=SC2034 # for who includes this
server=/usr/libexec/tlob-tests/server
# shellcheck disable=SC2034 # the same
request='[X-Tlob request]\nFunction=handle_request\nBudgetSec=%s\n'

# One who lingers has a manager without being logged in, if there is who sees to it: rootfs has masked that.
rm -f /etc/systemd/system/systemd-logind.service
mkdir -p /etc/systemd/user/tlobd.service.d /var/log/journal
# As assert.sh has it for that of the system.
printf '[Service]\nSystemCallErrorNumber=kill\n' >/etc/systemd/user/tlobd.service.d/calls.conf
systemctl daemon-reload
journalctl --flush
# Whoever was her before, in another scenario, has left files.
if id alice >/dev/null 2>&1; then
        loginctl disable-linger alice
        systemctl stop "user-$(id -u alice).slice"
        userdel --remove alice 2>/dev/null
fi
useradd --create-home --shell=/bin/bash alice
alice=$(id -u alice)
home=/home/alice

as_alice() {
        setpriv --reuid=alice --regid=alice --init-groups -- \
                env -i PATH="$PATH" LANG=C.UTF-8 HOME=$home XDG_RUNTIME_DIR="/run/user/$alice" "$@" </dev/null
}

ctl() {
        as_alice tlobctl --user "$@"
}

# hers BINDING PROPERTY
hers() {
        ctl show -j "$1" | jq -r ".[0].$2"
}

# hers_has BINDING PROPERTY VALUE
hers_has() {
        [ "$(hers "$1" "$2")" = "$3" ]
}

# writes FILE FORMAT [ARGUMENT...]: by her, below her home.
writes() {
        local file=$home/$1

        shift
        as_alice mkdir -p "${file%/*}"
        # shellcheck disable=SC2059
        printf "$@" | as_alice_reading tee "$file" >/dev/null
}

as_alice_reading() {
        setpriv --reuid=alice --regid=alice --init-groups -- "$@"
}

# Before anything is done as her.
begin_alice() {
        check "alice gets a manager of her own" loginctl enable-linger alice
        check "and a bus" until_true as_alice busctl --user --quiet list
}
