"""A language model of a public folder in use: it goes on from texts, chats, chooses, and is measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

import torch
from rich.console import Console

from foveate.config import from_dict
from foveate.contracts import Generator, Picture
from foveate.data.tokens.chat import Message, chat_template
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.decoding import generate
from foveate.errors import TextError, UserError, one_of, quoted
from foveate.files import read_json
from foveate.inference.half_precision import in_half_precision
from foveate.inference.int8 import in_int8
from foveate.inference.linear_layers import Precision
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import PublicHeader, check_tokenizer, read_folder, write_folder
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.tasks.completion.answers import Completing, Completion, Show, TextStream
from foveate.tasks.completion.choices import Choice, ChoiceScorer
from foveate.tasks.protocols import Evaluation, ModelInputs
from foveate.training.hardware import choose_device

BATCH = 4096
"""Tokens of prompts that are read at once."""


class Completer:
    """A GPT, GPT-NeoX or Llama with a tokenizer of its own, and what its folder says of it."""

    def __init__(
        self, model: CausalLanguageModel, family: str, tokenizer: PublicTokenizer, values: dict[str, Any]
    ) -> None:
        """`values` are those of the folder's `config.json` and `generation_config.json`.

        Raises UserError for a tokenizer with more entries than the model has embeddings, and for tokens that are no
        numbers.
        """
        check_tokenizer(tokenizer.largest, model)
        self.model, self.family, self.tokenizer, self.values = model, family, tokenizer, values
        header = from_dict(PublicHeader, values, "config.json or generation_config.json", others=True)
        ends = header.eos_token_id
        self._ends = ends if isinstance(ends, tuple) else (ends,)
        self.description: dict[str, Any] = {"family": family, "recipe": {}}
        self._by_precision: dict[str, CausalLanguageModel] = {"float32": model}

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Completer":
        """The model of a folder or of a name such as smollm2. Raises UserError for whatever is missing or damaged."""
        folder = locate(folder)
        found = read_folder(folder)
        more = folder / "generation_config.json"
        values = {**found.values, **(read_json(more) if more.is_file() else {})}
        model = cast(CausalLanguageModel, found.model.to(choose_device(device)))
        return cls(model, found.family, PublicTokenizer.load(folder), values)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> Completing:
        return Completing()

    def save(self, folder: Path | str) -> None:
        """Write the model as a Hugging Face folder, which `load` and transformers read."""
        folder = Path(folder)
        special: dict[str, Any] = {
            name: self.values[name] for name in ("bos_token_id", "eos_token_id") if name in self.values
        }
        write_folder(folder, self.family, self.model, special)
        self.tokenizer.write_folder(folder)

    @property
    def ends(self) -> set[int]:
        """The tokens that end a text."""
        return {end for end in (*self._ends, self.tokenizer.special.ids.get("end")) if end is not None}

    def in_precision(self, precision: str) -> CausalLanguageModel:
        """The model with linear layers of this precision. Raises UserError for another than those that there are."""
        one_of("precision", precision, get_args(Precision))
        if precision not in self._by_precision:
            half = precision != "int8"
            made = in_half_precision(self.model, getattr(torch, precision)) if half else in_int8(self.model)
            self._by_precision[precision] = made
        return self._by_precision[precision]

    def run(self, text: str, options: Completing | None = None) -> Completion | Choice:
        """The answer to one text."""
        return self.answer([text], options or Completing())[0]

    def answer(
        self,
        texts: Sequence[str],
        options: Completing,
        show: Show | None = None,
        before: Sequence[Message] = (),
    ) -> Sequence[Completion | Choice]:
        """What the model writes after each text, or the best of the choices.

        `show` receives the answer to the only text in parts, as it is written. `before` is a chat so far.
        """
        options.check()
        model = self.in_precision(options.precision)
        if options.prompting.choices:
            return ChoiceScorer(model, self.tokenizer, options.prompting).answer(texts)
        each = options.n_best
        prompts = [prompt for prompt in self._prompts(texts, options, before) for _ in range(each)]
        generator = torch.Generator(self.model.embedding.weight.device).manual_seed(options.seed)
        stop = options.generation.stop
        if options.prompting.used and not stop:
            stop = ("\n",)
        found: dict[int, Completion] = {}
        for places in self._batches(prompts):
            chosen = [prompts[place] for place in places]
            streams = [TextStream(self.tokenizer, prompt, stop, show, options.prompting.used) for prompt in chosen]
            outputs = generate(
                cast(Generator, model),
                chosen,
                options.generation,
                self.ends,
                generator,
                lambda row, token, streams=streams: streams[row].add(token),  # type: ignore[misc]
                self.model.config.max_length,
            )
            for place, stream, output in zip(places, streams, outputs, strict=True):
                stream.end()
                tokens = self.tokenizer.pieces(output.tokens)
                ended, alone = output.ended or stream.stopped, options.chat or options.prompting.used
                found[place] = Completion(texts[place // each], stream.text, tokens, output.log_probs, ended, alone)
        drawn = [found[place] for place in range(len(prompts))]
        return [Completion.best(drawn[place : place + each]) for place in range(0, len(drawn), each)]

    def stream(
        self, texts: Sequence[str], options: Completing, show: Show, before: Sequence[Message] = ()
    ) -> Sequence[Completion | Choice]:
        """`answer` to the only text, with each part shown as it is written, the prompt first."""
        if options.n_best > 1:
            found = self.answer(texts, options, before=before)
            show(f"{found[0].line}\n")
            return found
        alone = options.chat or options.prompting.used
        if not alone:
            show(texts[0])
        found = self.answer(texts, options, show, before)
        show(f"{found[0].text}\n" if options.prompting.choices else "\n")
        return found

    def _prompts(self, texts: Sequence[str], options: Completing, before: Sequence[Message] = ()) -> list[list[int]]:
        """The tokens of each prompt. Raises TextError for one that is empty, or longer than the positions."""
        if options.chat:
            template = chat_template(self.tokenizer)
            system = [] if options.system is None else [Message("system", options.system)]
            chats = [[*system, *before, Message("user", text)] for text in texts]
            prompts = [template.encode(self.tokenizer, chat) for chat in chats]
        else:
            prompt = options.prompting.prompt() if options.prompting.used else None
            prompts = self.tokenizer.encode([text if prompt is None else prompt.ask(text) for text in texts])
        start, most = self._start, self.model.config.max_length
        for place, tokens in enumerate(prompts):
            if not tokens and start is None:
                raise TextError(place, "an empty text has no next token, and this model has no start token")
            if len(tokens) > most:
                wrong = f"{quoted(texts[place])} takes {len(tokens):,} positions, but the model learned only {most:,}"
                raise TextError(place, wrong)
        return [tokens or [cast(int, start)] for tokens in prompts]

    @property
    def _start(self) -> int | None:
        """The token that a text from nothing begins with."""
        given = self.values.get("bos_token_id")
        return given if isinstance(given, int) else self.tokenizer.special.ids.get("start")

    @staticmethod
    def _batches(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        """The places of prompts of about one length, so many as are read at once."""
        groups: list[list[int]] = []
        for place in sorted(range(len(prompts)), key=lambda place: len(prompts[place])):
            if not groups or (len(groups[-1]) + 1) * len(prompts[place]) > BATCH:
                groups.append([])
            groups[-1].append(place)
        return groups

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        """None: what is longer than the positions is an error."""
        return []

    def model_inputs(self, text: str) -> ModelInputs:
        """What the model is given to read a text, and what to call its tokens."""
        (tokens,) = self._prompts([text], Completing())
        inputs = {"tokens": torch.tensor([tokens], device=self.model.embedding.weight.device)}
        return ModelInputs(inputs, self.tokenizer.pieces(tokens), len(tokens))

    def picture(self, prediction: Any) -> Picture | None:
        raise UserError("a language model has many maps and no single picture: `foveate look` writes a page of them")

    @classmethod
    def eval_options(cls, recipe: dict[str, Any], where: str) -> Any:
        from foveate.tasks.completion.measures import Measuring

        return Measuring()

    def evaluate(self, data: Sequence[Path], options: Any, console: Console) -> Evaluation:
        """Bits per byte and perplexity on prose or, with choices, the accuracy on pairs or questions."""
        from foveate.tasks.completion.measures import accuracy, compression
        from foveate.tasks.completion.multiple_choice import multiple_choice

        model = self.in_precision(options.precision)
        if options.task is not None:
            if data:
                raise UserError("both --task and --data are given; choose one")
            return multiple_choice(ChoiceScorer(model, self.tokenizer, options.prompting), options.task)
        if not data:
            raise UserError("this model was trained elsewhere: give --data FILE to measure it on")
        if options.prompting.choices:
            return accuracy(ChoiceScorer(model, self.tokenizer, options.prompting), data)
        return compression(model, self.tokenizer, self._start, data, options.context)
