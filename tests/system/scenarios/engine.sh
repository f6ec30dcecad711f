# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The engine suite on this kernel: real probes, exact books, deadlines. Fewer random programs than on
# a machine of its own: guests are slow.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
printf '# Linux %s, preemption: %s\n' "$(uname -r)" "$(cat /sys/kernel/debug/sched/preempt 2>/dev/null || echo '?')"
export TLOB_TEST_VICTIM=$tests/victim TLOB_TEST_LEAVER=$tests/leaver TLOB_TEST_LEAVER_GUARDED=$tests/leaver-guarded TLOB_TEST_LEAVER_FRAMED=$tests/leaver-framed TLOB_TEST_CALLER=$tests/reach-caller
export TLOB_TEST_JOINER=$tests/joiner TLOB_TEST_JUGGLER=$tests/juggler TLOB_TEST_UNSEEN=$tests/unseen TLOB_TEST_CALLS=$tests/system-caller TLOB_TEST_MARKED=$tests/marked TLOB_TEST_MARKED_LLD=$tests/marked-lld
export TLOB_TEST_GOER=$tests/goer TLOB_TEST_RUSTER=$tests/ruster TLOB_TEST_MARKER=$tests/marker TLOB_TEST_MARKER_LIBRARY=$tests/libmarker.so
export TLOB_TEST_LIBRARY=$tests/libreach.so TLOB_TEST_SEEDS=200 LD_LIBRARY_PATH=$tests

# On kernels that probe unwinding in all processes, the daemon's bindings would do so in the tests' too.
systemctl stop tlobd.service

# Before Linux 6.5, soft interrupts, and so timers, are left to a thread as soon as that runs, and a
# real-time task keeps it off its CPU. One that has priority over the tests' gets through.
case $(uname -r) in
6.1.*) for pid in $(pgrep ksoftirqd); do chrt --fifo --pid 50 "$pid"; done ;;
esac

# The best way to find deadlines that this kernel is known to have.
case $(uname -r) in
6.1.* | 6.12.*) expected=fentry ;;
*) expected=uprobe ;;
esac
mode=$("$tests/test-deadline" host Executable "$tests/victim" Function victim_a BudgetSec 1s </dev/null | head -n 1)
check "deadlines are found by $expected" test "$mode" = "$expected"

# Where only preemption differs, what is done in many processes, or by one that was started anew, is as
# elsewhere. What a daemon leaves to the next one is the same on all kernels that have links for it: the
# oldest is looked at here, and a new one in the suite "engine".
alone=("$tests"/test-*)
! grep -qw preempt=full /proc/cmdline || alone=("$tests/test-together")
case $(uname -r) in
6.1.*) left_out= ;;
*) left_out='keep takeover' ;;
esac

# What is wrong, in a line: where a test of cmocka failed.
wrong() {
        sed -n 's,^\[   LINE   \] --- \(.*/\)*,,p; s,^\[  ERROR   \] --- ,,p' "$run/output" | xargs
}

mapfile -t together < <("$tests/test-together" list)
for test in "${alone[@]}"; do
        case " ${together[*]} $left_out " in
        *" ${test##*/test-} "*) continue ;;
        esac
        begin=$SECONDS
        "$test" 2>&1 | tee "$run/output"
        if [ "${PIPESTATUS[0]}" = 0 ]; then
                passed "${test##*/} passes"
        else
                failed "${test##*/} passes: $(wrong)"
        fi
        echo "# it took $((SECONDS - begin)) s"
done

finish
