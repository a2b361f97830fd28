"""ijson's own tests, of its backends and of what stands around them, with `toolwire.compat.ijson` as the only backend there is."""

from _peer import Peer

CONFTEST = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))
import ijson
import ijson.common
import toolwire.compat.ijson

sys.modules["ijson.backends.toolwire"] = toolwire.compat.ijson
ijson.ALL_BACKENDS = toolwire.compat.ijson.ALL_BACKENDS
ijson.from_iter = toolwire.compat.ijson.from_iter
ijson.common.ObjectBuilder = toolwire.compat.ijson.ObjectBuilder
for name in toolwire.compat.ijson.__all__:
    if not name.endswith(("Error", "_backend", "_BACKENDS", "_basecoro")) and hasattr(ijson, name):
        setattr(ijson, name, getattr(toolwire.compat.ijson, name))
"""


PEER = Peer(
    name="ijson",
    version="3.6.0",
    conftest=CONFTEST,
    # Not: test_dump.py and test_benchmark.py, which start ijson's own commands with its own backend.
    tests=[f"tests/test_{name}.py" for name in ("adapters", "basic_parse", "generators", "items", "kvitems", "memleaks", "misc", "parse", "pulling")],
    options=["--memleaks"],
)
