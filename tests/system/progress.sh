# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# How the system suite's scripts speak to whoever runs them, on standard error: standard output is
# for results. And where they keep what is too dear to be made twice.

CACHE=${TLOB_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tlob}

say() {
        printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
        say "$*"
        exit 1
}

# need COMMAND...: ends with a sentence when one of them is not there.
need() {
        local missing=() command

        for command; do
                [ -n "$(type -P "$command")" ] || missing+=("$command")
        done
        [ ${#missing[@]} -eq 0 ] ||
                die "not found: ${missing[*]}. \"tools/packages system\" installs what is needed."
}

# step TEXT COMMAND...: runs the command with its output in a log, and says how long it took. The
# log is shown when the command fails.
step() {
        local text=$1 started=$EPOCHREALTIME log

        shift
        log=$(mktemp)
        say "$text ..."
        if ! "$@" >"$log" 2>&1; then
                sed 's/^/    /' "$log" >&2
                rm -f "$log"
                die "$text: failed"
        fi
        rm -f "$log"
        say "$text: done after $(seconds_since "$started") s"
}

seconds_since() {
        local us=$(((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}) / 100000))

        printf '%d.%d' $((us / 10)) $((us % 10))
}

# in_cache NAME: waits until no other run changes NAME in the cache, and holds it until this script
# ends.
in_cache() {
        mkdir -p "$CACHE"
        exec {cache_lock}>"$CACHE/$1.lock"
        if ! flock --nonblock "$cache_lock"; then
                say "another run is making $1: waiting for it"
                flock --timeout 1800 "$cache_lock" || die "waited half an hour for $CACHE/$1.lock"
        fi
}
