"""Options and profiles of the test run."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# The quick run is the same every time; --exhaustive looks for what is new.
settings.register_profile("quick", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("exhaustive", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="every cut and every beginning of every fixture, and many more examples")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("exhaustive" if config.getoption("--exhaustive") else "quick")


@pytest.fixture(scope="session")
def exhaustive(request: pytest.FixtureRequest) -> bool:
    """Was ``--exhaustive`` given?"""
    return bool(request.config.getoption("--exhaustive"))
