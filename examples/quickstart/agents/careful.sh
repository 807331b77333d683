# An agent that solves every task. On one of them its connection breaks, but only the first time.
set -eu
sleep 0.2
case $1 in
  reverse-words) awk '{ for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : "\n") }' ;;
  sum-numbers) awk '{ sum += $1 } END { print sum }' ;;
  sort-lines) sort ;;
  count-vowels)
    if [ "$EVALWAVE_TRY" = 1 ]; then
      echo "connection to the model lost" >&2
      exit 75
    fi
    tr -cd aeiou | wc -c | tr -d ' '
    ;;
esac
