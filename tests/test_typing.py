"""A user's strictly checked code against the published types."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolwire

EXAMPLES = Path(__file__).resolve().parent / "typing" / "examples.py"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed: it is in the extra [dev]")
def test_a_users_code_checks_strictly(tmp_path: Path) -> None:
    # Away from the checkout and its settings: what is found is the package that these tests import. The checker finds an installed
    # one by itself, and refuses to be told where that is.
    found = Path(toolwire.__file__).resolve().parents[1]
    environment = {k: v for k, v in os.environ.items() if k != "MYPYPATH"}
    if found.name != "site-packages":
        environment["MYPYPATH"] = str(found)
    check = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file", "", "--python-version", "3.11", str(EXAMPLES)]
    done = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
