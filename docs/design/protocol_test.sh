#!/bin/sh
# Checks protocol.pml over all interleavings: protocol_test.sh WORLD PROPERTY [MISTAKE]
#   WORLD     Plain, STALLED, WIPED or RESTORED
#   PROPERTY  safety, or the name of an LTL formula of the model
#   MISTAKE   a mistake to build in: then the check must fail by an assertion
set -eu
model=$(cd "$(dirname "$0")" && pwd)/protocol.pml
world=$1 property=$2 mistake=${3:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

[ "$property" = safety ] || world="$world -DCRASHES"
# shellcheck disable=SC2086  # The world may be two words.
spin -a -D$world ${mistake:+-D"$mistake"} "$model" >spin.log 2>&1 || { cat spin.log; exit 2; }
if [ "$property" = safety ]; then
  cc -O2 -w -DSAFETY -DNOCLAIM -DCOLLAPSE -o pan pan.c
  ./pan -m10000 >pan.log
else
  cc -O2 -w -DNFAIR=3 -DCOLLAPSE -o pan pan.c
  ./pan -a -f -N "$property" -m10000 >pan.log
fi

# A search that was cut short has proven nothing.
if grep -qE 'max search depth too small|out of memory|hash conflict.*error' pan.log; then
  cat pan.log; exit 2
fi
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
[ -n "$errors" ] || { cat pan.log; exit 2; }
grep -E 'assertion violated|acceptance cycle|invalid end|states, stored' pan.log || true
if [ -z "$mistake" ]; then
  [ "$errors" -eq 0 ]
else
  [ "$errors" -gt 0 ] && grep -q 'assertion violated' pan.log
fi
