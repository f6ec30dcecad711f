# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Debian packages: installed, upgraded while something is measured, removed and purged. What each step leaves is what
# dpkg's rules say.

. "${BASH_SOURCE[0]%/*}/assert.sh"
. "${BASH_SOURCE[0]%/*}/package.sh"

tests=/usr/libexec/tlob-tests

# Beside what dpkg, apt and systemd keep of packages that have been.
all_files() {
        find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o \
                -path /var/cache -o -path /var/lib/systemd -o -path /var/lib/apt \) -prune -o -print | sort
}

all_files >"$run/before"
check "they can be installed" dpkg --install "$tests"/old/{tlobctl,tlobd,libtlob-mark0,libtlob-dev,python3-tlob}_*.deb
equal "the service runs, now and after the next boot" "$(systemctl is-active tlobd; systemctl is-enabled tlobd)" $'active\nenabled'
equal "what is optional does not" "$(systemctl is-active tlob-metrics.timer; systemctl is-enabled tlob-metrics.timer)" $'inactive\ndisabled'
equal "the programs tell the version of the packages" "$(tlobctl --version; /usr/libexec/tlobd --version)" \
        $'tlobctl 0.1~test1\ntlobd 0.1~test1'
check "a violation is reported, as their own test has it" "$tests/violation"
matches "and explained" "$(journalctl --boot -x -t tlob --no-pager)" 'Subject: .* did not keep its budget'

check "Python writes files of marks" python3 -m tlob -o "$run/marks.so" handler
equal "and loads them" "$(python3 -c "import tlob; print(tlob.load('$run/marks.so'), tlob.mark('handler').enabled())")" \
        "True False"

# Of which the socket is where systemd has sd-varlink.
optional=(tlob-metrics.timer)
! systemctl cat tlob-metrics-varlink.socket >/dev/null 2>&1 || optional+=(tlob-metrics-varlink.socket)
mkdir -p /var/lib/prometheus/node-exporter
systemctl start "${optional[@]}"
check "what is optional can be had" until_true test -s /var/lib/prometheus/node-exporter/tlob.prom
upgraded_while_measuring dpkg --install --force-confold "$tests"/new/{tlobctl,tlobd,libtlob-mark0,libtlob-dev,python3-tlob}_*.deb
equal "the version is another" "$(dpkg-query --show --showformat='${Version}' tlobd)" 0.1~test2
equal "what was started goes on" "$(systemctl is-active "${optional[@]}" | sort -u)" active

# What a process takes is another number each time.
socket=/run/systemd/report/org.tlob1
same='select(.name | startswith("org.tlob1.Process") | not)'
if [ ${#optional[@]} -gt 1 ]; then
        equal "nobody has to answer systemd-report" "$(systemctl is-enabled tlob-metrics-varlink.socket)" disabled
        equal "it can be answered with the metrics that tlobctl prints" \
                "$(varlinkctl call --more --json=short $socket io.systemd.Metrics.List '{}' | tr -d '\036' | jq -cS "$same")" \
                "$(tlobctl metrics --json=short | jq -cS ".[] | $same")"
        matches "of the binding" "$(varlinkctl call --more $socket io.systemd.Metrics.List '{}')" '"binding" *: *"stays"'
        check "the exposure is small" systemd-analyze security --no-pager --threshold=20 tlob-metrics-varlink.service
fi

mapfile -t programs < <(programs_of "$(main_pid)")
check "it has programs in the kernel" test ${#programs[@]} -gt 0
refuse "which are found there" 1 '' none_loaded "${programs[@]}"
check "they can be removed" dpkg --remove tlobd tlobctl libtlob-mark0 libtlob-dev python3-tlob
equal "nothing runs" "$(systemctl is-active tlobd tlob-metrics.timer | xargs)" "inactive inactive"
check "nobody answers" test ! -e $socket
check "and nothing is in the kernel" until_true none_loaded "${programs[@]}"
check "no metrics are left that nobody writes" test ! -e /var/lib/prometheus/node-exporter/tlob.prom
rm -r /var/lib/prometheus
check "what was configured is still there" ls /etc/tlob/tlobd.conf /etc/tlob/bindings.d/README
check "and so it is when they come back" dpkg --install "$tests"/new/{tlobctl,tlobd}_*.deb
check "with the binding" until_true binding_has stays State active
check "they can be purged" dpkg --purge tlobd tlobctl libtlob-mark0 libtlob-dev python3-tlob
all_files >"$run/after"
equal "and leave nothing" "$(diff "$run/before" "$run/after")" ""
check "in /run, too" test ! -e /run/tlob
finish
