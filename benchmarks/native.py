"""Compiles noop.pyx to a temporary folder, once a run: the folder's name is handed on in the environment."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

FOLDER = "TOOLWIRE_BENCH_NATIVE"
_SETUP = "from setuptools import setup\nfrom Cython.Build import cythonize\nsetup(name='noop', ext_modules=cythonize('noop.pyx', quiet=True))\n"


def load() -> ModuleType:
    """The compiled module; ImportError says why there is none."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = _build()
    found = sorted(Path(os.environ[FOLDER]).glob("noop*.so")) + sorted(Path(os.environ[FOLDER]).glob("noop*.pyd"))
    if not found:
        raise ImportError("noop.pyx could not be compiled: it takes Cython, setuptools and a C compiler")
    spec = importlib.util.spec_from_file_location("noop", found[0])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build() -> str:
    folder = tempfile.mkdtemp(prefix="toolwire-benchmarks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copy(Path(__file__).with_name("noop.pyx"), folder)
    Path(folder, "setup.py").write_text(_SETUP, encoding="utf-8")
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=False, capture_output=True)
    return folder
