"""A ledger in Redis: several machines share it, and it forgets by time. Needs the extra ``[redis]``."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast, get_args

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..errors import LedgerError, UsageError
from . import Fate, Settled, check_limit, check_settled

#: KEYS are what is asked for; ARGV the value of this claim, its expiry in milliseconds, and "1" for all or nothing. The answer
#: has for each key the value that was there before, or "". A client that lost the answer and asks again finds its own value:
#: the claim is still its own.
_CLAIM: Final = """
local before, taken = {}, false
for i, key in ipairs(KEYS) do
    local value = redis.call('GET', key)
    if not value or value == ARGV[1] then before[i] = '' else before[i] = value; taken = true end
end
if not (taken and ARGV[3] == '1') then
    for i, key in ipairs(KEYS) do
        if before[i] == '' then redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
    end
end
return before
"""


class RedisLedger:
    """A ledger in a Redis server (or a compatible one), version 2.6.12 or newer.

    A claim lasts as long as the server's own memory does: see docs/ledger.md for what has to be set there.
    """

    def __init__(self, server: str | redis.Redis, *, expiry: int = 7 * 86_400, prefix: str = "toolwire", timeout: float = 5.0) -> None:
        """Does not connect yet.

        Args:
            server: a URL (``redis://``, ``rediss://``, ``unix://``), or a client of your own (not an asyncio one).
            expiry: seconds until a key is forgotten, counted from its last claim or settlement; its call could run again then.
                A week outlasts any reconnect, and a crash on a long weekend. One key costs about 200 bytes.
            prefix: stands before each key, in braces, so that a cluster keeps them in one slot.
            timeout: seconds to wait for an answer; for a URL only. A client of your own has its own.
        Raises:
            UsageError: ``expiry`` is less than 1, or ``server`` is neither.
        """
        self._expiry_ms = check_limit("expiry", expiry) * 1000
        self._prefix = f"{{{prefix}}}:"
        if isinstance(server, str):
            # One more try, at once: a connection that has been idle may be gone.
            try:
                server = redis.Redis.from_url(server, socket_timeout=timeout, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 1))
            except ValueError as error:
                raise UsageError(f"RedisLedger: {error}") from None
        elif inspect.iscoroutinefunction(getattr(server, "execute_command", None)) or not hasattr(server, "eval"):
            raise UsageError(f"RedisLedger takes a URL or a blocking client, not a {type(server).__name__}; asyncio: see docs/ledger.md")
        self._client = cast(Any, server)  # its annotations mix blocking and asyncio answers

    def claim(self, keys: Sequence[str], *, all_or_nothing: bool = False) -> dict[str, Fate]:
        """See ``Ledger.claim``."""
        if not keys:
            return {}
        value = f"released {secrets.token_hex(8)}"
        with _answers():
            before = self._client.eval(_CLAIM, len(keys), *map(self._name, keys), value, self._expiry_ms, "1" if all_or_nothing else "0")
            return _fates(keys, before)

    def settle(self, key: str, fate: Settled) -> None:
        """See ``Ledger.settle``."""
        check_settled(fate)
        with _answers():
            self._client.set(self._name(key), fate, px=self._expiry_ms)

    def fates(self, keys: Sequence[str]) -> dict[str, Fate]:
        """See ``Ledger.fates``."""
        if not keys:
            return {}
        with _answers():
            return _fates(keys, self._client.mget([self._name(key) for key in keys]))

    def close(self) -> None:
        """Closes the client's connections; the next use opens them again."""
        self._client.close()

    def _name(self, key: str) -> str:
        return self._prefix + key


@contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise LedgerError(f"the release ledger in Redis did not answer, and nothing is released without it: {type(error).__name__}: {error}") from error


def _fates(keys: Sequence[str], values: Sequence[bytes | str | None]) -> dict[str, Fate]:
    found: dict[str, Fate] = {}
    for key, value in zip(keys, values, strict=True):
        if value:
            word = (value if isinstance(value, str) else value.decode("utf-8", "replace")).partition(" ")[0]
            if word not in get_args(Fate):
                raise LedgerError(f"the release ledger in Redis holds {word!r} for a call, which is no fate: is its prefix used by something else?")
            found[key] = cast(Fate, word)
    return found
