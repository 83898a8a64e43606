"""Prompts of examples: pairs of input and output in a form, then an input alone (Brown et al. 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foveate.data.dataset import without_empty
from foveate.data.text.files import read_lines
from foveate.errors import UserError, one_of

FORM = "Input: {input}\nOutput: {output}"

INPUT, OUTPUT = "{input}", "{output}"


@dataclass
class Prompting:
    """Prompts of examples. The form of an example can be that of a task: "Review: {input}\\nSentiment: {output}"."""

    shots: Path | None = None
    """Examples to begin the prompt with: a file of lines `input<TAB>output`."""
    choices: tuple[str, ...] = ()
    """Answer with the best one of these outputs, by the model's probabilities, instead of writing."""
    form: str = FORM
    """How an example is written, with {input} and, at the end, {output}. A line break can be given as \\n."""
    instruction: str = ""
    """What the prompt says before the examples."""
    score: Literal["sum", "mean", "bytes"] = "sum"
    """How choices of several tokens are ranked: by log-probability, by its mean over tokens, or over bytes."""
    calibrate: Literal["no", "neutral", "batch"] = "no"
    """Subtract what a choice has anyway: its score for inputs that say nothing, such as "N/A" (neutral, Zhao et al.
    2021), or its mean share for all the inputs that are given together (batch, Zhou et al. 2024)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        one_of("score", self.score, ("sum", "mean", "bytes"))
        one_of("calibrate", self.calibrate, ("no", "neutral", "batch"))
        form = self.lines(self.form)
        if form.count(INPUT) != 1 or form.count(OUTPUT) != 1 or not form.endswith(OUTPUT):
            raise UserError(f"the form '{self.form}' must have {INPUT} once, and end with {OUTPUT}")
        if len(set(self.choices)) != len(self.choices) or len(self.choices) == 1 or "" in self.choices:
            raise UserError("--choices takes two or more different outputs, none of them empty")
        if self.calibrate != "no" and not self.choices:
            raise UserError("--calibrate is about the scores of --choices: give them too")

    @property
    def used(self) -> bool:
        """Whether texts become a part of a form at all."""
        return bool(self.shots or self.choices or self.form != FORM)

    def prompt(self) -> "Prompt":
        """The prompt with the examples of the file. Raises UserError for a file of another form."""
        pairs = [] if self.shots is None else read_pairs([self.shots], [])
        return Prompt(self.lines(self.instruction), self.lines(self.form), pairs)

    @staticmethod
    def lines(text: str) -> str:
        """A text with the line breaks that were given as a backslash and an n."""
        return text.replace("\\n", "\n")


@dataclass(frozen=True)
class Prompt:
    """A prompt for any input: what stands before it, and the form of an example."""

    instruction: str
    form: str
    pairs: Sequence[tuple[str, str]] = ()

    GAP = "\n\n"
    """Between two examples."""

    @property
    def begin(self) -> str:
        """What is the same for all inputs."""
        shots = [self.form.replace(OUTPUT, output).replace(INPUT, given, 1) for given, output in self.pairs]
        return "".join(f"{part}{self.GAP}" for part in (self.instruction, *shots) if part)

    @property
    def space(self) -> str:
        """The white space before an output, which belongs to it: " " or a line break."""
        before = self.form.removesuffix(OUTPUT)
        return before[len(before.rstrip()) :]

    def ask(self, given: str) -> str:
        """The whole prompt for an input, up to the white space before its output."""
        return self.begin + self.form.removesuffix(OUTPUT).rstrip().replace(INPUT, given)


def read_pairs(paths: Sequence[Path], lines: list[int | None]) -> list[tuple[str, str]]:
    """The examples in files of lines `input<TAB>output`; the number of each line's example is added to `lines`.

    Raises UserError for a line of another form.
    """
    pairs: list[tuple[str, str]] = []
    rows = ((path, number, line) for path in paths for number, line in enumerate(read_lines(path), 1))
    for path, number, line in without_empty((row if row[2].strip() else None for row in rows), lines):
        given, *output = line.split("\t")
        if len(output) != 1 or not given.strip() or not output[0].strip():
            raise UserError(f"{path}, line {number}: an example is input<TAB>output, not '{line[:60]}'")
        pairs.append((given.strip(), output[0].strip()))
    if not pairs:
        raise UserError(f"{paths[0]} has no examples")
    return pairs
