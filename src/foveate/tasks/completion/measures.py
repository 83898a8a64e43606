"""Measures of a public language model: how well it compresses prose, and how often it chooses right."""

import bz2
import gzip
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from foveate.data.text.files import read_lines
from foveate.data.text.scripts import count_words
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError, at_least
from foveate.forms.answers import Answer, Failure
from foveate.forms.completion import CompleteOptions, likeliest
from foveate.forms.prompts import Prompting, read_pairs
from foveate.inference.linear_layers import Precision
from foveate.metrics.written_answers import answer_metrics
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.tasks.completion.choices import ChoiceScorer
from foveate.tasks.evaluation import Evaluation, answers_by_line, evaluation_rows


@dataclass
class Measuring:
    """How `foveate eval` measures a public language model: on prose; with --shots, --choices or a --form, on lines
    `input<TAB>output`; or on questions of --task."""

    task: Path | None = None
    """Questions with choices in the form of lm-evaluation-harness' multiple-choice tasks: a JSON object on each line,
    {"query": text, "choices": [text, ...], "gold": number of the right one}."""
    prompting: Annotated[Prompting, tyro.conf.arg(name="")] = field(default_factory=Prompting)
    precision: Precision = "float32"
    """Precision of the linear layers."""
    context: int = 1024
    """Prose is read in windows of this many tokens; each token is predicted from at least half a window before it."""
    max_new_tokens: int = 128
    """Tokens of a written answer, at most: it ends with its line."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        self.prompting.check()
        if self.task is not None and self.prompting.used:
            raise UserError("the questions of --task have choices of their own: leave out the options of prompts")
        at_least(2, "context", self.context)
        at_least(1, "max_new_tokens", self.max_new_tokens)


def evaluate(
    model: CausalLanguageModel, reads: Any, data: Sequence[Path], options: Measuring, truncate: bool = False
) -> Evaluation:
    """What `foveate eval` shows of a model that reads prompts; with `truncate`, inputs that are too long are cut.

    Raises UserError for nothing to measure on.
    """
    from foveate.tasks.completion.multiple_choice import multiple_choice

    scorer = ChoiceScorer(model, reads.tokenizer, options.prompting, truncate)
    if options.task is not None:
        if data:
            raise UserError("both --task and --data are given; choose one")
        return multiple_choice(scorer, options.task)
    if not data:
        raise UserError("this model was trained elsewhere: give --data FILE to measure it on")
    if options.prompting.choices:
        return accuracy(scorer, data)
    return compression(model, reads.tokenizer, reads.start, data, options.context)


def accuracy(scorer: ChoiceScorer, data: Sequence[Path]) -> Evaluation:
    """How often the best choice is the output of the pair, beside always answering the most frequent one."""
    lines = list[int | None]()
    pairs, choices = read_pairs(data, lines), scorer.prompting.choices
    if wrong := [output for _, output in pairs if output not in choices]:
        raise UserError(f"the output '{wrong[0]}' is none of the choices {', '.join(choices)}")
    answers = scorer.answer([given for given, _ in pairs])
    texts = ["" if isinstance(one, Failure) else one.text for one in answers]
    right = sum(text == output for text, (_, output) in zip(texts, pairs, strict=True))
    frequent, count = Counter(output for _, output in pairs).most_common(1)[0]
    ways = {f"always {frequent}": count / len(pairs), "this model": right / len(pairs)}
    return Evaluation(
        answers=answers_by_line([answer.line for answer in answers], lines),
        figures={"pairs": len(pairs), "accuracy": ways},
        headings=["answers by", "accuracy"],
        rows=[[name, f"{100 * value:.1f}%"] for name, value in ways.items()],
        notes=[f"{len(pairs):,} pairs, {len(scorer.prompt.pairs)} examples in the prompt", *length_notes(answers)],
    )


def length_notes(found: Sequence[Any]) -> list[str]:
    """Lines about inputs that have no answer, and about those that were cut."""
    failures = [one.reason for one in found if isinstance(one, Failure)]
    cut = sum(isinstance(one, Answer) and one.cut for one in found)
    failed = [f"{len(failures):,} have no answer, the first because {failures[0]}"] if failures else []
    return [*failed, *([f"{cut:,} are cut to the positions that the model has"] if cut else [])]


def written_answers(
    answer: Callable[[Sequence[str], CompleteOptions], Sequence[Any]], data: Sequence[Path], options: Measuring
) -> Evaluation:
    """How often the likeliest text after a prompt is the output of the pair, and how much of it, beside always
    answering the most frequent output."""
    lines = list[int | None]()
    given, right = zip(*read_pairs(data, lines), strict=True)
    decoding = replace(likeliest(), max_new_tokens=options.max_new_tokens)
    found = answer(given, CompleteOptions(decoding, prompting=options.prompting, precision=options.precision))
    texts = ["" if isinstance(one, Failure) else one.text.strip() for one in found]
    ((frequent, _),) = Counter(right).most_common(1)
    ways = {f"always {frequent}": answer_metrics([frequent] * len(right), right)}
    ways["this model"] = answer_metrics(texts, right)
    names, rows = evaluation_rows(ways)
    shots = len(options.prompting.prompt().pairs)
    return Evaluation(
        answers=answers_by_line(texts, lines),
        figures={"pairs": len(right), "ways": ways},
        headings=["answers by", *names],
        rows=rows,
        notes=[f"{len(right):,} pairs, {shots} examples in the prompt", *length_notes(found)],
    )


def compression(
    model: CausalLanguageModel, tokenizer: PublicTokenizer, start: int | None, data: Sequence[Path], context: int
) -> Evaluation:
    """Bits per byte of prose, and perplexity per token and word, beside two programs that compress files."""
    texts = ["\n".join(read_lines(path)).strip() for path in data]
    if not all(texts):
        raise UserError(f"{data[texts.index('')]}: there is no text in it")
    whole = "\n".join(texts).encode()
    size = min(context, model.config.max_length)
    nats, count = 0.0, 0
    for tokens in tokenizer.encode(texts):
        tokens = tokens if start is None or tokens[:1] == [start] else [start, *tokens]
        nats += -log_prob(model, tokens, size)
        count += len(tokens) - 1
    words, bits = sum(count_words(text) for text in texts), nats / math.log(2) / len(whole)
    sizes = {"gzip": len(gzip.compress(whole, 9)), "bz2": len(bz2.compress(whole, 9))}
    figures = {name: {"bits_per_byte": 8 * value / len(whole)} for name, value in sizes.items()}
    figures["this model"] = {
        "bits_per_byte": bits,
        "perplexity_per_token": math.exp(nats / max(1, count)),
        "perplexity_per_word": math.exp(min(700.0, nats / words)),
    }
    names = ["bits_per_byte", "perplexity_per_token", "perplexity_per_word"]
    return Evaluation(
        answers=[],
        figures={"bytes": len(whole), "tokens": count, "words": words, "ways": figures},
        headings=["", *(name.replace("_", " ") for name in names)],
        rows=[
            [way, *(f"{found[name]:.2f}" if name in found else "" for name in names)] for way, found in figures.items()
        ],
        notes=[f"{len(whole):,} bytes, {words:,} words, {count:,} tokens in windows of {size:,}"],
    )


@torch.inference_mode()
def log_prob(model: CausalLanguageModel, tokens: Sequence[int], size: int) -> float:
    """The log-probability of all tokens but the first, in nats; each window of `size` begins half a window later."""
    device = model.embedding.weight.device
    total, done = 0.0, 1
    while done < len(tokens):
        begin = max(0, done - size // 2) if done > 1 else 0
        window = torch.tensor([tokens[begin : begin + size]], device=device)
        if window.shape[1] < 2:
            break
        hidden = model.hidden(window)[0, done - begin - 1 : -1]
        labels = window[0, done - begin :]
        for part, wanted in zip(hidden.split(128), labels.split(128), strict=True):  # logits take memory
            total += float(model.logits(part).float().log_softmax(-1).gather(1, wanted[:, None]).sum())
        done = begin + window.shape[1]
    return total
