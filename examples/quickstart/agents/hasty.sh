# An agent that is quick and often wrong: it forgets words, and adds numbers right only the second time.
set -eu
sleep 0.1
case $1 in
  reverse-words) awk '{ print $NF }' ;;
  sum-numbers) awk -v attempt="$EVALWAVE_ATTEMPT" '{ sum += $1 } END { print sum + (attempt == 1) }' ;;
  sort-lines) sort ;;
  count-vowels) echo 5 ;;
esac
