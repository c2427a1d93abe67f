"""Fair shares of a limited resource: nobody holds more of it than stays free."""

from __future__ import annotations


class Shares:
    """Give parts of a resource to owners such as accounts.

    An owner gets more as long as its own parts are no larger than what stays free ("dynamic threshold").
    Alone it gets half of the resource in small parts; the others always find some.

    Args:
        total: how much there is.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._taken: dict[str, int] = {}

    @property
    def used_up(self) -> bool:
        """True if less than a sixteenth is left."""
        return self._free < self._total // 16

    def take(self, owner: str, amount: int = 1) -> bool:
        """Take a part for an owner. Return False if its share is used up."""
        taken = self._taken.get(owner, 0) + amount
        if taken > self._free:
            return False
        self._taken[owner] = taken
        self._free -= amount
        return True

    def give_back(self, owner: str, amount: int = 1) -> None:
        """Give a part back."""
        self._free += amount
        left = self._taken.get(owner, 0) - amount
        if left:
            self._taken[owner] = left
        else:
            self._taken.pop(owner, None)
