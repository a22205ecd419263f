#!/bin/sh
# SPDX-License-Identifier: MIT-0
# Makes .venv at the root of the project from the locks, with nothing but a Python >= 3.11 on the machine.
# Does nothing when the environment already matches the locks.  PYTHON=python3.12 chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."

python=""
for candidate in ${PYTHON:-python3 python3.12 python3.11 python3.13}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "make env: no Python >= 3.11 found (tried: ${PYTHON:-python3 python3.12 python3.11 python3.13})." >&2
    echo "          Install one, or name it: make env PYTHON=/path/to/python3.12" >&2
    exit 1
fi

wanted=$(cat trainer/bootstrap.lock trainer/requirements.lock trainer/pyproject.toml | cksum)
if [ "$(cat .venv/lock.cksum 2>/dev/null || true)" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then exit 0; fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "make env: creating .venv with $("$python" --version)"
    rm -rf .venv
    if ! "$python" -m venv .venv; then
        echo "make env: '$python -m venv' failed. On Debian or Ubuntu: apt-get install python3-venv" >&2
        exit 1
    fi
fi
echo "make env: installing the locked packages, about 5 GB on Linux (its torch wheel needs the CUDA libraries even on a CPU)"
.venv/bin/python -m pip install --quiet --require-hashes -r trainer/bootstrap.lock
# A cache on another disk cannot be hard-linked; copying is fine and not worth a warning.
UV_LINK_MODE=${UV_LINK_MODE:-hardlink} .venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes trainer/requirements.lock 2>&1 \
    | { grep -v -e 'Failed to hardlink' -e 'full copy' || true; }
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e trainer
echo "$wanted" > .venv/lock.cksum
echo "make env: ready ($(.venv/bin/lingoss --version))"
