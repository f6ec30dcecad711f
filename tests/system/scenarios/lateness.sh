# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# How late deadlines are found on this kernel, for each way to find them that it has. Nothing passes
# or fails by it, so it belongs to no suite: it prints the median and the 99th percentile.

. "${BASH_SOURCE[0]%/*}/assert.sh"

samples=$(LD_LIBRARY_PATH=/usr/libexec/tlob-tests /usr/libexec/tlob-tests/bench/bench-lateness 6 50)
check "there are figures" test -n "$samples"
printf '# Linux %s\n' "$(uname -r)"
while read -r name; do
        mapfile -t sorted < <(awk -v name="$name" '$1 == name { print $3 }' <<<"$samples" | sort -n)
        n=${#sorted[@]}
        [ "$n" -lt 100 ] || printf '# %s: p50 %s us, p99 %s us\n' "$name" "${sorted[n / 2]}" "${sorted[n * 99 / 100]}"
done < <(cut -d' ' -f1 <<<"$samples" | sort -u)

finish
