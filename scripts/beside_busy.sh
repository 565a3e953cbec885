#!/bin/sh
# Run a command beside busy processes: usage: beside_busy.sh HOW_MANY COMMAND [arguments].
#
# Tests must not depend on how long anything takes; on a machine with more work than cores,
# everything takes longer, and by different factors.
set -u

many=$1
shift
busy=""
trap 'kill $busy 2>/dev/null' EXIT
trap 'exit 1' INT TERM
while [ "$many" -gt 0 ]; do
    sh -c 'while :; do :; done' &
    busy="$busy $!"
    many=$((many - 1))
done
"$@"
