"""httpx-sse's own tests, with what it offers replaced by `toolwire.compat.httpx_sse`."""

from _peer import Peer

CONFTEST = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))
import httpx_sse
import toolwire.compat.httpx_sse

for name in toolwire.compat.httpx_sse.__all__:
    setattr(httpx_sse, name, getattr(toolwire.compat.httpx_sse, name))
"""


PEER = Peer(
    name="httpx-sse",
    version="0.4.3",
    conftest=CONFTEST,
    # Not: test_decoders.py, which tests a splitter of lines that httpx-sse keeps to itself.
    tests=[f"tests/test_{name}.py" for name in ("api", "asgi", "event_source", "exceptions", "models")],
    options=["--asyncio-mode=strict"],
    expected={
        "tests/test_event_source.py::test_iter_sse_id_retry": "a block without data sets the reconnection time and is no event (HTML standard 9.2.6)",
    },
)
