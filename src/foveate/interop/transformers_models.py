"""Models of transformers that are given what our models are given, and give what ours give.

B batch    T tokens    S places of the input    N vocabulary or labels    Q queries    R rows that are written
"""

import importlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.models.speech.output import SpeechOutput
from foveate.models.text.causal_language_model import Side, align_right
from foveate.models.vision.detections import Detections
from foveate.nn.encoder_decoder import EncoderDecoder

TYPES = "token_type_ids"
"""What transformers calls the types of tokens."""

TOKENS_BEFORE = 8
"""Tokens before the places of an image, such as a class token, at most."""


@dataclass(kw_only=True)
class ThroughTransformersConfig:
    """What foveate's forms ask of a config."""

    model_type: str
    head: str
    vocabulary: int
    classes: int
    max_length: int
    image_size: int = 224
    image_sides: tuple[int, int] | None = None
    """Height and width, where they differ."""
    channels: int = 3
    token_types: int = 0
    """Types of tokens that the model is told."""
    src_vocab: int = 0
    tgt_vocab: int = 0
    """The vocabularies of a model that reads one text and writes another."""
    queries: int = 0
    """Objects that the model finds in an image."""


class ThroughTransformers(nn.Module):
    """A model of transformers, which is given what our models are given."""

    attends = True

    def __init__(self, theirs: nn.Module, config: ThroughTransformersConfig) -> None:
        super().__init__()
        self.theirs, self.config = theirs, config
        self.named = frozenset(inspect.signature(theirs.forward).parameters)

    def grid_of_places(self, height: int, width: int, places: int) -> tuple[int, int, int]:
        """Rows and columns of this many places of an image, and tokens before them: by the size of patches, or those
        that are the most alike to the image's own shape."""
        patch = getattr(self.theirs.config, "patch_size", None)
        sides = [patch, patch] if isinstance(patch, int) else patch
        if isinstance(sides, list | tuple) and len(sides) == 2:
            rows, columns = height // sides[0], width // sides[1]
            if 0 <= (before := places - rows * columns) <= TOKENS_BEFORE:
                return rows, columns, before
        divisors = [rows for rows in range(1, places + 1) if places % rows == 0]
        rows = min(divisors, key=lambda one: abs(math.log(one * one * width / (places * height))))
        return rows, places // rows, 0


class Words(ThroughTransformers):
    """Logits of the word or the label of each token."""

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        padding_side: Side = "right",
        places: Int[Tensor, "B M"] | None = None,
        **types: Tensor,
    ) -> Output:
        """Logits (B, T, N), or at given `places` alone, (B, M, N)."""
        logits = self.logits(self.inputs(tokens, lengths, padding_side) | self.types(types))
        if places is not None:
            logits = logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))
        return Output(logits)

    def logits(self, inputs: dict[str, Tensor]) -> Tensor:
        """What the model makes of its inputs."""
        found: Tensor = self.theirs(**inputs).logits
        return found

    def types(self, types: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The types of tokens by their name there, where the model is told them."""
        known = "token_types" in types and self.config.token_types > 1
        return {TYPES: types["token_types"]} if known else {}

    def inputs(self, tokens: Tensor, lengths: Tensor | None, side: Side = "right") -> dict[str, Tensor]:
        """What transformers calls these inputs."""
        found = {"input_ids": tokens}
        if lengths is not None and "attention_mask" in self.named:
            columns = torch.arange(tokens.shape[1], device=tokens.device)
            real = columns < lengths[:, None] if side == "right" else columns >= tokens.shape[1] - lengths[:, None]
            found["attention_mask"] = real.long()
        return found

    def prefill(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"], padding_side: Side = "right"
    ) -> tuple[Float[Tensor, "B N"], "CacheState"]:
        """Read prompts; the logits of their next tokens and the state to go on from."""
        longest = int(lengths.max())
        tokens = tokens[:, :longest] if padding_side == "right" else tokens[:, -longest:]
        if padding_side == "right":
            tokens = align_right(tokens, longest - lengths)
        inputs = self.inputs(tokens, lengths, "left")
        state = CacheState(inputs.get("attention_mask", torch.ones_like(tokens)))
        return self._read(inputs, state), state

    def step(self, tokens: Int[Tensor, "R"], state: "CacheState") -> Float[Tensor, "R N"]:
        """The logits of the tokens after these."""
        state.mask = torch.cat([state.mask, state.mask.new_ones(len(tokens), 1)], 1)
        return self._read({"input_ids": tokens[:, None], "attention_mask": state.mask}, state)

    def _read(self, inputs: dict[str, Tensor], state: "CacheState") -> Tensor:
        if "position_ids" in self.named:
            columns = (state.mask.cumsum(1) - 1).clamp(min=0)
            inputs["position_ids"] = columns[:, -inputs["input_ids"].shape[1] :]
        cache = "cache" if "cache" in self.named else "past_key_values"  # its name in versions 5.24 and before
        output = self.theirs(**inputs, **{cache: state.past}, use_cache=True)
        state.past = output[cache]
        logits: Tensor = output.logits[:, -1]
        return logits


@dataclass
class CacheState:
    """The texts so far of a model of transformers: its cache, and which columns are real."""

    mask: Int[Tensor, "R T"]
    past: Any = None

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.mask = self.mask[rows]
        self.past.batch_select_indices(rows)


class Texts(Words):
    """Logits of the label of each text."""

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        padding_side: Side = "right",
        places: Int[Tensor, "B M"] | None = None,
        **types: Tensor,
    ) -> Output:
        """Logits (B, 1, N). Rows of other lengths are read alone: transformers finds padding by a token's number, and a
        model of the next word whose config has no such number refuses all batches."""
        batch, longest = tokens.shape
        whole = lengths is None or bool((lengths == longest).all())
        if whole and (batch == 1 or getattr(self.theirs.config, "pad_token_id", None) is not None):
            return Output(self.theirs(**self.inputs(tokens, None)).logits[:, None])
        rows = []
        for row, length in enumerate([longest] * batch if lengths is None else lengths.tolist()):
            own = tokens[row : row + 1]
            rows.append(own[:, :length] if padding_side == "right" else own[:, -length:])
        return Output(torch.cat([self.theirs(**self.inputs(one, None)).logits for one in rows])[:, None])


class Vectors(Words):
    """The hidden states of tokens."""

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        padding_side: Side = "right",
        places: Int[Tensor, "B M"] | None = None,
        **types: Tensor,
    ) -> Output:
        """Vectors (B, T, C)."""
        return Output(self.theirs(**self.inputs(tokens, lengths, padding_side)).last_hidden_state)


class Images(ThroughTransformers):
    """Logits of the label of each image."""

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits (B, 1, N)."""
        return Output(self.theirs(pixel_values=pixels).logits[:, None])


class QuestionSpans(Words):
    """Logits of the first and of the last token of an answer."""

    def logits(self, inputs: dict[str, Tensor]) -> Float[Tensor, "B 2 T"]:
        output = self.theirs(**inputs)
        return torch.stack([output.start_logits, output.end_logits], 1)


class ImageVectors(ThroughTransformers):
    """A vector of each image: the model's own, or the mean of its places."""

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Vectors (B, C)."""
        output = self.theirs(pixel_values=pixels)
        pooled = getattr(output, "pooler_output", None)
        if pooled is None:
            hidden = output.last_hidden_state
            pooled = hidden.flatten(2).mean(2) if hidden.ndim == 4 else hidden.mean(1)
        return Output(pooled.flatten(1))


class ImageObjects(ThroughTransformers):
    """Objects in images, each of which is read alone, without padding."""

    def forward(self, pixels: Float[Tensor, "B c h w"], sizes: Int[Tensor, "B 2"] | None = None) -> Output:
        """Logits (B, Q, N) and boxes (B, Q, 4), centre and size as shares of the image."""
        whole = [list(pixels.shape[2:])] * len(pixels)
        shapes = whole if sizes is None else sizes.tolist()
        rows = zip(pixels, shapes, strict=True)
        outputs = [self.theirs(pixel_values=one[None, :, :height, :width]) for one, (height, width) in rows]
        logits, boxes = (torch.cat([getattr(one, part) for one in outputs]) for part in ("logits", "pred_boxes"))
        return Detections(logits, boxes=boxes)


class Sounds(ThroughTransformers):
    """What is said at each place of a sound, or its label. Sounds are read one by one, without padding."""

    def forward(self, source: Float[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> SpeechOutput:
        """Logits of the character at each place (B, Z, N), or of labels (B, 1, N)."""
        rows = zip(source, source_lengths.tolist(), strict=True)
        found = [self.theirs(input_values=one[None, :length]).logits[0] for one, length in rows]
        if self.config.head == "sound":
            return SpeechOutput(torch.stack(found)[:, None])
        lengths = torch.tensor([len(one) for one in found], device=source.device)
        logits = nn.utils.rnn.pad_sequence(found, batch_first=True)
        return SpeechOutput(logits, ctc=logits, ctc_lengths=lengths)


class Sequences(EncoderDecoder, ThroughTransformers):
    """Texts that a decoder writes about a text that an encoder has read."""

    def __init__(self, theirs: Any, config: ThroughTransformersConfig) -> None:
        super().__init__(theirs, config)
        self._modules = {"decoder": theirs.get_decoder(), **self._modules}  # its sites are named as those of our models

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token (B, T, N)."""
        mask = _columns(source, source_lengths)
        return Output(self.theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> "WrittenSoFar":
        """Reads the source."""
        theirs: Any = self.theirs
        mask = _columns(source, source_lengths)
        encoded = theirs.get_encoder()(input_ids=source, attention_mask=mask, return_dict=True)
        # Some encoders pad by themselves: what is behind the source is cut off, as it is when they generate.
        return WrittenSoFar(encoded.last_hidden_state[:, : source.shape[1]], mask)

    def step(self, tokens: Int[Tensor, "R"], state: "WrittenSoFar") -> Float[Tensor, "R N"]:
        """The logits of the tokens after these. The decoder reads all that was written anew, because not all of these
        models keep the same of it."""
        column = tokens[:, None]
        state.target = column if state.target is None else torch.cat([state.target, column], 1)
        encoded = importlib.import_module("transformers.modeling_outputs").BaseModelOutput(state.encoded)
        output = self.theirs(
            encoder_outputs=encoded, attention_mask=state.mask, decoder_input_ids=state.target, use_cache=False
        )
        logits: Tensor = output.logits[:, -1]
        return logits


@dataclass
class WrittenSoFar:
    """What was read and written of each text."""

    encoded: Float[Tensor, "R S C"]
    mask: Int[Tensor, "R S"]
    target: Int[Tensor, "R T"] | None = None

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.encoded, self.mask = self.encoded[rows], self.mask[rows]
        if self.target is not None:
            self.target = self.target[rows]


def _columns(tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Int[Tensor, "B S"]:
    """1 for each real token, 0 for padding."""
    return (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]).long()


class ImageTexts(ThroughTransformers):
    """Texts that transformers generates about an image."""

    @property
    def says_length(self) -> bool:
        """Whether the folder says how long a text may be."""
        own: Any = self.theirs.generation_config
        usual = (None, 20)  # which is what transformers has
        return bool(own.max_new_tokens is not None or own.max_length not in usual)

    @property
    def start(self) -> int:
        """The token that texts begin with, where they do not go on from what was read."""
        own: Any = self.theirs.generation_config
        names = ("decoder_start_token_id", "bos_token_id")
        numbers = (getattr(one, name, None) for one in (own, self.theirs.config) for name in names)
        return next((number for number in numbers if number is not None), 0)

    def write(self, inputs: dict[str, Tensor], most: int | None) -> list[int]:
        """The tokens that are written for one image, behind what was read."""
        theirs: Any = self.theirs
        most = most or theirs.generation_config.max_new_tokens  # BLIP-2 asks its part that writes, which has another
        limit = {} if most is None else {"max_new_tokens": most}
        (row,) = theirs.generate(**inputs, **limit).tolist()
        apart = theirs.config.is_encoder_decoder or "input_ids" not in inputs
        read = row[:1] if apart else inputs["input_ids"][0].tolist()
        found: list[int] = row[len(read) :] if row[: len(read)] == read else row
        return found

    def forward(self, tokens: Int[Tensor, "B T"] | None = None, **inputs: Tensor) -> Output:
        """Logits (B, T, N) where the model reads these inputs, and then the `tokens` that it wrote."""
        theirs: Any = self.theirs
        if tokens is not None:
            begun = torch.cat([tokens.new_full((len(tokens), 1), self.start), tokens], 1)
            if theirs.config.is_encoder_decoder:
                inputs["decoder_input_ids"] = begun
            else:
                inputs = self._extended(inputs, tokens) if "input_ids" in inputs else {**inputs, "input_ids": begun}
        return Output(theirs(**inputs, use_cache=False).logits)

    def _extended(self, inputs: dict[str, Tensor], tokens: Tensor) -> dict[str, Tensor]:
        """The inputs with a column for each further token, as transformers adds it when it generates."""
        theirs: Any = self.theirs
        further: Any = {name: value for name, value in inputs.items() if name != "input_ids"}
        for _ in range(tokens.shape[1]):
            further = theirs._update_model_kwargs_for_generation({}, further, is_encoder_decoder=False)
        return {**further, "input_ids": torch.cat([inputs["input_ids"], tokens.to(inputs["input_ids"])], 1)}
