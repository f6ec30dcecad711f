# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The engine suite on this kernel: real probes, exact books, deadlines.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
printf '# Linux %s, preemption: %s\n' "$(uname -r)" "$(cat /sys/kernel/debug/sched/preempt 2>/dev/null || echo '?')"
TLOB_TEST_VICTIM=$tests/victim LD_LIBRARY_PATH=$tests $tests/test-engine 2>&1
check "the engine suite passes" test $? = 0

finish
