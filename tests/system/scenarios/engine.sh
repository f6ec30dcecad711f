# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The engine suite on this kernel: real probes, exact books, deadlines. Fewer random programs than on
# a machine of its own: guests are slow.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
printf '# Linux %s, preemption: %s\n' "$(uname -r)" "$(cat /sys/kernel/debug/sched/preempt 2>/dev/null || echo '?')"
export TLOB_TEST_VICTIM=$tests/victim TLOB_TEST_SEEDS=100 LD_LIBRARY_PATH=$tests
for test in "$tests"/test-*; do
        "$test" 2>&1
        status=$?
        expect=check
        # Seen to fail on Linux 7.3, where the start arms the timer; the cause is not found yet.
        case $(uname -r):${test##*/} in
        7.*:test-model | 7.*:test-recording) expect=todo ;;
        esac
        $expect "${test##*/} passes" test $status = 0
done

finish
