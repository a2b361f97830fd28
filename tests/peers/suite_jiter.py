"""jiter's own tests of its Python face, with `toolwire.compat.jiter` for jiter."""

from _peer import Peer

CONFTEST = """
import sys

import toolwire.compat.jiter

sys.modules["jiter"] = toolwire.compat.jiter
"""
CACHE = "this library keeps no cache of strings that could be asked for or cleared"
TESTS = "crates/jiter-python/tests/test_jiter.py"


PEER = Peer(
    name="jiter",
    version="0.19.0",
    conftest=CONFTEST,
    tests=[TESTS],
    expected={
        f"{TESTS}::test_python_cache_usage_all": CACHE,
        f"{TESTS}::test_python_cache_usage_keys": CACHE,
        f"{TESTS}::test_short_strings_are_singletons": "the values are equal; that strings of one character are the same objects is not promised",
    },
)
