"""What several test files share."""

from __future__ import annotations


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
