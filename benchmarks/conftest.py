"""``pytest benchmarks`` times things: one process, one after the other."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("xdist"):
        config.option.numprocesses = 0
        config.option.dist = "no"
