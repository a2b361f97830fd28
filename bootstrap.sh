#!/bin/sh
# Installs this checkout into .venv, with the extras named:  sh bootstrap.sh [EXTRA ...]
# On Debian the headers and the venv module are packages of their own; they are installed if they are missing.
set -eu
cd "$(dirname "$0")"
python=${PYTHON:-python3}

ready() { "$python" -c 'import ensurepip, os, sysconfig, venv; raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' 2>/dev/null && command -v cc >/dev/null; }
if ! ready && command -v apt-get >/dev/null; then
    root=$([ "$(id -u)" = 0 ] || echo sudo)
    $root apt-get -qq update
    DEBIAN_FRONTEND=noninteractive $root apt-get -qq install -y --no-install-recommends gcc libc6-dev python3-dev python3-venv >/dev/null
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv
extras=$(echo "$*" | tr ' ' ',')
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
pip wheel --no-deps --wheel-dir "$wheels" .
pip install --force-reinstall --no-deps "$wheels"/*.whl
pip install "$(echo "$wheels"/*.whl)${extras:+[$extras]}"
