# The first process of a container: keeps it alive for so many seconds, and reaps what has no parent.
trap 'exit 0' TERM INT
end=$(($(date +%s) + $1))
while left=$((end - $(date +%s))) && [ "$left" -gt 0 ]; do
  sleep "$left" &
  wait "$!"
done
