#!/usr/bin/env bash
# Runs the tests of pager.sh: one line a check, exit status 1 if one fails.
. "$(dirname "$0")/pager.sh"

failed=0
check() {
  if [ "$2" = "$3" ]; then
    echo "ok    $1"
  else
    echo "FAIL  $1: expected $3, got $2"
    failed=1
  fi
}

check "a full last page"       "$(page_count 20 10)" 2
check "a partly filled page"   "$(page_count 21 10)" 3
check "no lines, no pages"     "$(page_count 0 10)"  0
check "first line of page 3"   "$(first_line 3 10)"  21

[ "$failed" = 0 ] && echo "all tests passed"
exit "$failed"
