"""The parts of the matrix are a partition of it."""

from types import ModuleType, SimpleNamespace

import pytest

from . import shards
from .test_fused_moe import CASES

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("count", [1, 2, 7, 24])
def test_parts_hold_every_case_once(count):
    module = ModuleType("suite")
    items = [SimpleNamespace(module=module, callspec=SimpleNamespace(params={"case": case})) for case in CASES]
    parts = [shards.select(items, f"{which}/{count}")[0] for which in range(1, count + 1)]
    assert sorted(id(item) for part in parts for item in part) == sorted(map(id, items))
    assert min(map(len, parts)) > len(items) / count / 2


def test_what_has_no_case_is_in_the_first_part():
    items = [SimpleNamespace(module=ModuleType("suite"))]
    assert [shards.select(items, f"{which}/3")[0] for which in (1, 2, 3)] == [items, [], []]


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "1/0", "a/b", "1/2/3", "-1/2"])
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match="must read like 2/8"):
        shards.parse(text)
