"""What measures the answers of a form: metrics, how certain they are, and trivial answers to compare with."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from torch import Tensor

from foveate.data.dataset import Dataset
from foveate.forms.label_details import Decided
from foveate.metrics.resampling import Measured


class MeasuredForm:
    """A form whose answers to examples are measured."""

    metric: ClassVar[str] = "accuracy"
    """The metric that chooses the best checkpoint."""
    higher_is_better: ClassVar[bool] = True

    def check_measured(self) -> None:
        """Raise UserError for a form whose answers have no metrics."""

    def metrics(self, answers: Sequence[Any], examples: Sequence[Any]) -> dict[str, float]:
        """How good the answers to examples are."""
        raise NotImplementedError

    def measurable(self, answers: Sequence[Any], examples: Sequence[Any]) -> Measured:
        """The answers as what any draw of them is measured from. A form whose metrics are made of counts of each
        example counts each once."""
        return Measured(
            len(answers), lambda rows: self.metrics([answers[row] for row in rows], [examples[row] for row in rows])
        )

    def settle(self, answers: Sequence[Any], examples: Sequence[Any]) -> None:
        """Learn from the answers to the validation, after the training, such as from which score on something is
        shown."""

    def decided(self, answers: Sequence[Any], examples: Sequence[Any]) -> Decided | None:
        """What was answered as labels, of which `foveate eval --details` says more; None for other answers."""
        return None

    def remarks(self, answers: Sequence[Any], examples: Sequence[Any]) -> list[str]:
        """Lines about the answers of a validation that metrics do not say."""
        return []

    def look_metrics(
        self, answers: Sequence[Any], examples: Sequence[Any], maps: Callable[[Any, Any], Sequence[Tensor]]
    ) -> dict[str, float]:
        """How much of the attention is where it should be, for data that tell. `maps(example, answer)` are the weights
        over the places (i, j) of an image, for each row of an answer to it."""
        return {}

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The same metrics of trivial ways to answer, by name; `train` opens what was learned from."""
        return {}

    def notes(self, examples: Sequence[Any]) -> list[str]:
        """Lines below the table of `foveate eval`."""
        return []
