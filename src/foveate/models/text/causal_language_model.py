"""The decoder of the Transformer alone: each token is predicted from those before it.

GPT, GPT-NeoX and Llama differ only in the parts of their stack, so their pages are configs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Memory, causal, left_padding, same_text
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, at_least, one_of
from foveate.nn import (
    Running,
    StackConfig,
    TransformerStack,
    initialize_language_model,
    longest_sequence,
    running_layer,
    text_vector,
    tie_output,
)
from foveate.nn.blocks import SelfAttention
from foveate.nn.heads import HeadMixing
from foveate.nn.latent_attention import latent_layers
from foveate.nn.multi_token_attention import ScoredMemory

Mixing = Literal[
    "attention",
    "talking",
    "multi-token",
    "differential",
    "latent",
    "linear",
    "retention",
    "gated-delta",
    "mamba-2",
]
"""Names of layers that look at earlier places."""

Side = Literal["left", "right"]
"""Where rows that are shorter than others are padded."""


@dataclass(kw_only=True)
class CausalLanguageModelConfig(StackConfig):
    """The parts of a stack with a causal mask, and its vocabulary."""

    vocabulary: FromData
    """Size of the vocabulary."""
    norm: Literal["post", "pre", "output", "sandwich"] = "pre"
    activation_dropout: float | None = 0.0
    mixing: Mixing = "attention"  # type: ignore[assignment]  # of those that read from left to right there are more
    """What looks at earlier places: attention, whose heads may talk to one another (Shazeer et al. 2020), whose scores
    may depend on those of tokens nearby (multi-token, Golovneva et al. 2025), whose heads may be subtracted in pairs
    (differential, Ye et al. 2024) or share a narrow vector of each place (latent, DeepSeek-AI 2024). Or a layer with a
    state of fixed size: linear attention (Katharopoulos et al. 2020), one that forgets (retention, Sun et al. 2023) or
    replaces (gated delta rule, Yang et al. 2024), or a state space (Mamba-2, Dao and Gu 2024)."""
    latent_width: int | None = None
    """Width of that vector, to which keys are added that turn with the position; by default four times that of a
    head."""
    tie: bool = True
    """Use the embeddings as the weights of the output layer too."""
    scale_embeddings: bool = False
    """Multiply embeddings by the root of the width (Gemma)."""
    output_bias: bool = False
    """Bias in the layer that predicts tokens (GPT-J)."""
    logit_cap: float | None = None
    """Limit of the logits of tokens, cap * tanh(logit / cap) (Gemma 2); by default none."""
    head: Literal["words", "text", "tokens", "none"] = "words"
    """What is predicted: the next token, a label of the whole text, a label of each token, or nothing: then the output
    are the hidden states."""
    classes: FromData = 2
    """Number of labels of a text or a token."""
    pooling: Literal["last", "mean"] = "last"
    """What stands for a text: its last token, or the mean of its tokens."""
    label_bias: bool = True
    """Bias in the layer that predicts labels."""


@dataclass
class TextState:
    """The text so far of each row: keys and values, or the state, of every block."""

    past: list[Memory | Running]
    padding: Int[Tensor, "R"] | None
    """Columns before each row's first token; None if no row has any."""
    added: Float[Tensor, "R 1 C"] | None = None
    """What is added to the embedding of every token of a row."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        for memory in self.past:
            memory.reorder(rows)
        self.padding = None if self.padding is None else self.padding[rows]
        self.added = None if self.added is None else self.added[rows]

    @property
    def can_crop(self) -> bool:
        """Whether the last tokens can be forgotten: not where a block has a state in place of keys and values."""
        return all(isinstance(memory, Memory) and memory.can_crop for memory in self.past)

    def crop(self, count: int) -> None:
        """Forget the last `count` tokens, of which nobody reads the keys and values any more."""
        for memory in self.past:
            assert isinstance(memory, Memory)
            memory.crop(memory.length - count, reuse=True)

    def join(self, other: "TextState") -> None:
        """Append the texts of another state, whose last tokens stand in the same column as those of this one. Columns
        that are padding in all texts are dropped."""
        for state in (self, other):
            state._drop_padding()
        length = max(state.past[0].length for state in (self, other))
        paddings = [own + length - state.past[0].length for state in (self, other) for own in state._paddings()]
        for memory, more in zip(self.past, other.past, strict=True):
            memory.join(more)  # type: ignore[union-attr, arg-type]
        device = self.past[0].keys.device  # type: ignore[union-attr]
        self.padding = torch.tensor(paddings, device=device) if any(paddings) else None
        self.added = None if self.added is None or other.added is None else torch.cat([self.added, other.added])

    def _paddings(self) -> list[int]:
        """Columns before each row's first token."""
        rows = len(self.past[0].keys)  # type: ignore[union-attr]
        return [0] * rows if self.padding is None else self.padding.tolist()

    def _drop_padding(self) -> None:
        """Drop the columns that are padding in all rows."""
        least = min(self._paddings())
        if self.padding is not None and least:
            self.padding = self.padding - least
            for memory in self.past:
                memory.drop_first(least)  # type: ignore[union-attr]

    def repeated(self, rows: int) -> "TextState":
        """Returns a state that repeats the only row of this one `rows` times, with memories of its own."""
        past = [memory.repeated(rows) for memory in self.past]
        return TextState(past, None, None if self.added is None else self.added.expand(rows, -1, -1))


class CausalLanguageModel(nn.Module):
    """Predicts the next token of a text from all tokens before it."""

    def __init__(self, config: CausalLanguageModelConfig) -> None:
        super().__init__()
        one_of("head", config.head, ("words", "text", "tokens", "none"))
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.stack = TransformerStack(config, attention=_layers(config))
        self.output = self.output_layer()
        initialize_language_model(self, config.layers)
        if config.tie and isinstance(self.output, nn.Linear) and config.head == "words":
            tie_output(self.output, self.embedding)

    def output_layer(self) -> nn.Linear | nn.Identity:
        """The layer that makes logits of hidden states: of words or of labels."""
        config, words = self.config, self.config.head == "words"
        if config.head == "none":
            return nn.Identity()
        bias = config.output_bias if words else config.label_bias
        return nn.Linear(config.width, config.vocabulary if words else config.classes, bias=bias)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        padding_side: Side = "right",
        places: Int[Tensor, "B M"] | None = None,
        texts: Int[Tensor, "B T"] | None = None,
    ) -> Output:
        """Logits of the token after each token or of each token's label, (B, T, N), of those at given `places` alone,
        (B, M, N), or of the text's label, (B, 1, N).

        Padding on the right changes nothing before it, so it needs no `lengths` unless the whole text gets a label.
        Several texts stand in one row where `texts` numbers them: each is read as if it stood alone.
        """
        return self.predict(self.hidden(tokens, lengths, padding_side, texts=texts), lengths, padding_side, places)

    def predict(
        self,
        hidden: Float[Tensor, "B T C"],
        lengths: Int[Tensor, "B"] | None,
        padding_side: Side = "right",
        places: Int[Tensor, "B M"] | None = None,
    ) -> Output:
        """Applies the head to hidden states."""
        if self.config.head == "text":
            hidden = text_vector(hidden, lengths, self.config.pooling, padding_side)[:, None]
        elif places is not None:
            hidden = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
        return Output(self.logits(hidden))

    def logits(self, hidden: Float[Tensor, "*places C"]) -> Float[Tensor, "*places N"]:
        """The logits of hidden states."""
        logits, cap = self.output(hidden), self.config.logit_cap
        return cap * torch.tanh(logits / cap) if cap is not None and self.config.head == "words" else logits

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        padding_side: Side = "right",
        added: Float[Tensor, "B 1 C"] | None = None,
        texts: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """The hidden states that `output` makes logits of."""
        padding = None if lengths is None or padding_side == "right" else tokens.shape[1] - lengths
        return self.read(tokens, TextState([], padding, added), texts)

    def prefill(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"],
        padding_side: Side = "right",
    ) -> tuple[Float[Tensor, "B N"], TextState]:
        """Read prompts of at least one token each; the logits of their next tokens and the state to go on from."""
        return self._prefill(tokens, lengths, padding_side)

    @property
    def can_join(self) -> bool:
        """Whether states can be joined: where every block has keys and values alone."""
        return all(type(memory) is Memory for memory in self._memories(1, 0))

    def step(self, tokens: Int[Tensor, "R"], state: TextState) -> Float[Tensor, "R N"]:
        return self.logits(self.read(tokens[:, None], state)[:, 0])

    def steps(self, tokens: Int[Tensor, "R T"], state: TextState) -> Float[Tensor, "R T N"]:
        """Read several tokens of each row at once; the logits of the token after each."""
        return self.logits(self.read(tokens, state))

    def _prefill(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"],
        padding_side: Side,
        added: Float[Tensor, "B 1 C"] | None = None,
    ) -> tuple[Float[Tensor, "B N"], TextState]:
        shortest, longest = int(lengths.min()), int(lengths.max())
        if not shortest:
            raise UserError("an empty prompt has no next token: begin it with a start token")
        if longest > (known := longest_sequence(self)):
            raise UserError(f"a prompt has {longest:,} tokens, but only {known:,} positions were learned; shorten it")
        tokens = tokens[:, :longest] if padding_side == "right" else tokens[:, -longest:]
        padding = None if shortest == longest else longest - lengths
        if padding is not None and padding_side == "right":
            tokens = align_right(tokens, padding)
        state = TextState(self._memories(*tokens.shape), padding, added)
        return self.logits(self.read(tokens, state)[:, -1]), state

    def _memories(self, rows: int, columns: int) -> list[Memory | Running]:
        """The past of texts of which nothing was read."""
        return self.stack.memories(self.embedding.weight.new_empty(rows, columns, self.config.width))

    def read(
        self, tokens: Int[Tensor, "R T"], state: TextState, texts: Int[Tensor, "R T"] | None = None
    ) -> Float[Tensor, "R T C"]:
        """The hidden states of tokens after those of the state, if that has any; adds theirs to it."""
        most = [part.fitting(tokens.shape[1]) for part in state.past if isinstance(part, ScoredMemory)]
        if most and most[0] < tokens.shape[1]:
            return torch.cat([self.read(piece, state) for piece in tokens.split(most[0], 1)], 1)
        start = state.past[0].length if state.past else 0
        mask = causal(start) if tokens.shape[1] > 1 else None
        places = None
        if state.padding is not None:
            real = left_padding(state.padding)
            mask = real if mask is None else mask & real
            columns = torch.arange(start, start + tokens.shape[1], device=tokens.device)
            places = (columns - state.padding[:, None]).clamp(min=0)
        elif texts is not None:
            mask, places = causal() & same_text(texts), places_within(texts)
        x = self.embedding(tokens)
        x = x * self.config.width**0.5 if self.config.scale_embeddings else x
        return self.stack(x if state.added is None else x + state.added, mask, places, state.past or None)


def _layers(config: CausalLanguageModelConfig) -> Callable[..., SelfAttention] | None:
    """Makes the layers that look at earlier places; None for attention."""
    if config.mixing in get_args(HeadMixing):
        return None
    _check_mixing(config)
    if config.mixing == "latent":
        at_least(1, "latent_width", 1 if config.latent_width is None else config.latent_width)
        turned = config.rotary_width or config.head_width or config.width // config.heads
        return latent_layers(config.latent_width, turned if config.positions == "rotary" else 0)
    return partial(running_layer, config.mixing)


def _check_mixing(config: CausalLanguageModelConfig) -> None:
    """Raise UserError for what does not go together with layers other than attention."""
    mixing, allowed = config.mixing, ["none", "sinusoidal", "learned", "rotary"]
    if mixing != "latent":
        allowed = allowed if mixing in ("retention", "gated-delta") else allowed[:-1]
        if config.window is not None:
            raise UserError(f"mixing={mixing!r} has no window: set window to None")
    if config.positions not in allowed:
        raise UserError(f"mixing={mixing!r} has no {config.positions} positions: choose {', '.join(allowed)}")


def places_within(texts: Int[Tensor, "R T"]) -> Int[Tensor, "R T"]:
    """The place of each token in its text, of texts that stand one behind the other in a row."""
    columns = torch.arange(texts.shape[1], device=texts.device)
    first = F.pad(texts[:, 1:] != texts[:, :-1], (1, 0), value=True)
    return columns - torch.where(first, columns, 0).cummax(1).values


def align_right(tokens: Int[Tensor, "B T"], padding: Int[Tensor, "B"]) -> Int[Tensor, "B T"]:
    """Move each row's padding from its end to its beginning."""
    columns = torch.arange(tokens.shape[1], device=tokens.device) - padding[:, None]
    return tokens.gather(1, columns % tokens.shape[1])
