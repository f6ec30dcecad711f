# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Probes that cost too much go by themselves, and stay away until somebody asks for them. The
# instrument is a program that notes how far it gets in each tenth of a second.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim

# What probes have cost, in milliseconds.
cost() {
        echo $(($(binding "$1" ProbesNSec) / 1000000))
}

printf '[Service]\nExecStart=%s threads:2 ( storm:1000000000 )\n[X-Tlob dear]\nFunction=victim_storm\nBudgetSec=1min\nCPULimit=20%%\n' \
        "$victim" >"$etc/busy.service"
printf '[Service]\nExecStart=%s repeat:100000 ( a( sleep:20000000 ) )\n[X-Tlob cheap]\nFunction=victim_a\nBudgetSec=1min\n' \
        "$victim" >"$etc/calm.service"
systemctl daemon-reload
start_fresh

systemctl start calm.service busy.service
check "probes that are hit all the time go" until_true binding_has busy.service/dear State failed
echo "# $(binding busy.service/dear StateReason)"
check "the reason says what they took" grep -qE '^Its probes and timers took [0-9]+% of a CPU, more than CPULimit=20%: ' \
        <(binding busy.service/dear StateReason)
check "so does the journal" wait_for_entry '.MESSAGE | test("Its probes and timers took")' -t tlob TLOB_BINDING=busy.service/dear
equal "others stay" "$(binding calm.service/cheap State)" active
matches "and tell on which instruction they start" "$(binding calm.service/cheap StartNote)" \
        '^[a-z]+( [^()]+)? \((emulated|single-stepped|optimised)\)$'
matches "what that costs here" "$(binding calm.service/cheap Price)" \
        '^[0-9]+(\.[0-9]+)? us( \(single-stepped\))? at the start and [0-9.]+ us( \(single-stepped\))? at the stop$'
equal "and in which build" "$(binding calm.service/cheap BuildID)" "$(tlobctl verify -j --unit=calm.service | jq -r '.[0].BuildID')"
systemctl daemon-reload
systemctl restart busy.service
pause 1
equal "whatever systemd does, it stays away" "$(binding busy.service/dear State)" failed
taken=$(cost busy.service/dear)
echo "# it took $taken ms of CPU time"
check "what it took is known" [ "$taken" -gt 10 ]
pause 1
equal "and no more" "$(cost busy.service/dear)" "$taken"

mkdir -p "$etc/busy.service.d"
printf '[X-Tlob dear]\nCPULimit=infinity\n' >"$etc/busy.service.d/limit.conf"
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/limit.conf
systemctl daemon-reload
tlobctl reload
pause 2
equal "without limits it stays" "$(binding busy.service/dear State)" active
# Less than what it took before: others may have the CPUs now.
printf '[Daemon]\nCPULimit=15%%\n' >/etc/tlob/tlobd.conf.d/limit.conf
tlobctl reload
check "a limit of all together holds for it too" until_true binding_has busy.service/dear State failed
check "and is named" grep -q 'more than CPULimit=15% of tlobd.conf' <(binding busy.service/dear StateReason)
equal "others stay" "$(binding calm.service/cheap State)" active
rm /etc/tlob/tlobd.conf.d/limit.conf
systemctl stop busy.service
tlobctl reload
check "a reload brings it back" until_true binding_has busy.service/dear State waiting

# A whole machine that allocates memory. The limit is low, as others may have the CPUs.
cat >/tmp/allocate.pl <<'END'
use Time::HiRes qw(time);
my ($n, $next) = (0, time + 0.1);
while (1) {
        my @list = map { "a" x $_ } 1 .. 50;
        $n++;
        if (time > $next) { syswrite STDOUT, "$n\n"; $n = 0; $next = time + 0.1; }
}
END
perl /tmp/allocate.pl >/dev/null &
other=$!
perl /tmp/allocate.pl >/tmp/allocated &
allocate=$!
pause 2
before=$(wc -l </tmp/allocated)
usual=$(sort -n /tmp/allocated | sed -n "$((before / 2 + 1))p")
check "a binding on malloc, in all processes" \
        tlobctl add-binding allocations --executable=libc.so.6 --function=malloc --budget=1s --cpu-limit=20%
check "goes by itself" until_true binding_has allocations State failed
echo "# $(binding allocations StateReason)"
pause 3
kill $allocate $other
slow=$(tail -n +"$((before + 1))" /tmp/allocated | awk -v usual="$usual" '$1 < usual / 4' | wc -l)
echo "# $usual rounds in a tenth of a second; less than a quarter of it in $slow tenths; the least were $(sort -n /tmp/allocated | head -n 1)"
check "for seconds nobody was slowed down" [ "$slow" -lt 30 ]

# A budget that every call passes: each of them takes a timer, on the CPU of the service. One process of it sleeps in
# read() until the other one writes.
cat >/tmp/pass.pl <<'END'
use Time::HiRes qw(time);
pipe(my $in, my $there); pipe(my $back, my $out);
if (!fork) { while (sysread $in, my $byte, 1) { syswrite $out, $byte } exit }
my ($n, $next) = (0, time + 0.1);
while (1) {
        syswrite $there, "x"; sysread $back, my $byte, 1;
        $n++;
        if (time > $next) { syswrite STDOUT, "$n\n"; $n = 0; $next = time + 0.1; }
}
END
printf '[Service]\nCPUAffinity=0\nExecStart=perl /tmp/pass.pl\nStandardOutput=file:/tmp/passed\n[X-Tlob soon]\nSyscall=read\nBudgetSec=1us\nCPULimit=20%%\n' \
        >"$etc/pass.service"
systemctl daemon-reload
systemctl start pass.service
check "a budget that is passed all the time goes" until_true binding_has pass.service/soon State failed
echo "# $(binding pass.service/soon StateReason)"
matches "and says what it took" "$(binding pass.service/soon StateReason)" \
        '^It took [0-9]+% of a CPU, more than CPULimit=20%: by each system call of the whole machine'
violations=$(binding pass.service/soon Violations)
echo "# after $violations violations: $(cost pass.service/soon) ms"
check "for the violations, not for the calls" [ "$(cost pass.service/soon)" -gt $((violations / 1000)) ]
systemctl stop pass.service
tlobctl set-budget pass.service/soon 1s
tlobctl reload
systemctl start pass.service
pause 3
equal "with a budget that is not, it stays" "$(binding pass.service/soon State)" active
systemctl stop pass.service
finish
