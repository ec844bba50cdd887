"""Every call of an operator goes through here: it is timed, and its arguments and results are shown to an observer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

# Positions of the tensors that a call changes. `rearrange` and `cast` only write theirs, the others read them first.
CHANGED = {
    "causal_conv1d": (3,),
    "preview_conv1d": (),
    "gated_delta_net_gating": (),
    "gated_delta_rule": (5,),
    "preview_gated_delta_rule": (),
    "preview_gdn": (),
    "topk_softmax": (),
    "block_coreset": (),
    "live_row_routes": (),
    "merge_live_rows": (1,),
    "fused_moe": (),
    "rotary_embedding": (1, 2),
    "rearrange": (1,),
    "cast": (1,),
    "rms_norm_gated": (),
}
OPERATORS = tuple(CHANGED)

# observer(operator, arguments as they were before the call, attributes, outputs and then the changed tensors)
Observer = Callable[[str, tuple, dict[str, Any], tuple], None]


class OperatorError(Exception):
    """An operator refused a call or broke down in it."""


@dataclass
class Timing:
    """How often an operator ran, and for how long."""

    calls: int = 0
    seconds: float = 0.0


class Calls:
    """Clover's operators, called by name."""

    def __init__(self, library: ModuleType, observer: Observer) -> None:
        self.library = library
        self.observer = observer
        self.timings = {name: Timing() for name in OPERATORS}

    def __call__(self, operator: str, *arguments: Any, **attributes: Any) -> Any:
        changed = CHANGED[operator]
        before = tuple(
            np.array(argument) if position in changed else argument for position, argument in enumerate(arguments)
        )
        function = getattr(self.library, operator)
        start = time.perf_counter()
        try:
            result = function(*arguments, **attributes)
        except Exception as error:
            raise OperatorError(f"{operator} raised {type(error).__name__}: {error}") from error
        seconds = time.perf_counter() - start
        timing = self.timings[operator]
        timing.calls += 1
        timing.seconds += seconds

        outputs = () if result is None else result if isinstance(result, tuple) else (result,)
        after = tuple(arguments[position] for position in changed)
        self.observer(operator, before, attributes, (*outputs, *after))
        return result
