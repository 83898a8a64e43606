"""A language model that foveate trained, with its tokenizer as public ones are: special tokens by role."""

from collections.abc import Sequence
from typing import Any, cast

from tokenizers import Tokenizer, processors

from foveate.data.bert_tokenizer import BertTokenizer
from foveate.data.public_tokenizer import ROLES, PublicTokenizer
from foveate.data.tokenizers import SubwordTokenizer
from foveate.errors import UserError
from foveate.special_tokens import Role
from foveate.tasks.completion.completer import Completer
from foveate.tasks.language import Language
from foveate.tasks.predictor import Predictor

SILENT: tuple[Role, ...] = ("pad", "start", "end")
"""The special tokens that stand for no text."""


def as_completer(task: Any) -> Completer:
    """A trained GPT as a public model: its texts begin with the start token. Raises UserError for another model."""
    if not isinstance(task, Predictor) or not isinstance(task.task, Language):
        raise UserError(
            "only language models are exported, the models of `foveate train language` and `cloze`, and those that "
            "label texts or words, of `classify` and `tag`"
        )
    own = cast(SubwordTokenizer, task.processor.tokenizer)
    values = {"bos_token_id": own.special.start, "eos_token_id": own.special.end}
    model: Any = task.model
    tokenizer = public_tokenizer(own, [own.special.start])
    return Completer(model, str(task.description["family"]), tokenizer, values)


def public_tokenizer(
    own: SubwordTokenizer | BertTokenizer, begin: Sequence[int], end: Sequence[int] = ()
) -> PublicTokenizer:
    """A tokenizer of ours as public ones are: with these ids around each text, and special tokens by role."""
    tokenizer, special = Tokenizer.from_str(own.to_json()), own.special
    named = {number: str(tokenizer.id_to_token(number)) for number in special.ids.values()}
    form = " ".join([*(named[number] for number in begin), "$A", *(named[number] for number in end)])
    around = [(named[number], number) for number in dict.fromkeys([*begin, *end])]
    tokenizer.post_processor = processors.TemplateProcessing(single=form, special_tokens=around)
    silent = {special.ids[role] for role in SILENT if role in special}
    tokenizer.add_special_tokens([named[number] for number in sorted(silent)])
    return PublicTokenizer(tokenizer, {ROLES[role]: named[number] for role, number in special.ids.items()})
