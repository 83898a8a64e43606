"""What a model that writes answers to a text."""

from dataclasses import dataclass, field


@dataclass
class Written:
    """The best text that was written for a text, a translation of it or the text and how it goes on, and what else the
    search found."""

    input: str
    text: str
    log_prob: float
    """The log-probability of the tokens that were written, in nats."""
    ended: bool = True
    """False if the length limit was reached before the model ended the text."""
    others: list[str] = field(default_factory=list)
    """The next best texts, if more than one was asked for."""

    @property
    def line(self) -> str:
        """All texts, parted by tabs."""
        return "\t".join([self.text, *self.others])
