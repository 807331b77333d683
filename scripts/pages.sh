#!/usr/bin/env bash
# Makes docs/report.png and docs/report-pair.png again: the page of an invented run of 237 pairs. Needs node, and chromium
# and pngquant from Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --quiet
(cd tests/browser && npm ci --silent)
EVALWAVE=$PWD/target/debug/evalwave EVALWAVE_TEST_CHROMIUM=$(command -v chromium) \
  node tests/browser/pictures.mjs "$PWD/docs"
pngquant --force --skip-if-larger --quality 60-95 --ext .png docs/report.png docs/report-pair.png
