"""Models that foveate has none of, or not with all of their parts: the installed transformers runs them here.

They answer, are measured and looked at; they are not trained here, nor written.
"""

import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate import run_dir
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.huggingface import has_transformers, import_transformers, load
from foveate.interop.layout import label_names
from foveate.interop.public_folder import (
    MODEL_TYPES,
    PublicModel,
    has_known_head,
    head_of,
    header_of,
    read_folder,
    reads_images,
    unlike_ours,
)
from foveate.models.text.causal_language_model import Side, align_right

HEADS = {
    "ForCausalLM": "words",
    "LMHeadModel": "words",
    "ForMaskedLM": "words",
    "ForSequenceClassification": "text",
    "ForTokenClassification": "tokens",
    "ForImageClassification": "label",
    "Model": "none",
}
"""What a class predicts, by the end of its name."""

WRITES = "writing"
"""The head of a model that writes about an image and a text."""

OTHER_WRITERS = ("VisionEncoderDecoderModel",)
"""Classes of such models beside those that `AutoModelForImageTextToText` opens."""

CAUSAL = ("ForCausalLM", "LMHeadModel")
"""The ends of the names of classes that predict the next word."""


@dataclass(kw_only=True)
class ThroughTransformersConfig:
    """What foveate's forms ask of a config."""

    model_type: str
    head: str
    vocabulary: int
    classes: int
    max_length: int
    image_size: int = 224
    channels: int = 3


def named_class(folder: Path) -> str:
    """The class of transformers that a folder names; empty where it names none."""
    named = header_of(folder).architectures
    return named[0] if named else ""


def head_through_transformers(folder: Path) -> str:
    """What the model of a folder predicts, by the name of its class. UserError for a class that no task of ours has."""
    name = named_class(folder)
    if name in OTHER_WRITERS or name in image_writers():
        return WRITES
    found = next((head for end, head in HEADS.items() if name.endswith(end)), None)
    if found is None:
        ends = ", ".join(f"...{end}" for end in HEADS)
        raise UserError(f"{folder} is a {name or 'model without a class'}; foveate runs {ends} through transformers")
    return found


def writes_about_images(folder: Path) -> bool:
    """Whether transformers has a model that writes about an image and a text."""
    return named_class(folder) in image_writers()


def image_writers() -> set[str]:
    """The classes that the installed transformers opens as `AutoModelForImageTextToText`."""
    import_transformers()
    names = importlib.import_module("transformers.models.auto.modeling_auto")
    return {*names.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values()}


def predicts_next(folder: Path) -> bool:
    """Whether the model of a folder predicts the next word, not one in a blank."""
    return named_class(folder).endswith(CAUSAL)


def read_through_transformers(folder: Path) -> PublicModel:
    """The model of a folder. Raises UserError where transformers is not installed, or cannot open it."""
    head, values = head_through_transformers(folder), read_json(folder / run_dir.CONFIG)
    theirs: Any = load(folder, torch.device("cpu"), whole=header_of(folder).model_type in MODEL_TYPES)
    own = theirs.config.get_text_config() if hasattr(theirs.config, "get_text_config") else theirs.config
    config = ThroughTransformersConfig(
        model_type=str(theirs.config.model_type),
        head=head,
        vocabulary=int(getattr(own, "vocab_size", 0) or 0),
        classes=len(label_names(values, str(folder / run_dir.CONFIG))) if head not in (WRITES, "words", "none") else 0,
        max_length=int(getattr(own, "max_position_embeddings", 0) or 1_000_000),
        image_size=_side(getattr(own, "image_size", 224)),
        channels=int(getattr(own, "num_channels", 3) or 3),
    )
    kinds = {WRITES: ImageTexts, "words": Words, "text": Texts, "tokens": Words, "none": Vectors, "label": Images}
    return PublicModel(config.model_type, kinds[head](theirs, config).eval(), values)


def _side(size: Any) -> int:
    return int(max(size) if isinstance(size, list | tuple) else size or 224)


class ThroughTransformers(nn.Module):
    """A model of transformers, which is given what our models are given."""

    attends = True

    def __init__(self, theirs: nn.Module, config: ThroughTransformersConfig) -> None:
        super().__init__()
        self.theirs, self.config = theirs, config
        self.named = inspect.signature(theirs.forward).parameters.keys()


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
        logits = self.theirs(**self.inputs(tokens, lengths, padding_side)).logits
        if places is not None:
            logits = logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))
        return Output(logits)

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


def is_ours(folder: Path) -> bool:
    """Whether foveate has a model equal to a folder's, with its head and all parts that its config says; or has to
    refuse it, as one without a config, or with parts that nobody here runs."""
    if not (folder / run_dir.CONFIG).is_file():
        return True
    kind = header_of(folder).model_type
    if kind not in MODEL_TYPES or not has_known_head(folder):
        return False
    return unlike_ours(folder) is None or not _runs_instead(folder)


def _runs_instead(folder: Path) -> bool:
    """Whether a folder of a type that we have, but unlike ours, runs through transformers: if it reads texts, labels
    images, or writes about them."""
    if reads_images(header_of(folder).model_type):
        return named_class(folder).endswith("ForImageClassification") or writes_about_images(folder)
    return any(named_class(folder).endswith(end) for end in HEADS)


def read_any(folder: Path) -> PublicModel:
    """The model of a folder: ours where we have one, otherwise through transformers. Raises UserError, one line: of a
    model that is almost ours, what is unlike it."""
    if is_ours(folder) or not has_transformers():
        return read_folder(folder)
    try:
        return read_through_transformers(folder)
    except UserError:
        if header_of(folder).model_type in MODEL_TYPES and (reason := unlike_ours(folder)) is not None:
            raise reason from None
        raise


def head_of_any(folder: Path) -> str:
    """What the model of a folder predicts. Raises UserError, one line, for one that no task of ours has."""
    return head_of(folder) if is_ours(folder) or not has_transformers() else head_through_transformers(folder)
