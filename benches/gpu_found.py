"""What the sections of `gpu_check.py` share: the device under test, and what they found there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import defn as dn

MIB = 1 << 20
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Found:
    """The results of a section."""

    lines: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    # Added up over the processes that share a section.
    counts: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        """Prints a Markdown table."""
        self.say("")
        for cells in (head, ["---"] * len(head), *rows):
            self.say("| " + " | ".join(cells) + " |")
        self.say("")

    def require(self, what: str, holds: bool, detail: str = "") -> None:
        """Records a check, described by `what`."""
        self.say(f"- {what}: {'yes' if holds else 'NO'}{'; ' + detail if detail else ''}")
        if not holds:
            self.failed.append(f"{what}; {detail}")

    def compare(self, name: str, ours: list[Any], theirs: list[Any], tolerance: float) -> None:
        """Records where our results differ from JAX's, by more than a share of the greatest."""
        for one, two in zip(ours, theirs, strict=True):
            one, two = (np.asarray(x).astype(np.float64) for x in (one.to_numpy(), two))
            scale = float(np.abs(two).max(initial=1e-6))
            worst = float(np.abs(one - two).max(initial=0.0)) / scale
            if not worst <= tolerance:
                self.failed.append(f"{name}: results differ by {worst:.2g} of the greatest")

    def expect(self, what: str, kind: type[Exception], call: Callable[[], object]) -> None:
        """Records a check that a call raises an error."""
        try:
            call()
        except kind as error:
            first = str(error).splitlines()[0].replace(f"{ROOT}/", "")
            self.require(what, True, f"`{type(error).__name__}: {first}`")
        except Exception as error:
            self.require(what, False, f"`{type(error).__name__}: {error}`")
        else:
            self.require(what, False, "nothing is raised")


@dataclass(frozen=True)
class Place:
    """The device under test."""

    client: str
    is_gpu: bool
    share: int = 0
    shares: int = 1

    @property
    def backend(self) -> Any:
        return dn.backends.PJRT(client=self.client)

    def tensor(self, array: np.ndarray) -> dn.Tensor:
        return dn.tensor(array, backend=self.backend)

    def memory_used(self) -> int | None:
        """The bytes in use on the first device, or None if the plugin does not count them."""
        return dn.devices(self.client)[0].memory_used


def same_bits(one: np.ndarray, two: np.ndarray) -> bool:
    """Whether two arrays have the same bits, including NaN and the signs of zeros."""
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()
