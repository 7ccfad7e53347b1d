#!/usr/bin/env bash
# tools/wheel_test.sh [WHEEL]: installs the wheel in dist/, or this one, in a new virtual environment, runs `iosonar demo`, and
# prints how long both took.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(realpath "${1:-$(echo dist/*.whl)}")
python=$(tools/system.sh --python)
place=$(mktemp -d /var/tmp/iosonar-wheel.XXXXXX)
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/venv"
TIMEFORMAT='%R s (%U s + %S s of processor time)'
echo "libraries:"
time "$place/venv/bin/pip" install --quiet --disable-pip-version-check --constraint python/requirements.lock \
    --requirement <("$python" tools/requirements.py)
echo "wheel:"
time "$place/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
cd "$place"
echo "iosonar demo, from a new environment:"
time PATH=/usr/bin:/bin "$place/venv/bin/iosonar" demo >demo.log || { cat demo.log; exit 1; }
ls -l demo/*.html
"$place/venv/bin/iosonar" --version
