"""The verdict on changes of state, for which Spark's own check of the checkpoint counts more than a rule."""

from __future__ import annotations

from headrace.signatures.changes import Verdict
from headrace.signatures.state_check import StateCheck

REFUSED = "Spark refuses the old state"
MIXED = "Spark accepts the old state, which was computed differently, so rows would be wrong"


class StateDecision:
    """Decides between WRONG_ROWS and NEEDS_NEW_GENERATION. `explains_refusal`: a change gives a reason to refuse."""

    def __init__(self, check: StateCheck | None) -> None:
        self._check = check
        self.explains_refusal = False

    def verdict(self, expected: Verdict) -> Verdict:
        """Return the verdict on a change of state that is expected to be refused or to give wrong rows."""
        verdict = expected
        if self._check and self._check.is_refused:
            verdict = Verdict.NEEDS_NEW_GENERATION
        elif self._check and self._check.is_accepted:
            verdict = Verdict.WRONG_ROWS
        self.explains_refusal |= verdict is Verdict.NEEDS_NEW_GENERATION
        return verdict


def effect_on_state(verdict: Verdict, mixed: str = MIXED) -> str:
    """Return what the verdict means; `mixed` is the effect if Spark accepts the old state."""
    return mixed if verdict is Verdict.WRONG_ROWS else REFUSED
