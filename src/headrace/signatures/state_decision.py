"""The verdict on changes of state. Spark's own check of the checkpoint takes precedence over the rules."""

from __future__ import annotations

from headrace.signatures.changes import Verdict
from headrace.signatures.state_check import StateCheck

REFUSED = "Spark refuses the old state"
MIXED = "Spark accepts the old state, which was computed differently, so rows would be wrong"


class StateDecision:
    """Decides between WRONG_ROWS and NEEDS_NEW_GENERATION.

    `explains_refusal` is whether one of the changes is a reason for Spark to refuse the checkpoint.
    """

    def __init__(self, check: StateCheck | None) -> None:
        self._check = check
        self.explains_refusal = False

    def verdict(self, expected: Verdict) -> Verdict:
        """Return the verdict on a change of state; `expected` if Spark has not checked the state."""
        verdict = expected
        if self._check and self._check.is_refused:
            verdict = Verdict.NEEDS_NEW_GENERATION
        elif self._check and self._check.is_accepted:
            verdict = Verdict.WRONG_ROWS
        self.explains_refusal |= verdict is Verdict.NEEDS_NEW_GENERATION
        return verdict


def effect_on_state(verdict: Verdict, mixed: str = MIXED) -> str:
    """Return the effect of a change with this verdict; `mixed` is the effect if Spark accepts the old state."""
    return mixed if verdict is Verdict.WRONG_ROWS else REFUSED
