"""A language model of a public folder in use: it goes on from texts, chats, chooses, and is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

import torch
from rich.console import Console
from torch import nn

from foveate.config import from_dict
from foveate.contracts import Generator
from foveate.data.text.conversations import holds_conversations, read_conversations
from foveate.data.tokens.chat import Message
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.decoding import Pending, can_share
from foveate.errors import UserError, one_of
from foveate.files import read_json
from foveate.finite import FiniteOutputs
from foveate.forms.answers import Failure, NoOptions
from foveate.forms.completion import CompleteOptions, Completion, Show, prompt_forms, read_at_once
from foveate.forms.inputs import as_text
from foveate.forms.language import Continuation, ReadBeginning
from foveate.forms.processor import Processor
from foveate.forms.truncation import FittedText
from foveate.inference.columns import WORTH_STORING, store_by_columns
from foveate.inference.half_precision import in_half_precision
from foveate.inference.int8 import in_int8
from foveate.inference.lean import lean_copy
from foveate.inference.linear_layers import Precision
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import PublicHeader, check_tokenizer, write_folder
from foveate.interop.through_transformers import read_any
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.sight.watcher import is_watched
from foveate.tasks.completion.choices import ChoiceScorer
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.language import TASK
from foveate.tasks.language_model import LanguageModel
from foveate.training.hardware import choose_device


class Completer(LanguageModel):
    """A GPT, GPT-NeoX or Llama with a tokenizer of its own, and what its folder says of it."""

    values: Mapping[str, Any]
    """Those of the folder's `config.json` and `generation_config.json`."""

    @classmethod
    def of(
        cls,
        model: Any,
        family: str,
        tokenizer: PublicTokenizer,
        values: Mapping[str, Any],
        folder: Path | None = None,
    ) -> "Completer":
        """A model with its tokenizer.

        Raises UserError for a tokenizer with more entries than the model has embeddings, and for tokens that are no
        numbers.
        """
        check_tokenizer(tokenizer.largest, model)
        header = from_dict(PublicHeader, dict(values), "config.json or generation_config.json", others=True)
        ends = header.eos_token_id if isinstance(header.eos_token_id, tuple) else (header.eos_token_id,)
        forms = prompt_forms(tokenizer, values.get("bos_token_id"), ends, int(model.config.max_length))
        found = cls(TASK, TASK.recipe(), model, forms, {"family": family, "recipe": {}}, folder)
        found.values = values
        return found

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Completer":
        """The model of a folder or of a name such as smollm2. Raises UserError for whatever is missing or damaged."""
        folder = locate(folder)
        found = read_any(folder)
        more = folder / "generation_config.json"
        values = {**found.values, **(read_json(more) if more.is_file() else {})}
        return cls.of(
            found.model.to(choose_device(device)), found.family, PublicTokenizer.load(folder), values, Path(folder)
        )

    @classmethod
    def run_options(cls, recipe: Mapping[str, Any], where: str) -> CompleteOptions:
        """The flags of `foveate run`."""
        return CompleteOptions()

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate eval`."""
        from foveate.tasks.completion.measures import Measuring

        return Measuring()

    def save(self, folder: Path | str) -> None:
        """Write the model as a Hugging Face folder, which `load` and transformers read."""
        family, folder = str(self.description["family"]), Path(folder)
        special = {name: self.values[name] for name in ("bos_token_id", "eos_token_id") if name in self.values}
        write_folder(folder, family, self.model, special)
        self.tokenizer.write_folder(folder)

    @property
    def name(self) -> str:
        return f"{self.description['family']} from {self.folder}"

    @property
    def tokenizer(self) -> PublicTokenizer:
        """That of the folder."""
        found: PublicTokenizer = self.processor.reads.tokenizer
        return found

    @property
    def completer(self) -> "Completer":
        return self

    def in_precision(self, precision: str) -> nn.Module:
        """The model with linear layers of this precision. Raises UserError for another than those that there are."""
        made = cast(dict[str, nn.Module], self._optimized)
        if precision not in made:
            made[precision] = with_linear_layers(self.model, precision)
        return made[precision]

    def _in_use(self, count: int, options: Any) -> nn.Module:
        if options.precision == "float32" and is_watched(self.model):
            return self.model
        return self.in_precision(options.precision)

    def answer(
        self, given: Sequence[Any], options: Any = None, show: Show | None = None, before: Sequence[Message] = ()
    ) -> Sequence[Any]:
        """What the model writes after each text, or the best of the choices; a `Failure` for a text that is too long.

        `show` receives the answer to the only text in parts, as it is written. `before` is a chat so far.
        """
        options = options or self.options_with()
        options.check()
        opened = [_text_or_failure(one) for one in given]
        texts = [one for one in opened if isinstance(one, str)]
        if len(texts) < len(opened):
            answers_to_texts = iter(self.answer(texts, options, show, before))
            return [next(answers_to_texts) if isinstance(one, str) else one for one in opened]
        if options.prompting.choices:
            scorer = ChoiceScorer(cast(Any, self._in_use(1, options)), self.tokenizer, options.prompting, self.truncate)
            return scorer.answer(texts)
        asked = self._asked_prompts(texts, options, before)
        generator = torch.Generator(self.device).manual_seed(options.seed)
        model = self._in_use(len(asked.rows), options)
        if len(asked.rows) == 1 and (options.decoding.max_new_tokens or 0) >= WORTH_STORING:
            store_by_columns(model)
        return asked.answers(self.processor.writes.complete_all(model, asked.prompts, options, generator, show))

    def begin(self, given: Sequence[Any], options: Any) -> Pending | None:
        """`answer`, for a batch that several requests share; None where these inputs are not answered so: choices,
        inputs that cannot be read, more than are read at once, and models whose states do not join."""
        options.check()
        texts = [one for one in map(_text_or_failure, given) if isinstance(one, str)]
        if options.prompting.choices or len(texts) < len(given):
            return None
        asked = self._asked_prompts(texts, options)
        model, groups = self._in_use(len(asked.rows), options), read_at_once(asked.prompts)
        if len(groups) != 1 or not can_share(cast(Generator, model), options.decoding):
            return None
        generator, (places,) = torch.Generator(self.device).manual_seed(options.seed), groups
        prompts = [asked.prompts[place] for place in places]
        pending: Pending = self.processor.writes.begin(model, prompts, options, generator)

        def finish() -> list[Any]:
            written = dict(zip(places, pending.finish(), strict=True))
            return asked.answers([written[place] for place in range(len(places))])

        return replace(pending, finish=finish)

    def _asked_prompts(self, texts: Sequence[str], options: Any, before: Sequence[Message] = ()) -> "_AskedPrompts":
        found = self.processor.reads.asked(texts, options, before, self.truncate)
        return _AskedPrompts(texts, found, options.decoding.n_best)

    def stream(
        self, texts: Sequence[str], options: CompleteOptions, show: Show, before: Sequence[Message] = ()
    ) -> Sequence[Any]:
        """`answer` to the only text, with each part shown as it is written, the prompt first."""
        if isinstance(failure := _text_or_failure(texts[0]), Failure):
            return [failure]
        if options.decoding.n_best > 1:
            found = self.answer(texts, options, before=before)
            show(f"{found[0].line}\n")
            return found
        if not (options.chat or options.prompting.used):
            show(texts[0])
        found = self.answer(texts, options, show, before)
        show(f"{found[0].text}\n" if options.prompting.choices else "\n")
        return found

    def evaluate(self, data: Sequence[Path], options: Any = None, console: Console | None = None) -> Evaluation:
        """Bits per byte and perplexity on prose, or of the answers in conversations; with a prompt or choices, what is
        right of pairs or questions."""
        from foveate.tasks.completion.measures import evaluate, written_answers

        options = options or self.eval_options({}, "")
        if data and options.task is None and options.prompting.used and not options.prompting.choices:
            return written_answers(self.answer, data, options)
        model = cast(CausalLanguageModel, self.in_precision(options.precision))
        if options.task is None and not options.prompting.used and holds_conversations(data):
            return self._on_conversations(model, data)
        with FiniteOutputs(model, self.name):
            return evaluate(model, self.processor.reads, data, options, self.truncate)

    def _on_conversations(self, model: nn.Module, data: Sequence[Path]) -> Evaluation:
        """As a run that was trained on conversations is measured."""
        words = TextTokenizer.of(self.tokenizer)
        forms = Processor(ReadBeginning(tokenizer=words), Continuation(tokenizer=words))
        recipe = replace(self.recipe, model=str(self.description["family"]))
        own = LanguageModel(self.task, recipe, model, forms, self.description, self.folder)
        own.truncate = self.truncate
        return own.compare(own.answerable(read_conversations(data)), NoOptions())


@dataclass(frozen=True)
class _AskedPrompts:
    """Texts, the prompt of each, and how many answers it gets."""

    texts: Sequence[str]
    found: Sequence[FittedText | Failure]
    each: int

    @property
    def rows(self) -> list[int]:
        """The number of the text that each answer belongs to."""
        return [row for row, one in enumerate(self.found) if not isinstance(one, Failure) for _ in range(self.each)]

    @property
    def prompts(self) -> list[Any]:
        """The prompt of each answer."""
        return [cast(FittedText, self.found[row]).prepared for row in self.rows]

    def answers(self, written: Sequence[Completion]) -> list[Any]:
        """The best of each text's answers, or the failure that it is."""
        answers: dict[int, list[Completion]] = {}
        for row, one in zip(self.rows, written, strict=True):
            text, cut = self.texts[row], cast(FittedText, self.found[row]).cut
            answers.setdefault(row, []).append(replace(one, prompt=text, given=text, cut=cut))
        return [Completion.best(answers[row]) if row in answers else one for row, one in enumerate(self.found)]


def _text_or_failure(given: Any) -> str | Failure:
    """An input as a text; a failure for what is none."""
    try:
        return as_text(given)
    except UserError as error:
        return Failure(str(given), str(error))


def with_linear_layers(model: nn.Module, precision: str) -> nn.Module:
    """A model with linear layers of this precision. Raises UserError for another than those that there are."""
    one_of("precision", precision, get_args(Precision))
    if precision == "float32":
        return lean_copy(model)
    return in_int8(model) if precision == "int8" else in_half_precision(model, getattr(torch, precision))
