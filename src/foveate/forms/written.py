"""Texts that a model writes, token by token.

    Written             what all have in common; a subclass says what the tokens are
    WrittenWords        the tokens of a vocabulary that is learned from the texts: of captions
    WrittenCharacters   characters: of words that are read, of transcripts

B batch    T tokens of a text, with its start or its end    S places of the input    N vocabulary
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.contracts import IGNORE, Generator, Hypothesis, Output, Tokenizer, count_labels
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.character_tokens import CharacterTokenizer, find_characters
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.data.tokens.tokenizers import TRAINERS, Tokens
from foveate.decoding import Decoding, batches_at_once, decode_all
from foveate.decoding.settings import longest_outputs
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError, at_least, at_most
from foveate.forms.answers import Answer
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Form, Learned, MapRow, OutputForm
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.scored import ScoredForm
from foveate.inference.cpu import Precision
from foveate.sight import Sight
from foveate.training.settings import check_seed

VOCABULARY = 10_000_000
"""More entries than any vocabulary has; for far more there is not even memory to count in."""


@dataclass
class WriteOptions:
    """How a model is asked to write."""

    decoding: Decoding = field(default_factory=Decoding)
    seed: int = 1
    """Seed of random draws."""
    precision: Precision = "float32"
    """In full precision, or faster where layers are wide: bfloat16 on some CPUs, 8 bits on most (docs/speed.md)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        self.decoding.check()
        check_seed(self.seed)


@dataclass
class ChatOptions(WriteOptions):
    """How a language model is asked to write, or to reply."""

    chat: bool = False
    """Give the text to a model that learned to chat, as a user's message; print its reply: the likeliest one, unless
    --temperature, --top-k or --top-p say how to draw."""
    system: str | None = None
    """With --chat: what the system tells the model before the message."""

    def check(self) -> None:
        super().check()
        if self.system is not None and not self.chat:
            raise UserError("--system is a part of a chat: give --chat too")


@dataclass(kw_only=True)
class WrittenAnswer(Answer):
    """The best text that a model wrote, and what else it found."""

    called: ClassVar[str] = "Output"

    text: str = ""
    log_prob: float = 0.0
    """The log-probability of the tokens that were written, in nats."""
    ended: bool = True
    """False if the length limit was reached before the model ended the text."""
    others: list[str] = field(default_factory=list)
    """The next best texts, if more than one was asked for."""
    tokens: list[int] = field(default_factory=list, repr=False)
    """Those of the best text, without start and end."""

    @property
    def cells(self) -> list[str]:
        """All texts; none where nothing was written."""
        return [self.text, *self.others] if self.text or self.others else []

    @property
    def title(self) -> str:
        return self.text

    @property
    def notes(self) -> list[str]:
        return [] if self.ended else ["The text reached the length limit."]


@dataclass
class Written(ScoredForm, OutputForm):
    """A text: inputs `target` (B, T), beginning with the start token, and `target_lengths` (B,); labels (B, T) are the
    target one place on, with its end, then IGNORE.

    A subclass has the property `tokenizer`, and says which `texts` of an example are learned to be written.
    """

    options: ClassVar[type[Any]] = WriteOptions
    eval_options: ClassVar[type[Any]] = WriteOptions
    worth_optimizing: ClassVar[float] = 1
    decoder: ClassVar[str] = "decoder"
    """The path of the decoder in a model."""
    attending: ClassVar[tuple[str, ...]] = ("decoder", "*cross")
    """Patterns of the sites where what is written looks at the input."""
    with_lengths: ClassVar[bool] = True
    """Whether models are given `target_lengths`."""
    start_sign: ClassVar[str] = "<start>"
    end_sign: ClassVar[str] = "¶"
    """What stands for the start and the end of a text in pictures."""

    decoding: Decoding = field(default_factory=Decoding)

    def check(self) -> None:
        self.decoding.check()

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_text_tokenizer(path)

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into tokens, once it is learned."""
        raise NotImplementedError

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens before a text and behind it: a public tokenizer may have more than a start and an end."""
        own: Any = self.tokenizer
        begin, end = (own.begin, own.end) if isinstance(own, TextTokenizer) else ((), ())
        return (own.special.start, *begin), end or (own.special.end,)

    def texts(self, example: Any) -> Sequence[str]:
        """The texts that are learned to be written about an example; each makes a row of a batch."""
        return [example.label]

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    # -- training

    def prepare(self, example: Any) -> list[np.ndarray]:
        """The tokens of each text of an example, between start and end."""
        before, behind = self.around
        found = self.tokenizer.encode(list(self.texts(example)))
        return [np.array([*before, *tokens, *behind], np.int32) for tokens in found]

    def tensors(
        self, prepared: Sequence[Any], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        target, lengths = padded([tokens[:-1] for tokens in prepared], self.tokenizer.special.pad)
        labels, _ = padded([tokens[1:] for tokens in prepared], IGNORE)
        inputs = {"target": target, **({"target_lengths": lengths} if self.with_lengths else {})}
        return inputs, {"labels": labels}, count_labels(labels)

    # -- writing

    def run_options(self) -> Any:
        return self.options(decoding=replace(self.decoding))

    def measure_options(self) -> Any:
        return self.eval_options(decoding=replace(self.decoding))

    @property
    def token_rules(self) -> TokenRules | None:
        """How the scores of each step are changed."""
        return None

    def nothing(self) -> WrittenAnswer:
        return WrittenAnswer()

    def longest(self, model: nn.Module, inputs: Mapping[str, Tensor], decoding: Decoding) -> Int[Tensor, "B"]:
        """The greatest number of tokens of each text: by the lengths of sources, where the inputs have these."""
        rows = next(iter(inputs.values()))
        lengths = inputs.get("source_lengths", torch.zeros(len(rows), dtype=torch.long, device=rows.device))
        return longest_outputs(model, lengths, decoding, inputs.get("lengths"))

    def at_once(self, device: torch.device) -> int:
        return batches_at_once(device)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[WrittenAnswer]:
        (found,) = self.decide_all(model, [(prepared, inputs)], options)
        return found

    def decide_all(
        self,
        model: Any,
        batches: Iterable[tuple[Sequence[Any], dict[str, Tensor]]],
        options: Any,
        at_once: int = 1,
    ) -> Iterator[list[WrittenAnswer]]:
        return map(self.answers, self.search(model, (inputs for _, inputs in batches), options, at_once))

    def search(
        self, model: Any, batches: Iterable[dict[str, Tensor]], options: Any, at_once: int = 1
    ) -> Iterator[list[list[Hypothesis]]]:
        """What is found for each input of each batch, the best first: several batches at once on a CPU.

        Samples are drawn by one seed for all batches.
        """
        decoding, rules, special = options.decoding, self.token_rules, self.tokenizer.special
        special = special if rules is None else replace(special, withheld=())
        generator = torch.Generator(next(model.parameters()).device).manual_seed(options.seed)
        return decode_all(
            as_generator(model),
            batches,
            special,
            decoding,
            generator,
            at_once,
            lambda inputs: self.longest(model, inputs, decoding),
            rules,
        )

    def decoded(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts of tokens."""
        return self.tokenizer.decode(rows)

    def answers(self, hypotheses: Sequence[Sequence[Hypothesis]]) -> list[WrittenAnswer]:
        """The answers for what was found for each input of a batch, the best first."""
        found = []
        for best, *others in hypotheses:
            text, *further = self.decoded([one.tokens for one in (best, *others)])
            answer = WrittenAnswer(
                text=text, log_prob=best.log_prob, ended=best.ended, others=further, tokens=list(best.tokens)
            )
            found.append(answer)
        return found

    # -- looking

    def teach(self, answer: WrittenAnswer) -> dict[str, Tensor]:
        return {"target": torch.tensor([[self.tokenizer.special.start, *answer.tokens]])}

    def scored_labels(self, output: Output, answer: WrittenAnswer) -> Int[Tensor, "1 T"]:
        """The tokens of the text, and its end if it has one."""
        return torch.tensor([[*answer.tokens, self.tokenizer.special.end if answer.ended else IGNORE]])

    def named(self, text: str, answer: Any) -> Any:
        (tokens,) = self.tokenizer.encode([text])
        return replace(answer, text=text, tokens=[*tokens], ended=True, others=[])

    def axis(self, answer: WrittenAnswer) -> DecoderNames | None:
        pieces = self.tokenizer.pieces(answer.tokens)
        read, written = [self.start_sign, *pieces], [*pieces, self.end_sign]
        return DecoderNames(token_names(read), token_names(written), self.decoder, len(read))

    def rows(self, sight: Sight, model: nn.Module, answer: WrittenAnswer, before: int) -> list[MapRow]:
        """Each token and the end, in the layer that looks most decidedly, as the mean of its heads; none for an empty
        text."""
        found = self.decided_heads(sight, answer)
        if found is None or not answer.tokens:
            return []
        site, heads = found
        where = site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads"
        names = [*self.tokenizer.pieces(answer.tokens), self.end_sign]
        return [MapRow(name, weights, site=where) for name, weights in zip(names, heads.mean(0), strict=True)]

    def decided_heads(self, sight: Sight, answer: WrittenAnswer) -> tuple[str, Float[Tensor, "H T S"]] | None:
        """The site that looks most decidedly from the tokens at the input, and the weights of its heads."""
        count = len(answer.tokens) + 1
        sites = [name for name in sight.sites if sight[name].shape[2] == count and self.attends_from(name)]
        found = [(name, sight[name].weights()[0].float().cpu()) for name in sites]
        return max(found, key=lambda one: self.decidedness(one[1]), default=None)

    def attends_from(self, site: str) -> bool:
        """Whether what is written looks at the input at this site."""
        return any(fnmatchcase(site.partition("#")[0], pattern) for pattern in self.attending)

    def decidedness(self, heads: Float[Tensor, "H T S"]) -> float:
        """How decidedly a layer looks: the mean of the greatest weights, but for those of the end."""
        return float(heads.mean(0)[:-1].amax(-1).mean())


@dataclass
class WrittenWords(Written):
    """A text of tokens, whose vocabulary is learned from the texts of the examples."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}

    tokens: Tokens = "words"
    """What a text is cut into."""
    vocabulary: int = 10_000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Write lower case only."""
    tokenizer: Learned[Any] = None

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "WrittenWords":
        found = copy(self)
        texts = (text for example in train for text in self.texts(example))
        found.tokenizer = TRAINERS[self.tokens](texts, self.vocabulary, self.lowercase)
        return found


@dataclass
class WrittenCharacters(Written):
    """A text of characters."""

    with_lengths: ClassVar[bool] = False
    characters_from: ClassVar[int] = 5_000
    """Examples that the characters are taken from, where there are more of them."""

    characters: Learned[str] = ""
    """Those that the model can write, the most frequent first; their tokens follow the special ones."""

    @property
    def tokenizer(self) -> CharacterTokenizer:
        return CharacterTokenizer(self.characters)

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "WrittenCharacters":
        found = copy(self)
        found.characters = find_characters(
            text for example in train.some(self.characters_from) for text in self.texts(example)
        )
        return found

    def extend(self, trained: Any, train: Dataset[Any]) -> "WrittenCharacters":
        """With new characters behind the known ones."""
        found: WrittenCharacters = trained.with_settings(self)
        new = self.learn(train, None, None)
        found.characters = "".join(dict.fromkeys(trained.characters + new.characters))
        return found

    def notes(self, examples: Sequence[Any]) -> list[str]:
        characters = [character for one in examples for text in self.texts(one) for character in text]
        return unseen_labels("characters", characters, self.characters)


def require_tokenizer(form: Form, name: str) -> None:
    """Raise UserError where the file of a form's tokenizer was missing."""
    if getattr(form, name) is None:
        raise UserError(f"there is no {form.saved_apart[name]}")


def as_generator(model: nn.Module) -> Any:
    """A model that writes. Raises UserError for another."""
    if not isinstance(model, Generator):
        raise UserError(f"a {type(model).__name__} does not write")
    return model


def check_vocabulary(size: int) -> None:
    """Raise UserError for a size that no vocabulary can have."""
    at_least(1, "vocabulary", size)
    at_most(VOCABULARY, "vocabulary", size)
