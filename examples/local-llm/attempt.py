"""Asks the model one question, grades its answer, and writes the result."""

import json
import os
import re
import sys
import urllib.request

SERVER_IS_GONE = 75

prompt_file, eval_file, result_file = sys.argv[1:]
with open(eval_file, encoding="utf-8") as file:
    task = json.load(file)
with open(prompt_file, encoding="utf-8") as file:
    prompt = file.read().rstrip("\n").replace("{question}", task["question"])

request = urllib.request.Request(
    os.environ["LOCAL_LLM_URL"] + "/v1/completions",
    json.dumps({"prompt": prompt, "max_tokens": 16, "temperature": 0.7, "stop": ["\n"]}).encode(),
    {"Content-Type": "application/json"},
)
try:
    with urllib.request.urlopen(request) as response:
        completion = json.load(response)
except OSError as error:
    print(f"the server does not answer: {error}", file=sys.stderr)
    sys.exit(SERVER_IS_GONE)

answer = completion["choices"][0]["text"].strip()
print(f"{task['question']}\n{answer}")

words = re.findall(r"\w+", answer.lower())
right = any(expected in words for expected in task["answers"])
short = 0 < len(words) <= 8
result = {
    "passed": right and short,
    "checks": [
        {"name": "right answer", "passed": right, "notes": answer},
        {"name": "short answer", "passed": short, "notes": f"{len(words)} words"},
    ],
    "usage": {
        "inputTokens": completion["usage"]["prompt_tokens"],
        "outputTokens": completion["usage"]["completion_tokens"],
    },
}
with open(result_file, "w", encoding="utf-8") as file:
    json.dump(result, file, indent=2)
