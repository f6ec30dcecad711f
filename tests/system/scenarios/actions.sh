# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A violation starts a service, which finds the process in the middle of its window: with the fields of the journal,
# whatever is in them, not too often, and only if root wants it.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
violation=270a2c0044b740cdb4f203a0156802cb
violations=/run/tlob/violations
# What a shell or systemd could take for something else.
# shellcheck disable=SC2016
odd='/run/odd/a "b" $HOME ${PATH} `id` %i \x41 '"'c'"

service() { # NAME PROGRAM KEY=VALUE...
        printf '%s\n' '[Service]' "ExecStart=$2" '[X-Tlob a]' "Executable=$tests/victim" 'Function=victim_a' \
                'BudgetSec=10ms' "${@:3}" >"$etc/$1.service"
}

window_of() { # UNIT
        journalctl -q --boot -o json -t tlob MESSAGE_ID=$violation |
                jq -rs --arg unit "$1" 'map(select(.TLOB_UNIT == $unit))[0].TLOB_WINDOW_ID'
}

started() { # BINDING
        tlobctl show -j "$1" | jq -r '.[0] | "\(.OnViolationStarted) \(.OnViolationSkipped)"'
}

has_started() { # BINDING "STARTED SKIPPED"
        [ "$(started "$1")" = "$2" ]
}

cp $tests/tlob-stacks@.service $etc/
printf '%s\n' '[Service]' 'Type=oneshot' "EnvironmentFile=$violations/%i" 'ExecStart=/usr/bin/env' >"$etc/fields@.service"
printf '%s\n' '[Service]' 'Type=oneshot' 'ExecStart=sleep infinity' >"$etc/long@.service"
service late "$tests/victim a( sleep:20000000000 )" OnViolation=tlob-stacks@.service
mkdir -p /run/odd
cp $tests/victim "$odd"
ln "$odd" /run/odd/program
service odd "sh -c 'cd /run/odd && exec ./a* \"a(\" sleep:200000000 \")\"'" OnViolation=fields@.service
sed -i 's,^Executable=.*,Executable=/run/odd/program,' $etc/odd.service
service often "$tests/victim repeat:20 ( a( sleep:20000000 ) )" OnViolation=fields@.service
service long "$tests/victim repeat:60 ( a( sleep:50000000 ) )" OnViolation=long@.service OnViolationIntervalSec=1s
service missing "$tests/victim a( sleep:20000000 )" OnViolation=nothing@.service
service wrong "$tests/victim a( sleep:20000000 )" OnViolation=nothing.timer
systemctl daemon-reload
start_fresh

systemctl start late
stack=$(wait_for_entry '.MESSAGE | test("victim_a$")' -t eu-stack)
holds "the service finds the function that is late" "${stack:-null}" '._SYSTEMD_UNIT | test("^tlob-stacks@[0-9]+[.]service$")'
equal "its instance is the window" "$(jq -r ._SYSTEMD_UNIT <<<"$stack")" "tlob-stacks@$(window_of late.service).service"
check "while the window is open" [ "$(counter late.service/a open)" = 1 ]
check "the message is in its journal" wait_for_entry '.MESSAGE | test("^late.service/a: over its 10ms budget")' -t printf

systemctl start odd
check "a service gets the fields" wait_for_entry '.MESSAGE == "TLOB_BINDING=odd.service/a"' -t env
window=$(window_of odd.service)
for field in TLOB_EXECUTABLE TLOB_COMM TLOB_PID TLOB_ELAPSED_NS; do
        in_journal=$(journalctl -q --boot -o json -t tlob TLOB_WINDOW_ID="$window" MESSAGE_ID=$violation | jq -r ".$field")
        check "$field is as in the journal: $in_journal" wait_for_entry \
                "$(jq -n --arg message "$field=$in_journal" '$message | ".MESSAGE == \(tojson)"' -r)" -t env
done
equal "and it is the program's name" \
        "$(journalctl -q --boot -o json -t tlob TLOB_WINDOW_ID="$window" MESSAGE_ID=$violation | jq -r .TLOB_EXECUTABLE)" "$odd"

systemctl start --wait often
check "of many violations, the first starts it" until_true has_started often.service/a "1 19"
matches "that is shown" "$(tlobctl show often.service/a)" 'On violation: fields@.service: started 1 times, not started 19 times'

systemctl start --wait long
check "as long as the service goes on, it is not started again" until_true has_started long.service/a "1 59"
equal "there is one" "$(systemctl list-units --no-legend --plain 'long@*' | wc -l)" 1
systemctl stop 'long@*'
pause 1
systemctl start --wait long
check "then it is" until_true has_started long.service/a "2 118"
systemctl stop 'long@*'

systemctl start missing
check "a service that is not there is named" wait_for_entry \
        '.MESSAGE | test("^.nothing@[0-9]+[.]service., which was to be started on a violation of .missing.service/a., failed: Unit nothing@.* not found")' \
        -u tlobd
refuse "verify knows that it is not there" 1 'missing.service:[0-9]+: There is no unit nothing@.service' \
        tlobctl verify --unit=missing.service
check "and those that are" tlobctl verify --unit=late.service
refuse "also of a new binding" 1 'There is no unit nothing@.service' \
        tlobctl verify --executable=$tests/victim --function=victim_a --budget=1s --on-violation=nothing@.service
equal "one that is no service is refused" "$(binding wrong.service/a State)" failed
matches "with a sentence" "$(binding wrong.service/a StateReason)" 'OnViolation=nothing.timer is not the name of a service'

# Who may add bindings may not start services with them.
cat >/etc/polkit-1/rules.d/50-actions.rules <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.tlob1.manage-bindings" && subject.user == "nobody")
                return polkit.Result.YES;
});
END
systemctl restart polkit
check "somebody may add a binding" as_nobody tlobctl add-binding mine --executable=$tests/victim --function=victim_a --budget=1s
refuse "but none that starts services" 1 'OnViolation=fields@.service starts a service as root would: only root may' \
        as_nobody tlobctl add-binding yours --executable=$tests/victim --function=victim_a --budget=1s \
        --on-violation=fields@.service
printf '[Binding mine]\nOnViolation=fields@.service\n' >/etc/tlob/bindings.d/50-mine.conf
check "it reloads" eval '! tlobctl reload'
equal "nor if a file has the other half" "$(binding mine State)" failed
rm /etc/tlob/bindings.d/50-mine.conf
check "root may" tlobctl add-binding roots --executable=$tests/victim --function=victim_a --budget=1s \
        --on-violation=fields@.service
rm /etc/polkit-1/rules.d/50-actions.rules
systemctl restart polkit

check "the files are few" [ "$(find $violations -type f | wc -l)" = 6 ]
refuse "and only root reads them" 2 'Permission denied' as_nobody ls $violations

finish
