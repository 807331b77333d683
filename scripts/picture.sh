#!/usr/bin/env bash
# Makes docs/comment.png again: the comment of a real run of the quickstart. Needs cmark-gfm and chromium, from Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo run --locked --quiet -- run -c examples/quickstart/evalwave.yml -o "$out/run" >/dev/null
{
  cat <<'HTML'
<!doctype html><meta charset="utf-8"><style>
body { margin: 16px; width: 860px; font: 14px/1.5 "Noto Sans", "DejaVu Sans", Helvetica, Arial, sans-serif; color: #1f2328; }
.comment { border: 1px solid #d1d9e0; border-radius: 6px; }
.author { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; color: #59636e; }
.author b { color: #1f2328; }
.body { padding: 4px 16px 16px; }
h3 { font-size: 1.2em; margin: 12px 0 4px; }
p { margin: 4px 0 12px; }
table { border-collapse: collapse; margin: 8px 0; }
th, td { border: 1px solid #d1d9e0; padding: 5px 12px; }
tr:nth-child(2n) { background: #f6f8fa; }
code { background: #818b981f; border-radius: 6px; padding: 2px 5px; font: 85% "DejaVu Sans Mono", monospace; }
sub { font-size: 80%; color: #59636e; vertical-align: baseline; }
details { margin: 6px 0; }
</style><div class="comment"><div class="author"><b>github-actions</b> bot commented</div><div class="body">
HTML
  # The first section is open, as after a click.
  cmark-gfm --unsafe -e table "$out/run/report.md" | sed '0,/<details>/s//<details open>/'
  echo '</div></div>'
} >"$out/comment.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1.5 \
  --window-size=894,690 --screenshot="$PWD/docs/comment.png" "file://$out/comment.html" 2>/dev/null
