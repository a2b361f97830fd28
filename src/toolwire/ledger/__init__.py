"""What a gate has released, and what became of it.

A gate releases a call once. It *claims* the call's key before ``decide`` returns; whoever runs the call *settles* the key
afterwards. A process that is killed in between leaves a claim that nobody settles: the call may have run or not, and no gate
that shares the ledger releases it again.

============================  ==========================================  ========================================
ledger                        who shares it                               what it forgets
============================  ==========================================  ========================================
``MemoryLedger``              gates of one process; gone with it          the oldest, past ``max_keys``
``ledger.sqlite``             processes of one machine; on disk           the oldest, past ``max_keys``
``ledger.redis``              machines; as durable as the server is       what is older than ``expiry``
============================  ==========================================  ========================================

Keys are digests (``RunnableCall.release_key``): no ledger sees a name, an id or argument text.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, get_args

from ..errors import UsageError

#: What became of a call that ran, as its caller says.
Settled: TypeAlias = Literal["done", "failed"]
#: What is known of a key: "released" is a claim that nobody has settled. The call runs, has run, or was lost on the way.
Fate: TypeAlias = Literal["released", "done", "failed"]


class Ledger(Protocol):
    """What a gate asks of its memory. Safe to use from several threads.

    A ledger that can not answer raises ``LedgerError``, and its gate then releases nothing. A claim whose answer was lost may
    stand: then those calls are refused from there on, as released.
    """

    def claim(self, keys: Sequence[str], *, all_or_nothing: bool = False) -> dict[str, Fate]:
        """Claim the keys that nobody has claimed, in one atomic step that lasts once this returns.

        Args:
            keys: what to claim.
            all_or_nothing: claim none if one of them was claimed before.
        Returns:
            the keys that were claimed before, with their fates. Empty: all are claimed now, by this call.
        Raises:
            LedgerError: no answer. None of the keys may be taken as claimed.
        """

    def settle(self, key: str, fate: Settled) -> None:
        """Record what became of a claimed call. A key that was forgotten meanwhile is remembered anew; the last word counts.

        Raises:
            UsageError: ``fate`` is none.
            LedgerError: no answer. The fate may stay unknown.
        """

    def fates(self, keys: Sequence[str]) -> dict[str, Fate]:
        """Those of the keys that were claimed, with their fates.

        Raises:
            LedgerError: no answer.
        """


class MemoryLedger:
    """A ledger that ends with its process."""

    def __init__(self, *, max_keys: int = 10_000) -> None:
        """An empty ledger.

        Args:
            max_keys: keys remembered; past it the oldest is forgotten, and its call could run again. A long agent session
                makes hundreds, and one costs about 150 bytes.
        Raises:
            UsageError: ``max_keys`` is less than 1.
        """
        self._max_keys = check_limit("max_keys", max_keys)
        self._lock = threading.Lock()
        self._fates: OrderedDict[str, Fate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._fates)

    def claim(self, keys: Sequence[str], *, all_or_nothing: bool = False) -> dict[str, Fate]:
        """See ``Ledger.claim``."""
        with self._lock:
            known = {key: self._fates[key] for key in keys if key in self._fates}
            if not (known and all_or_nothing):
                for key in keys:
                    self._fates.setdefault(key, "released")
                self._forget()
            return known

    def settle(self, key: str, fate: Settled) -> None:
        """See ``Ledger.settle``."""
        check_settled(fate)
        with self._lock:
            self._fates[key] = fate
            self._forget()

    def fates(self, keys: Sequence[str]) -> dict[str, Fate]:
        """See ``Ledger.fates``."""
        with self._lock:
            return {key: self._fates[key] for key in keys if key in self._fates}

    def _forget(self) -> None:
        while len(self._fates) > self._max_keys:
            self._fates.popitem(last=False)


def check_settled(fate: str) -> None:
    """``UsageError`` unless ``fate`` is one that a call can be settled with."""
    if fate not in get_args(Settled):
        raise UsageError(f"a call is settled as {' or '.join(map(repr, get_args(Settled)))}, not as {fate!r}")


def check_limit(name: str, value: int) -> int:
    """``value``, unless it is no limit."""
    if value < 1:
        raise UsageError(f"{name} is at least 1, not {value!r}")
    return value
