#!/bin/sh
# Runs one agent on one eval, grades its answer, and writes the result.
set -eu
experiment=$1
eval=$2

answer=$(sh "agents/$experiment.sh" "$eval" < "evals/$eval/input.txt")

passed=false
if [ "$answer" = "$(cat "evals/$eval/expected.txt")" ]; then passed=true; fi

mkdir -p "results/$experiment"
cat > "results/$experiment/$eval.json" <<RESULT
{
  "experiment": "$experiment",
  "eval": "$eval",
  "passed": $passed,
  "checks": [{ "name": "the answer is the expected one", "passed": $passed }]
}
RESULT
