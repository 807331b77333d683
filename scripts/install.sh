#!/usr/bin/env bash
# Puts an evalwave binary in place and gives its path as the output `binary`. In this order: the binary that the input
# names, a build from source, the tool cache, a release whose checksum is in this tree.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die() {
  printf '::error title=evalwave::%s\n' "$1"
  exit 2
}

found() {
  printf 'binary=%s\n' "$1" >>"$GITHUB_OUTPUT"
  exit 0
}

is_true() {
  case "$(printf '%s' "${1-}" | tr '[:upper:]' '[:lower:]')" in
    true | 1 | yes | on) return 0 ;;
    *) return 1 ;;
  esac
}

# From standard input: the line of a file whose name has a backslash in it begins with one.
checksum() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1" | cut -d' ' -f1; else shasum -a 256 <"$1" | cut -d' ' -f1; fi
}

# 1. A binary that is there already.
if [ -n "${EVALWAVE_INPUT_BINARY_PATH-}" ]; then
  [ -f "$EVALWAVE_INPUT_BINARY_PATH" ] || die "input \`binary-path\`: there is no such file"
  case "$EVALWAVE_INPUT_BINARY_PATH" in
    # A name alone would be looked for on the PATH.
    /* | [A-Za-z]:*) found "$EVALWAVE_INPUT_BINARY_PATH" ;;
    *) found "$PWD/$EVALWAVE_INPUT_BINARY_PATH" ;;
  esac
fi

case "${RUNNER_OS-}-${RUNNER_ARCH-}" in
  Linux-X64) target=x86_64-unknown-linux-gnu ;;
  Linux-ARM64) target=aarch64-unknown-linux-gnu ;;
  macOS-X64) target=x86_64-apple-darwin ;;
  macOS-ARM64) target=aarch64-apple-darwin ;;
  Windows-X64) target=x86_64-pc-windows-msvc ;;
  Windows-ARM64) target=aarch64-pc-windows-msvc ;;
  *) target= ;;
esac
suffix=
if [ "${RUNNER_OS-}" = Windows ]; then suffix=.exe; fi

# 2. From source: because it was asked for, or because the action is the checkout itself (`uses: ./`).
workspace=
if [ -n "${GITHUB_WORKSPACE-}" ] && [ -d "$GITHUB_WORKSPACE" ]; then workspace=$(cd "$GITHUB_WORKSPACE" && pwd); fi
from_source=${EVALWAVE_INPUT_BUILD_FROM_SOURCE-}
case "$root/" in "$workspace"/*) if [ -n "$workspace" ]; then from_source=true; fi ;; esac
if is_true "$from_source"; then
  command -v cargo >/dev/null || die "building from source needs cargo: install Rust in a step before"
  target_dir=${CARGO_TARGET_DIR:-$root/target}
  cargo build --manifest-path "$root/Cargo.toml" --release --locked --target-dir "$target_dir"
  found "$target_dir/release/evalwave$suffix"
fi

# 3. and 4. A release.
[ -n "$target" ] || die "there is no release for ${RUNNER_OS-this system} on ${RUNNER_ARCH-this processor}: set \`build-from-source: true\`"
own=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
version=${EVALWAVE_INPUT_VERSION:-$own}
version=${version#v}
case "$version" in '' | *[!0-9A-Za-z.+-]*) die "input \`version\`: expected one like $own" ;; esac
archive="evalwave-$version-$target.tar.gz"
sums="$root/checksums/sha256.txt"
wanted=
if [ -f "$sums" ]; then wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$sums" | head -n 1); fi
if [ -z "$wanted" ] && [ "$version" != "$own" ]; then
  die "this action is of evalwave $own and has no checksum of $version: use the action's own tag \`v$version\`"
fi
[ -n "$wanted" ] || die "this tree has no checksum of $archive: use a tagged release of the action, or set \`build-from-source: true\`"

cache=
if [ -n "${RUNNER_TOOL_CACHE-}" ]; then cache="$RUNNER_TOOL_CACHE/evalwave/$version/$target-${wanted:0:16}"; fi
if [ -n "$cache" ] && [ -f "$cache.complete" ]; then found "$cache/evalwave$suffix"; fi

base=${EVALWAVE_INPUT_DOWNLOAD_BASE_URL:-https://github.com/${EVALWAVE_ACTION_REPOSITORY-}/releases/download}
scratch=$(mktemp -d "${RUNNER_TEMP:-/tmp}/evalwave-install.XXXXXX")
curl --fail --silent --show-error --location --retry 3 --connect-timeout 20 --max-time 300 \
  --output "$scratch/$archive" "${base%/}/v$version/$archive" || die "cannot download $archive from ${base%/}"
[ "$(checksum "$scratch/$archive")" = "$wanted" ] || die "$archive is not the one that was released: its checksum is another"
directory=${cache:-$scratch/unpacked}
mkdir -p "$directory"
(cd "$scratch" && tar -xzf "$archive")
cp "$scratch/evalwave$suffix" "$directory/evalwave$suffix"
chmod +x "$directory/evalwave$suffix"
if [ -n "$cache" ]; then : >"$cache.complete"; fi
found "$directory/evalwave$suffix"
