# An agent that is right whenever it answers. Sorting it never comes to an end.
set -eu
sleep 0.3
case $1 in
  reverse-words) awk '{ for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : "\n") }' ;;
  sum-numbers) awk '{ sum += $1 } END { print sum }' ;;
  sort-lines) sleep 3600 ;;
  count-vowels) tr -cd aeiou | wc -c | tr -d ' ' ;;
esac
