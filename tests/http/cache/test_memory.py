"""The memory tier: its bound, and which entry goes first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from imgsvc_http.cache.entries import source_digest
from imgsvc_http.cache.memory import ENTRY_BYTES, MemoryTier
from tests.http.cache.pictures import entry

BOUND = 5 * (ENTRY_BYTES + 1000)
NUMBERS = st.integers(0, 11)


class MemoryMachine(RuleBasedStateMachine):
    """Compares the tier to a list of what was used, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.tier = MemoryTier(BOUND)
        self.model: dict[str, int] = {}
        self.sources: dict[str, str] = {}

    @rule(number=NUMBERS, size=st.integers(0, 7000), source=st.sampled_from("xyz"))
    def put(self, number: int, size: int, source: str) -> None:
        made = entry(number, size, source)
        self.tier.put(made)
        self.model.pop(made.key, None)
        self.model[made.key] = size + ENTRY_BYTES
        self.sources[made.key] = source
        while sum(self.model.values()) > BOUND:
            del self.model[next(iter(self.model))]

    @rule(number=NUMBERS, source=st.sampled_from("xyz"))
    def get(self, number: int, source: str) -> None:
        key = entry(number, 0, source).key
        found = self.tier.get(key)
        assert (found is not None) == (key in self.model)
        if found is not None:
            assert len(found.picture.body) + ENTRY_BYTES == self.model[key]
            self.model[key] = self.model.pop(key)

    @rule(number=NUMBERS, source=st.sampled_from("xyz"))
    def remove(self, number: int, source: str) -> None:
        key = entry(number, 0, source).key
        self.tier.remove(key)
        self.model.pop(key, None)

    @rule(source=st.sampled_from("xyz"))
    def purge(self, source: str) -> None:
        keys = [key for key in self.model if self.sources[key] == source]
        assert self.tier.remove_source(source_digest("acc", source)) == len(keys)
        assert self.tier.remove_source(source_digest("another", source)) == 0
        for key in keys:
            del self.model[key]

    @invariant()
    def bounded(self) -> None:
        assert self.tier.bytes == sum(self.model.values()) <= BOUND
        assert len(self.tier) == len(self.model)


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_an_entry_larger_than_the_bound_is_not_kept_and_costs_no_other() -> None:
    tier = MemoryTier(BOUND)
    tier.put(entry(1))
    tier.put(entry(2, BOUND))
    assert tier.get(entry(1).key) is not None
    assert tier.get(entry(2).key) is None


def test_an_entry_of_all_the_memory_is_kept() -> None:
    tier = MemoryTier(BOUND)
    for more in (1, 0):
        tier.put(entry(1, BOUND - ENTRY_BYTES + more))
        assert len(tier) == (more == 0)


@given(st.integers(0, 2**16))
def test_no_memory_keeps_nothing(size: int) -> None:
    tier = MemoryTier(0)
    tier.put(entry(1, size))
    assert len(tier) == 0
