"""What several test files share."""

from __future__ import annotations

import defn as dn

# How many times as far off XLA's results may be as ours: it adds up in another order, and its
# functions are its own.
XLA_ULPS = 8


def on_xla() -> bool:
    """Whether XLA computes, so that results are ours within a tolerance only."""
    options = dn.global_default_options()
    return "pjrt" in (options.get("compiler"), options.get("backend"))


class Log:
    """A list that no container is: a definition that closes over it sees the same static value."""

    def __init__(self) -> None:
        self.items: list[object] = []

    def append(self, item: object) -> None:
        self.items.append(item)

    def __len__(self) -> int:
        return len(self.items)


class Held:
    """Anything, as a static value that is told apart by identity."""

    def __init__(self, value: object) -> None:
        self.value = value
