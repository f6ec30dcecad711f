# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Two machines: this one, and web7, which is booted in a container, with a systemd, a bus, a journal, an sshd and a
# tlobd of its own. tlobctl -H asks it over ssh, -M by systemd-machined, and each verb says what it says when it is
# run there, or refuses. web7 sends its journal here with https, by systemd's units and with certificates.

. "${BASH_SOURCE[0]%/*}/assert.sh"

collected=/var/log/journal/remote
tests=/usr/libexec/tlob-tests
victim=$tests/victim
root=$run/root
tls=/etc/journal-tls

# Its files are those of this machine, and what is written there is its own.
mkdir "$run"/{upper,work,root}
mount -t overlay web7 -o "lowerdir=/,upperdir=$run/upper,workdir=$run/work" "$root"
echo web7 >"$root/etc/hostname"
echo 746c6f622d74657374742d7765623737 >"$root/etc/machine-id"
rm "$root/etc/systemd/system/multi-user.target.wants/tlob-test.service"
# Probes are set in an inode: this one is not that of this machine's program.
touch "$root$victim"

# A network of the two, and tracefs, which systemd mounts only where there is CAP_SYS_RAWIO.
cat >"$root/etc/systemd/system/web7.service" <<'END'
[Unit]
Before=tlobd.service
[Service]
Type=oneshot
ExecStart=ip link set host0 up
ExecStart=ip addr add 192.0.2.7/24 dev host0
ExecStart=mount -t tracefs tracefs /sys/kernel/tracing
[Install]
WantedBy=multi-user.target
END
cat >"$root/etc/systemd/system/worker.service" <<END
[Service]
ExecStart=$victim repeat:100000 ( a( sleep:20000000 ) sleep:100000000 )
[X-Tlob a]
Function=victim_a
BudgetSec=5ms
[Install]
WantedBy=multi-user.target
END
printf '192.0.2.1 central\n192.0.2.7 web7\n' | tee -a "$root/etc/hosts" >>/etc/hosts

# Who may log in.
useradd --root "$root" --create-home alice
ssh-keygen -q -t ed25519 -N '' -f "$run/key"
for home in root home/alice; do
        install -D -m 644 "$run/key.pub" "$root/$home/.ssh/authorized_keys"
done
install -d -m 700 /root/.ssh
sed 's/^/web7 /' "$root/etc/ssh/ssh_host_ed25519_key.pub" >/root/.ssh/known_hosts
printf '%s\n' "IdentityFile $run/key" 'BatchMode yes' 'ControlMaster auto' "ControlPath $run/%r@%h" 'ControlPersist 10m' \
        >/root/.ssh/config

# An authority, and a certificate for each machine.
make_key() {
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$run/$1.key" "${@:2}"
}
make_certificates() {
        local name

        make_key authority -x509 -days 2 -out "$run/authority.pem"
        for name in central web7; do
                make_key "$name" -addext "subjectAltName=DNS:$name" -out "$run/$name.csr"
                openssl x509 -req -in "$run/$name.csr" -CA "$run/authority.pem" -CAkey "$run/authority.key" -CAcreateserial \
                        -days 2 -copy_extensions copy -out "$run/$name.pem"
        done
}
# give_certificate NAME DIR SECTION GROUP: prints the lines of a configuration that name its files. The group is one of the
# user that the service has: of the sender, that user is only made when it starts.
give_certificate() {
        install -D -m 640 -g "$4" -t "$2$tls" "$run/$1.key" "$run/$1.pem" "$run/authority.pem"
        printf '[%s]\nServerKeyFile=%s\nServerCertificateFile=%s\nTrustedCertificateFile=%s\n' \
                "$3" $tls/"$1".key $tls/"$1".pem $tls/authority.pem
}
make_certificates 2>/dev/null
give_certificate central '' Remote systemd-journal-remote >/etc/systemd/journal-remote.conf
{
        give_certificate web7 "$root" Upload systemd-journal
        echo URL=https://central:19532
} >"$root/etc/systemd/journal-upload.conf"
# Until somebody listens and there is a way.
mkdir -p "$root/etc/systemd/system/systemd-journal-upload.service.d"
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=200ms\nRestartSteps=0\n' \
        >"$root/etc/systemd/system/systemd-journal-upload.service.d/restart.conf"
check "its units are enabled" systemctl --root="$root" enable web7 worker tlobd ssh systemd-journal-upload

start_fresh
check "this machine collects journals" systemctl start systemd-journal-remote.socket systemd-machined
check "web7 boots" systemd-run --quiet --unit=web7 --property=Type=notify --property=TimeoutStartSec=infinity \
        --property=Delegate=yes --property=KillMode=mixed systemd-nspawn --quiet --directory="$root" --machine=web7 --keep-unit --notify-ready=yes --network-veth \
        --system-call-filter='bpf perf_event_open' --console=read-only --boot
ip link set ve-web7 up
ip addr add 192.0.2.1/24 dev ve-web7

# there COMMAND...: on web7.
there() {
        # The words are those of a shell there.
        # shellcheck disable=SC2029
        ssh -n web7 "$(printf '%q ' "$@") 2>&1"
}
check "one can log in" until_true there true
equal "it is another machine" "$(there uname -n) $(there cat /etc/machine-id)" "web7 746c6f622d74657374742d7765623737"
check "where everything runs" there systemctl is-system-running --wait
has_violations() {
        [ "$(there tlobctl show -j worker.service/a | jq '.[0].Violations')" -ge 5 ]
}
check "and there are violations" until_true has_violations
equal "which this machine's tlobd does not know" "$(tlobctl list-bindings -j)" '[]'

# The verbs that were tried.
tried=()

# asked OPTION... VERB [ARGUMENT...]: by ssh and as a container; each prints what it has in common with the other, and
# its exit status.
asked() {
        local way

        for way in --host=web7 --machine=web7; do
                tlobctl "$way" "$@" 2>&1 </dev/null | sed "s/$way/WAY/"
                echo "status ${PIPESTATUS[0]}"
        done
}

# same STATUS VERB [ARGUMENT...]: what is said from here is what is said there, and so is the exit status. In JSON, what
# filter names is left out.
filter=
same() {
        local expected=$1

        shift
        tried+=("$1")
        there tlobctl "$@" >"$run/there"
        equal "$*, there" $? "$expected"
        echo "status $expected" >>"$run/there"
        equal "$*" "$(asked "$@" | filtered)" "$(cat "$run/there" "$run/there" | filtered)"
}
filtered() {
        if [ -n "$filter" ]; then
                jq -cRS "(fromjson? | del($filter)) // ."
        else
                cat
        fi
}

# does PATTERN VERB [ARGUMENT...]: succeeds, and prints what matches.
does() {
        local pattern=$1 output

        shift
        tried+=("$1")
        output=$(asked "$@")
        matches "$*" "$output" "$pattern"
        equal "$*: succeeds" "$(grep -c '^status 0$' <<<"$output")" 2
}

# elsewhere VERB [ARGUMENT...]: refused, with a sentence on how to do it.
elsewhere() {
        tried+=("$1")
        refuse "$*, over ssh" "$status" "^tlobctl: .* on its own machine; log in there with 'ssh web7', and run tlobctl" \
                tlobctl --host=web7 "$@"
        refuse "$*, in a container" "$status" "own machine; log in there with 'machinectl shell web7'" tlobctl --machine=web7 "$@"
}

# While it works.
for way in --host=web7 --machine=web7; do
        tried+=(monitor)
        timeout "$WAIT" tlobctl $way monitor -j >"$run/monitor" 2>/dev/null </dev/null &
        check "monitor $way: violations" wait_for_line "$run/monitor" '"Event":"Violation".*"worker.service/a"'
        kill $!
done
does '"WindowsPerSec":[1-9]' top --batch --json=short --iterations=2 --delay=500ms

# When it does not.
check "systemctl stops the service there" systemctl --host=web7 stop worker
has_stopped() {
        there tlobctl show -j worker.service/a | jq -e '.[0] | .State == "waiting" and .Counters.open == 0'
}
check "its binding waits for it" until_true has_stopped
same 0 list-bindings -j
same 0 violations -j --lines=3
filter='.Usage, .Undelivered'
same 0 status -j
filter='.[].Cost'
same 0 show -j worker.service/a
filter=
same 1 is-ok worker
same 1 is-ok --percentile=99 worker
same 4 is-ok nothing
same 0 plot worker
same 0 plot --svg worker
does 'tlobctl WAY set-budget worker.service/a' suggest worker.service/a
same 0 help top
does 'tlob_violations_total{binding="worker.service/a",unit="worker.service"} [1-9]' metrics
does 'can be set up' verify --executable="$victim" --function=victim_b --budget=1s
printf '[Binding x]\nExecutable=%s\nFunction=victim_b\nBudgetSec=1s\n' "$victim" >"$run/here.conf"
does 'victim_b' verify "$run/here.conf"

status=1
elsewhere cat worker
elsewhere edit worker
elsewhere functions worker
elsewhere functions libc.so.6 fsync
elsewhere suggest worker
elsewhere verify --unit=worker
elsewhere report
elsewhere plot --since=1h worker
status=4
elsewhere is-ok --since=1h worker

# What is changed is changed there.
offset=$(tlobctl functions -j "$victim" victim_b | jq '.[0].Offset')
for way in --host=web7 --machine=web7; do
        tried+=(add-binding set-budget reset-statistics remove-binding reload)
        check "$way adds a binding" tlobctl $way add-binding more --unit=worker --executable="$victim" --function=victim_b --budget=1s
        check "$way adds one by a line" tlobctl $way add-binding "$(printf 'p %s:%#x %#x threshold=5000000' "$victim" "$offset" $((offset + 4)))"
        check "$way changes a budget" tlobctl $way set-budget more 2s
        equal "which is one of web7" "$(there tlobctl show -j more | jq '.[0].BudgetNSec')" 2000000000
        check "$way sets counters to zero" tlobctl $way reset-statistics
        equal "so that they are" "$(there tlobctl show -j worker.service/a | jq '.[0].Windows')" 0
        check "$way removes what was added" tlobctl $way remove-binding more "$(there tlobctl list-bindings -j | jq -r '.[].Name' | grep victim)"
        check "$way changes one for ever" tlobctl $way set-budget --persist worker.service/a 6ms
        check "for which a file is there" there grep -r 6ms /etc/tlob/overrides.d
        check "$way has files read again" tlobctl $way reload
        equal "the rest is as it was" "$(there tlobctl list-bindings -j | jq -r '.[] | .Name, .BudgetNSec')" $'worker.service/a\n6000000'
        check "$way starts tlobd to change something" eval "there systemctl stop tlobd; tlobctl $way reload"
done
equal "every verb was tried" "$(printf '%s\n' "${tried[@]}" | sort -u)" \
        "$(tlobctl --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\).*/\1/p' | sort)"
equal "and nothing was changed here" "$(tlobctl list-bindings -j) $(ls -A /etc/tlob/overrides.d)" '[] '

# Rights are those of who logs in.
check "everybody may look" tlobctl --host=alice@web7 list-bindings
refuse "but not change anything" 1 'tlobctl: Access denied: this requires root, or permission from polkit for org.tlob1.manage-bindings' \
        tlobctl --host=alice@web7 reset-statistics
refuse "nobody answers for bob" 1 "Failed to connect to 'bob@web7'; check that 'ssh bob@web7' works" tlobctl --host=bob@web7
refuse "nor from a container that is none" 1 "Failed to connect to 'web8'; check that 'machinectl list' shows it" tlobctl --machine=web8

# The journal. What was on its way when somebody went away may come twice, and so may what tlobd could not tell journald.
found() {
        journalctl --directory=$collected -t tlob -o json --no-pager "$@" |
                jq -r 'select(.TLOB_BINDING == "worker.service/a" and .TLOB_END == null) | ._HOSTNAME + " " + .TLOB_WINDOW_ID' | sort -u
}
of_web7() {
        there journalctl -t tlob -o json --no-pager |
                jq -r 'select(.TLOB_BINDING == "worker.service/a" and .TLOB_END == null) | "web7 " + .TLOB_WINDOW_ID' | sort -u
}
all_arrived() {
        [ -n "$(of_web7)" ] && [ "$(found)" = "$(of_web7)" ]
}
check "the violations of web7 are found here, all of them" until_true all_arrived
check "over https, to whom has the certificate" openssl s_client -connect central:19532 -verify_hostname central \
        -CAfile "$run/authority.pem" -verify_return_error </dev/null
journalctl -q --no-pager -u systemd-journal-remote -o cat --grep=[Cc]ertificate | sed 's/^/# /'
equal "by their unit, too" "$(found -u worker.service)" "$(found)"
refuse "they are not in the journal of this machine" 1 '' journalctl -q -t tlob --grep=worker.service/a --no-pager
page=$(tlobctl report --directory=$collected)
matches "there is a page on them" "$page" '<h1>Latency budgets on web7</h1>'
matches "with the binding" "$page" 'worker.service/a'
refuse "and a gate for web7, by its own bindings" 1 '^violated$' tlobctl --host=web7 is-ok --directory=$collected --since=1h worker
refuse "of which this machine has none" 4 'There is no binding' tlobctl is-ok --directory=$collected --since=1h worker

# Who collects is away for a while.
systemctl stop systemd-journal-remote.socket systemd-journal-remote
check "web7 goes on without" systemctl --host=web7 start worker
check "and has more violations" until_true has_violations
check "until it stops" systemctl --host=web7 stop worker
refuse "which nobody collects" 1 '' all_arrived
check "who collects is back" systemctl start systemd-journal-remote.socket
check "and gets them all" until_true all_arrived

# When web7 is switched off, who watches it hears of it.
tlobctl --machine=web7 monitor >"$run/monitor" 2>&1 &
monitor=$!
check "somebody watches" wait_for_line "$run/monitor" 'Waiting for violations'
equal "without bindings, it is not proposed what would be refused" "$(tlobctl --machine=.host list-bindings | tail -n 2)" \
        "There are no bindings yet. 'tlobctl --machine=.host add-binding' tries one until the next boot;
see tlobctl(1)."
there systemctl poweroff --force
wait $monitor
equal "and ends with it" "$? $(tail -n 1 "$run/monitor")" \
        "1 tlobctl: The connection to the bus is lost; start 'tlobctl --machine=web7 monitor' again: Connection reset by peer"
check "web7 is off" until_true eval '! systemctl is-active web7'
systemctl stop systemd-journal-remote.socket systemd-journal-remote
for who in web7 alice@web7; do
        ssh -O exit "$who" 2>/dev/null
done
umount "$root"
rm -r /root/.ssh $tls /etc/systemd/journal-remote.conf $collected
sed '/^192\.0\.2\./d' /etc/hosts >"$run/hosts"
cat "$run/hosts" >/etc/hosts
finish
