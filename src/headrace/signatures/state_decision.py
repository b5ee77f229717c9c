"""The verdict on changes of state.

Spark's own check of the checkpoint takes precedence over the verdict that the comparison of signatures expects.
"""

from __future__ import annotations

from headrace.signatures.changes import StateCheck, Verdict

REFUSED = "Spark refuses the old state"
WRONG_ROWS_TEXT = "Spark accepts the old state, which was computed differently, so rows would be wrong"


class StateDecision:
    """Decides between WRONG_ROWS and NEEDS_NEW_GENERATION.

    `verdict` sets `explains_refusal` once a change that it is called for explains why Spark refuses the checkpoint.
    """

    def __init__(self, check: StateCheck | None) -> None:
        self._check = check
        self.explains_refusal = False

    def verdict(self, without_check: Verdict) -> Verdict:
        """Return the verdict on a change of state; `without_check` if Spark has not checked the state."""
        verdict = without_check
        if self._check and self._check.is_refused:
            verdict = Verdict.NEEDS_NEW_GENERATION
        elif self._check and self._check.is_accepted:
            verdict = Verdict.WRONG_ROWS
        self.explains_refusal |= verdict is Verdict.NEEDS_NEW_GENERATION
        return verdict


def effect_on_state(verdict: Verdict, if_accepted: str = WRONG_ROWS_TEXT) -> str:
    """Return the effect of a change with this verdict; `if_accepted` is the effect if Spark accepts the old state."""
    return if_accepted if verdict is Verdict.WRONG_ROWS else REFUSED
