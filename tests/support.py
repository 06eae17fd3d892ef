"""What several test files share."""

from __future__ import annotations

import defn as dn
from cases.dtypes import close

# How many times as far off XLA's results may be as ours: it adds up in another order, and its
# functions are its own.
XLA_ULPS = 8


def on_xla() -> bool:
    """Whether XLA computes, so that results are ours within a tolerance only."""
    options = dn.global_default_options()
    return "pjrt" in (options.get("compiler"), options.get("backend"))


def assert_alike(compiled: dn.Tensor, eager: dn.Tensor, scale: float = 0.0) -> None:
    """What is compiled is what runs at once: bit for bit, but for XLA, which compiles a whole."""
    assert (compiled.dtype, compiled.shape, compiled.names) == (
        eager.dtype,
        eager.shape,
        eager.names,
    )
    got, want = compiled.to_numpy(), eager.to_numpy()
    if on_xla():
        ok = close(got, want, str(eager.dtype), XLA_ULPS, scale)
        assert ok.all(), f"compiled\n{got}\nat once\n{want}"
    else:
        assert got.tobytes() == want.tobytes()


# The backend that tests compare with others: the default one, unless the tests run with another.
HERE = dn.tensor(0).backend


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
