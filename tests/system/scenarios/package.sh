# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Not a scenario: what packages of all kinds have in common. Sourced after assert.sh.

# upgraded_while_measuring COMMAND...: the command puts another version of tlobd in place of the one that runs.
upgraded_while_measuring() {
        local victim=/usr/libexec/tlob-tests/victim process pid

        check "a binding stays" tlobctl add-binding stays --persist --executable="$victim" --function=victim_a \
                --budget=1min
        "$victim" repeat:100 '(' 'a(' ')' ')' >/dev/null
        "$victim" repeat:40 '(' 'a(' sleep:100000000 ')' ')' >/dev/null &
        process=$!
        echo '# changed by hand' >>/etc/tlob/tlobd.conf
        pid=$(main_pid)
        check "they can be upgraded, with a window open" "$@"
        wait $process
        check "it is another daemon" [ "$(main_pid)" != "$pid" ]
        check "and measures" until_true binding_has stays State active
        equal "all windows have been counted, also meanwhile" "$(binding stays Windows) $(counter stays in-budget)" "140 140"
        matches "what was changed by hand is kept" "$(cat /etc/tlob/tlobd.conf)" 'changed by hand'
}

# The identifiers of the daemon's own programs: others on the machine have programs, too.
programs_of() {
        sed -n 's/^prog_id:\t*//p' /proc/"$1"/fdinfo/* | sort -un
}

# They are freed some time after their last descriptor.
none_loaded() {
        local loaded

        loaded=$(bpftool -j prog list | jq '.[].id') || return 1
        ! grep -qxFf <(printf '%s\n' "$@") <<<"$loaded"
}
