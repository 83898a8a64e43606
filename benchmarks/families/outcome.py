"""What came of one family."""

from dataclasses import dataclass, field

from families.compare import Comparison

VERDICTS = {
    "right": "every weight that the model computes is seen, and is right",
    "refused": "an error names the modules and says what to do",
    "wrong": "a weight differs, is not seen, or does not exist",
    "undecided": "nothing differs, but the weights are too alike to tell",
    "no attention": "the model computes no attention weights, and nothing is seen",
    "not run": "no model could be built or run by the one rule",
}


@dataclass
class Outcome:
    """One line of the table."""

    family: str
    verdict: str = ""
    """Of the default implementation, or wrong if any is."""
    reason: str = ""
    model: str = ""
    implementation: str = ""
    inputs: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)
    """Of the default and of the eager implementation."""
    advice: list[bool] = field(default_factory=list)
    """Of each refusal, whether what it advises is true."""
    sites: int = 0
    decided: int = 0
    nowhere: float = 0.0
    """The share of rows that are shown to look nowhere, where the model has a mean over all keys."""
    largest: float = 0.0
    """The largest difference of a weight."""

    def compared(self, which: str, found: Comparison) -> None:
        """Take in a comparison."""
        if which == "default":
            self.sites, self.decided = found.sites, found.decided
            self.nowhere = found.nowhere / max(1, found.rows)
        self.largest = max(self.largest, found.largest)
        if found.wrong:
            self.note(which, "wrong", f"{len(found.wrong)} of {found.sites}: {'; '.join(found.wrong[:3])}")
        elif not found.sites:
            self.note(which, "no attention")
        else:
            self.note(which, "right" if found.decided else "undecided")

    def note(self, which: str, verdict: str, reason: str = "") -> None:
        self.verdicts[which] = verdict
        if (which == "default" and self.verdict != "wrong") or verdict == "wrong":
            self.verdict = verdict
        if reason:
            self.reason = f"{self.reason} {which}: {reason}".strip()
