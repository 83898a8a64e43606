"""A language model that foveate trained, with its tokenizer as public ones are: special tokens by role."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from tokenizers import Tokenizer, processors

from foveate.data.text.conversations import answer_ends
from foveate.data.tokens.public_tokenizer import ROLES, PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.data.tokens.tokenizers import SubwordTokenizer
from foveate.errors import UserError
from foveate.interop.public_folder import public_tensors
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.special_tokens import Role
from foveate.tasks.completion.completer import Completer
from foveate.tasks.language_model import LanguageModel
from foveate.tasks.tuning.common import TunedModel

SILENT: tuple[Role, ...] = ("pad", "start", "end")
"""The special tokens that stand for no text."""


def writes_words(task: Any) -> bool:
    """Whether it is a language model, of foveate's or of a Hugging Face folder."""
    return isinstance(task, Completer | LanguageModel | TunedModel)


def export_language_model(task: Any, folder: Path) -> str:
    """Write the folder of a language model; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have.
    """
    as_completer(task).save(folder)
    return "AutoModelForCausalLM"


def as_completer(task: Any) -> Completer:
    """A trained GPT as a public model: its texts begin with the start token. Raises UserError for another model."""
    if isinstance(task, Completer):
        return task
    if not writes_words(task):
        name = getattr(getattr(task, "task", None), "name", type(task).__name__)
        raise UserError(f"transformers has no class for the models of `{name}`: they are not exported")
    own = cast(SubwordTokenizer | TextTokenizer, task.processor.reads.words)
    ends = list(dict.fromkeys([own.special.end, *answer_ends(own)]))
    values = {"bos_token_id": own.special.start, "eos_token_id": ends if ends[1:] else ends[0]}
    model = task.model
    if not isinstance(model, CausalLanguageModel):
        raise UserError(f"transformers has no model like {task.recipe.model}: of language models, a GPT is exported")
    tokenizer = public_tokenizer(own, [own.special.start])
    tokenizer.config |= getattr(own, "chat", {})
    return Completer.of(model, str(task.description["family"]), tokenizer, values)


def export_gguf(task: Any, out: Path) -> Path:
    """Write model.gguf of a Llama, and return its path. Raises UserError for another model."""
    from foveate.interop.gguf_llama import write_gguf

    completer = as_completer(task)
    model: Any = completer.model
    family = str(completer.description["family"])
    values, state = public_tensors(family, model)
    write_gguf(out / "model.gguf", values, state, completer.tokenizer)
    return out / "model.gguf"


def public_tokenizer(
    own: SubwordTokenizer | TextTokenizer, begin: Sequence[int], end: Sequence[int] = ()
) -> PublicTokenizer:
    """A tokenizer of ours as public ones are: with these ids around each text, and special tokens by role."""
    tokenizer, special = own.copy(), own.special
    named = {number: str(tokenizer.id_to_token(number)) for number in special.ids.values()}
    form = " ".join([*(named[number] for number in begin), "$A", *(named[number] for number in end)])
    around = [(named[number], number) for number in dict.fromkeys([*begin, *end])]
    tokenizer.post_processor = processors.TemplateProcessing(single=form, special_tokens=around)
    return _with_roles(own, tokenizer)


def public_pair_tokenizer(
    own: SubwordTokenizer | TextTokenizer, around: Sequence[Sequence[int]], segments: bool
) -> PublicTokenizer:
    """The same for two texts that are read together: with ids before, between and behind them.

    With `segments` the tokens from the second text on are of the type 1.
    """
    tokenizer, (begin, between, end) = own.copy(), around
    named = {number: str(tokenizer.id_to_token(number)) for part in around for number in part}

    def of_type(kind: int, numbers: Sequence[int]) -> list[str]:
        return [f"{named[number]}:{kind}" for number in numbers]

    second = int(segments)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[*of_type(0, begin), "$A:0", *of_type(0, end)],
        pair=[*of_type(0, begin), "$A:0", *of_type(0, between), f"$B:{second}", *of_type(second, end)],
        special_tokens=[(name, number) for number, name in named.items()],
    )
    found = _with_roles(own, tokenizer)
    found.config["model_input_names"] = ["input_ids", *(["token_type_ids"] * segments), "attention_mask"]
    return found


def _with_roles(own: SubwordTokenizer | TextTokenizer, tokenizer: Tokenizer) -> PublicTokenizer:
    """The tokenizer with its special tokens by role, those that stand for no text left out of what is decoded."""
    special = own.special
    named = {number: str(tokenizer.id_to_token(number)) for number in special.ids.values()}
    silent = {special.ids[role] for role in SILENT if role in special}
    tokenizer.add_special_tokens([named[number] for number in sorted(silent)])
    return PublicTokenizer(tokenizer, {ROLES[role]: named[number] for role, number in special.ids.items()})
