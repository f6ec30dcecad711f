# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What the system's tlobd measures for that of a user: who may have it, what is counted, that nobody else pays for it or
# is looked into, and that whoever does not keep to the rules gets nothing.

. "${BASH_SOURCE[0]%/*}/alice.sh"

rules=/etc/polkit-1/rules.d/50-tlob-test.rules
rm -f $rules
user_cgroup=/user.slice/user-$alice.slice/user@$alice.service/app.slice

# ends: what her service has said, each time that it was stopped. Of what has exited already, journald may not know the
# unit any more.
ends() {
        as_alice journalctl --user -q -t server -o cat --grep='^handled'
}

# handled: so many requests has it handled, as it said when it was stopped last.
handled() {
        ends | tail -1 | sed 's/handled //'
}

# has_ended N: it was stopped so often.
has_ended() {
        [ "$(ends | wc -l)" -ge "$1" ]
}

counter() {
        hers "$1" "Counters.\"$2\""
}

# restart_app PROGRAM: her service, as that.
restart_app() {
        as_alice systemctl --user stop app
        writes .config/systemd/user/app.service '[Service]\nType=exec\nExecStart=%s\n' "$1"
        as_alice systemctl --user daemon-reload
        until_true hers_has app.service/request State waiting || true
        as_alice systemctl --user start app
}

# first_byte PID: of the code of handle_request() in that process. A breakpoint is 0xcc.
first_byte() {
        local base

        base=$((16#$(sed -n '1s/-.*//p' "/proc/$1/maps")))
        dd if="/proc/$1/mem" bs=1 skip=$((base + start)) count=1 2>/dev/null | od -An -tx1 | tr -d ' '
}

# says CASE: what the system's tlobd answers to her own program that does not keep to the rules.
says() {
        hears "$1" | tail -1
}

hears() {
        as_alice /usr/libexec/tlob-tests/tenant "$1" "$user_cgroup"/app.service $home/server
}

start_fresh
begin_alice
mkdir -p /etc/tlob/tlobd.conf.d
# limit KEY=VALUE...: for all users.
limit() {
        printf '[Daemon]\n' >/etc/tlob/tlobd.conf.d/users.conf
        printf '%s\n' "$@" >>/etc/tlob/tlobd.conf.d/users.conf
        tlobctl reload
}
check "the system's tlobd has a limit for users" limit UserInstanceBindingsMax=5
install -o alice -m 755 $server $home/server
writes .config/systemd/user/app.service '[Service]\nType=exec\nExecStart=%s\n' $home/server
writes .config/systemd/user/app.service.d/50-latency.conf "$request" 2500us
writes .config/systemd/user/app.service.d/60-lock.conf '[X-Tlob lock]\nFunction=wait_for_lock\nBudgetSec=200us\nOnViolation=look@.service\n'
writes .config/systemd/user/look@.service \
        '[Service]\nType=oneshot\nExecStart=/bin/sh -c "test -s %%t/tlob/violations/%%i && id -un"\n'
as_alice systemctl --user daemon-reload
check "her tlobd starts" as_alice systemctl --user start tlobd

refused='Access denied: this requires root, or permission from polkit for org.tlob1.measure-own-units'
matches "who has no permission is told so" "$(hers app.service/request StateReason)" "$refused"
matches "by the system's tlobd" "$(hears good)" "$refused"
# It would ask again by itself, and have what others of her are to have.
as_alice systemctl --user stop tlobd

cat >$rules <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.tlob1.measure-own-units" && subject.user == "alice")
                return polkit.Result.YES;
});
END
systemctl restart polkit
matches "others still have not" "$(as_nobody /usr/libexec/tlob-tests/tenant good / /)" "$refused"

equal "a version of its own is refused" "$(says version)" \
        "The system's tlobd is of another version: run 'systemctl --user restart tlobd'"
matches "who has nothing yet has nothing to ask about" "$(says early)" "^Access denied: nothing is measured for this"
equal "what is not there is not there" "$(hears nothing | sort | uniq -c | xargs)" "3 No such device or address 1 done"
equal "a binding has all of its keys" "$(says cut-off)" "Bad message"
for case in system-cgroup future-cgroup root-cgroup dots relative; do
        matches "a cgroup must be hers: $case" "$(says $case)" "is no cgroup that was delegated to user $alice"
done
matches "a template is nobody's" "$(says template)" 'is for no unit of the user'
for case in call event; do
        matches "what all would pay for is refused: $case" "$(says $case)" 'are not measured for users'
done
equal "budgets are looked at" "$(says short-budget)" "Numerical result out of range"
for case in directory device held-device unreadable no-file; do
        matches "so are files: $case" "$(says $case)" 'is no file that can be read by user'
done
matches "and file systems" "$(says process-file)" 'is on a file system that may not answer'
matches "and places" "$(says no-code)" '0x1'
equal "whose number is one" "$(says no-number)" "Bad file descriptor"
equal "an id is used once" "$(says twice)" "File exists"
matches "there is a limit" "$(says many)" 'has 5 bindings already, as many as UserInstanceBindingsMax='
says flood >/dev/null
check "a flood keeps nobody out" eval 'says good | grep -qx done'
check "and nothing is left of it" until_true eval '[ "$(tlobctl status -j | jq .NUserBindings)" = 0 ]'
check "the limit can be none" limit UserInstanceBindingsMax=0
matches "and then it is" "$(says good)" 'does not measure for users \(UserInstanceBindingsMax='
check "or any other" limit UserInstanceBindingsMax=5 RateLimitBurst=100000 OverallRateLimitBurst=100000

# Who is told something, and does not read it.
n_ends=$(ends | wc -l)
as_alice systemctl --user start app
deaf=$(hears deaf)
matches "who does not say that it has heard is told no more" "$deaf" '128 reports, 0 with losses'
matches "until it does, and then what it has missed" "$deaf" 'more, 1 with losses'
# Nor is it told who else is on the machine.
libc=$(sed -n 's/.* \(.*\/libc\.so\.6\)$/\1/p' "/proc/$(as_alice systemctl --user show -P MainPID app)/maps" | head -1)
matches "who is woken by an interrupt is not told whom that came upon" \
        "$(as_alice /usr/libexec/tlob-tests/tenant woken "$user_cgroup/app.service" "$libc" | tail -1)" \
        '^[1-9][0-9]* by interrupts, 0 others$'
as_alice systemctl --user stop app
check "the limit is the usual one again" limit UserInstanceBindingsMax=5

# Her own program, from its first call on.
check "with permission, what she has can be had" as_alice systemctl --user start tlobd
equal "as soon as its unit runs" "$(hers app.service/request State)" waiting
as_alice systemctl --user start app
check "and is measured" until_true eval '[ "$(counter app.service/request violated)" -gt 20 ]'
equal "by the system's tlobd" "$(hers app.service/request Backend)" system
for name in $(busctl list --no-legend | awk -v pid="$(as_alice systemctl --user show -P MainPID tlobd)" '$2 == pid { print $1 }'); do
        as_nobody /usr/libexec/tlob-tests/tenant forge "$name" forged
done
matches "which says so" "$(tlobctl status)" "For users: [0-9]+ bindings"
start=$(hers app.service/request StartOffset)
as_alice systemctl --user stop app
until_true hers_has app.service/request State waiting
check "it says how many calls there were" until_true has_ended $((n_ends + 2))
equal "each was counted" "$(counter app.service/request starts)" "$(handled)"
equal "and ended" $(($(counter app.service/request violated) + $(counter app.service/request in-budget))) "$(handled)"
matches "a budget for her is proposed to her" "$(ctl suggest app.service/request)" '^tlobctl --user set-budget app[.]service/request [0-9]'
check "her journal has it" eval \
        'as_alice journalctl --user -q -u app.service -t tlob --grep="over its 2.5ms budget in server" | grep -q .'
check "but nothing that others say" eval '[ -n "$name" ] && ! as_alice journalctl --user -q -t tlob --grep=forged | grep -q .'
check "a violation starts a service of hers" until_true eval \
        'as_alice journalctl --user -q -t sh -o cat | grep -qx alice'
check "with its cause" eval 'as_alice journalctl --user -q -t tlob --grep="app.service/lock: .*blocked in [a-z_]*lock" | grep -q .'
equal "the system's knows nothing of it" "$(journalctl --boot -q -t tlob _UID=0; tlobctl violations -j)" "[]"

# A program of all.
other=$(systemd-run --quiet --property=Type=exec --unit=other $server && systemctl show -P MainPID other)
before=$(hers app.service/request Windows)
restart_app $server
check "a program that others run is measured" until_true eval '[ "$(hers app.service/request Windows)" -gt "$before" ]'
before=$(first_byte "$other")
mine=$(as_alice systemctl --user show -P MainPID app)
equal "by probes in her processes" "$(first_byte "$mine")" cc
check "and in no others" [ "$before" != cc ]
matches "as it says" "$(hers app.service/request Reach)" 'the processes of its unit'
equal "nobody else hits them" "$(counter app.service/request outside)" 0

# What has more rights than she has is none of her business, though it runs in her unit.
install -m 4755 $server /usr/local/bin/privileged
restart_app /usr/local/bin/privileged
mine=$(as_alice systemctl --user show -P MainPID app)
equal "a program with more rights runs in her unit" "$(awk '/^Uid/ { print $3 }' "/proc/$mine/status")" 0
until_true hers_has app.service/request State active
before=$(hers app.service/request Windows)
sleep 0.5
equal "and is not measured" "$(hers app.service/request Windows)" "$before"
equal "nor is it counted what it does" "$(counter app.service/request outside)" 0
check "it has none of her probes" [ "$(first_byte "$mine")" != cc ]

restart_app $home/server
until_true eval '[ "$(hers app.service/request Windows)" -gt "$before" ]'
before=$(hers app.service/request Windows)
systemctl restart tlobd
check "it goes on when the system's tlobd is restarted" until_true eval \
        '[ "$(hers app.service/request Windows)" -gt $((before + 50)) ]'
systemctl kill -s KILL tlobd
before=$(hers app.service/request Windows)
check "also when it is killed" until_true eval '[ "$(hers app.service/request Windows)" -gt $((before + 50)) ]'
systemctl stop tlobd
check "without one, nothing is measured, as it says" until_true eval \
        "hers app.service/request StateReason | grep -q 'is not there: start it'"
check "and is no service to rely on" until_true hers_has app.service/request State failed
# Her processes are looked at meanwhile, for the third time after 3 s. That finds no reason that would stay.
as_alice systemctl --user restart app
sleep 4
check "that it has counted can be forgotten" ctl reset-statistics app.service/request
refuse "but it is not ok" 3 'unmeasured' ctl is-ok app.service/request
systemctl start tlobd
before=$(hers app.service/request Windows)
check "and it is when that is back" until_true eval '[ "$(hers app.service/request Windows)" -gt "$before" ]'
equal "without a word" "$(hers app.service/request State) $(hers app.service/request StateReason)" "active "

# The system's may not answer, and then hers does not wait for it only. A call can be in the time that it does.
systemctl kill -s STOP tlobd
as_alice systemctl --user restart app
sleep 1
check "hers answers while the system's does not" eval 'ctl list-bindings || ctl list-bindings'
systemctl kill -s CONT tlobd
before=$(hers app.service/request Windows)
check "and measures when that does" until_true eval '[ "$(hers app.service/request Windows)" -gt "$before" ]'
equal "again without a word" "$(hers app.service/request State) $(hers app.service/request StateReason)" "active "

# A file that cannot be read is no matter of what is measured already.
readers=$(pgrep -x tlobd-files -u root -P "$(pgrep -o -x tlobd-files -u root)")
writes .config/systemd/user/app.service.d/70-slow.conf '[X-Tlob slow]\nFunction=compute\nBudgetSec=1s\n'
# shellcheck disable=SC2086
kill -STOP $readers
before=$(hers app.service/request Windows)
as_alice systemctl --user daemon-reload
check "who waits for a file is told so" until_true eval \
        "hers app.service/slow StateReason | grep -q 'could not be read within 5s'"
equal "as a failure" "$(hers app.service/slow State)" failed
check "while the others go on" [ "$(hers app.service/request Windows)" -gt "$((before + 50))" ]
equal "as if nothing were" "$(hers app.service/request State) $(hers app.service/request StateReason)" "active "
# shellcheck disable=SC2086
kill -CONT $readers
check "it is measured, too, when its file can be read" until_true hers_has app.service/slow State active

check "what is measured for users can be ended" limit UserInstanceBindingsMax=0
check "which is told" until_true eval \
        "hers app.service/request StateReason | grep -q 'does not measure for users'"
equal "as a failure" "$(hers app.service/request State)" failed
before=$(hers app.service/request Windows)
check "when it is permitted again" limit UserInstanceBindingsMax=5
check "it goes on by itself" until_true eval '[ "$(hers app.service/request Windows)" -gt "$before" ]'
equal "and is well again" "$(hers app.service/request State) $(hers app.service/request StateReason)" "active "

# Upgrades between versions that do not understand each other: the file is another one before the system's runs it.
program=$(systemctl show -P ExecStart tlobd | sed 's/.*path=\([^ ;]*\).*/\1/')
language=$(/usr/libexec/tlob-tests/tenant wire-version)
cp -p "$program" "$program.one"
cp -p "$program" "$program.other"
perl -0777 -pi -e "BEGIN { (\$own, \$other) = map { pack('Q<', \$_) } $language, $language + 1 } s/\Q\$own\E/\$other/g" \
        "$program.other"
check "there is another version" eval '! cmp -s "$program" "$program.other"'
install_the() { # one or other: as packages are
        cp -p "$program.$1" "$program.new"
        mv "$program.new" "$program"
}
hers_is() { # VERB: what has become of her tlobd
        as_alice systemctl --user show -P "$1" tlobd
}
was=$(hers_is MainPID)
is_another() {
        [ "$(hers_is MainPID)" != "$was" ] && [ "$(hers_is ActiveState)" = active ]
}
install_the other
as_alice systemctl --user restart tlobd
check "who is of another version than the system's is not measured" until_true hers_has app.service/request State failed
matches "and told so" "$(hers app.service/request StateReason)" 'of another version: run'
# By then, nobody looks at her processes any more.
sleep 5
was=$(hers_is MainPID)
systemctl restart tlobd
check "until that is upgraded, too" until_true hers_has app.service/request State active
equal "nobody was started anew for that" "$(hers_is MainPID) $(hers_is NRestarts)" "$was 0"
install_the one
systemctl restart tlobd
check "when both are upgraded, hers starts anew" until_true is_another
check "and measures" until_true eval '[ "$(hers app.service/request Windows)" -gt 0 ]'
equal "once, which is no failure" "$(hers_is NRestarts) $(hers_is Result)" "1 success"
check "and says why" eval 'as_alice journalctl --user -q -t tlobd --grep="was upgraded" | grep -q .'
rm "$program.one" "$program.other"

check "a budget of hers is changed" ctl set-budget app.service/request 1s
before=$(hers app.service/request Violations)
sleep 0.3
check "at once" [ "$(hers app.service/request Violations)" -le $((before + 1)) ]
systemctl stop other
other=$(systemd-run --quiet --property=Type=exec --unit=other $home/server && systemctl show -P MainPID other)
equal "her program has probes" "$(first_byte "$other")" cc
before=$(dd if=$home/server bs=1 skip=$((start)) count=1 2>/dev/null | od -An -tx1 | tr -d ' ')
as_alice systemctl --user stop app tlobd
check "when hers ends, nothing is measured for her" until_true eval '[ "$(tlobctl status -j | jq .NUserBindings)" = 0 ]'
check "and nothing is left in the code" until_true eval '[ "$(first_byte "$other")" = "$before" ]'
rm -f /usr/local/bin/privileged
systemctl stop other "user@$alice.service"

finish
