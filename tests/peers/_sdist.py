"""A peer's source distribution, as published, unpacked.

`pip download --no-binary` would first build the peer's metadata with the peer's own build tools (a Rust tool chain among them), which none of
this needs: the file is looked up in the index that pip is set up for (PEP 691) and its digest is checked.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
from pathlib import Path


def _index() -> str:
    """The index pip uses here: what its configuration says, else its own default."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    if said.returncode == 0 and said.stdout.strip():
        return said.stdout.strip().rstrip("/") + "/"
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/") + "/"


def fetch(name: str, version: str, into: Path) -> Path:
    """Download and unpack the sdist of `name` `version` below `into`; returns the folder it unpacked to. Raises RuntimeError where there is none."""
    page = urllib.parse.urljoin(_index(), name.lower().replace("_", "-") + "/")
    asked = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        files = json.load(answer)["files"]
    wanted = {f"{spelling}-{version}.tar.gz" for spelling in (name, name.replace("-", "_"))}
    found = next((file for file in files if file["filename"] in wanted), None)
    if found is None:
        raise RuntimeError(f"the index has no source distribution of {name} {version}")
    with urllib.request.urlopen(urllib.parse.urljoin(page, found["url"]), timeout=120) as answer:
        packed = answer.read()
    if hashlib.sha256(packed).hexdigest() != found["hashes"]["sha256"]:
        raise RuntimeError(f"{found['filename']} does not have the digest that the index names")
    into.mkdir(parents=True, exist_ok=True)
    archive = into / found["filename"]
    archive.write_bytes(packed)
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    return into / found["filename"].removesuffix(".tar.gz")
