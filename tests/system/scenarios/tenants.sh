# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What the system's tlobd measures for a user's own: who may have it, what of hers is measured and counted, and that
# nobody else pays for it, or can be looked into.

. "${BASH_SOURCE[0]%/*}/alice.sh"

rules=/etc/polkit-1/rules.d/50-tlob-test.rules
rm -f $rules

start_fresh
begin_alice
writes .config/systemd/user/app.service '[Service]\nExecStart=%s/server\n' $home
writes .config/systemd/user/app.service.d/50-latency.conf "$request" 1ms
install -o alice -m 755 $server $home/server
as_alice systemctl --user daemon-reload
check "her tlobd starts" as_alice systemctl --user start tlobd
as_alice systemctl --user start app

check "who has no permission is told so" until_true eval \
        'hers app.service/request StateReason | grep -q "permission from polkit for org.tlob1.measure-own-units"'
equal "and nothing of hers is measured" "$(hers app.service/request State)" failed

cat >$rules <<'END'
polkit.addRule(function(action, subject) {
        if (action.id == "org.tlob1.measure-own-units" && subject.user == "alice")
                return polkit.Result.YES;
});
END
systemctl restart polkit
sleep 11
as_alice systemctl --user stop app
check "she asks again" ctl reload
as_alice systemctl --user start app
check "what she has is measured" until_true hers_has app.service/request State active
tlobctl --user status || true
as_alice tlobctl --user show app.service/request
sleep 1
as_alice tlobctl --user show app.service/request
as_alice tlobctl --user violations | head -5
as_alice systemctl --user stop app
as_alice journalctl --user -q -u app.service | tail -3
journalctl -q -b -u tlobd | tail
as_alice journalctl --user -q -u tlobd | tail
finish
