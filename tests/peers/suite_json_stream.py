"""json-stream's own tests, with `toolwire.compat.json_stream.tokenizer` for all of its tokenizers."""

from _peer import Peer

CONFTEST = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))
import json_stream_rs_tokenizer
from toolwire.compat.json_stream import tokenizer

json_stream_rs_tokenizer.RustTokenizer = tokenizer
json_stream_rs_tokenizer.rust_tokenizer_or_raise = lambda **_: tokenizer
import json_stream.tokenizer  # only now: it takes the default when it is imported

json_stream.tokenizer.tokenize = tokenizer
"""


TOKENIZER = "src/json_stream/tests/test_tokenizer.py::TestJsonTokenization::"
WORDING = "the error is raised, in other words: it names its code, the byte that is wrong and the offset of that byte"


PEER = Peer(
    name="json-stream",
    version="2.5.1",
    conftest=CONFTEST,
    tests=["src/json_stream"],
    options=["--import-mode=importlib"],
    expected={
        TOKENIZER + "test_operator_parsing": "operators that stand alone, as '}', are no JSON and refused",
        TOKENIZER + "test_sequence": "two values with a comma between them, but no array around them, are no JSON and refused",
        TOKENIZER + "test_string_parsing": WORDING,
        TOKENIZER + "test_unicode_": WORDING,
    },
)
