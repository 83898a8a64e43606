"""A language model that foveate trained, with its tokenizer as public ones are: special tokens by role."""

from typing import Any, cast

from tokenizers import Tokenizer, processors

from foveate.data.public_tokenizer import ROLES, PublicTokenizer
from foveate.data.tokenizers import SPECIAL, SubwordTokenizer
from foveate.errors import UserError
from foveate.tasks.completion.completer import Completer
from foveate.tasks.language import Language
from foveate.tasks.predictor import Predictor


def as_completer(task: Any) -> Completer:
    """A trained GPT as a public model: its texts begin with the start token. Raises UserError for another model."""
    if not isinstance(task, Predictor) or not isinstance(task.task, Language):
        raise UserError("only language models are exported: the model of `foveate train language`")
    own = cast(SubwordTokenizer, task.processor.tokenizer)
    tokenizer, special = Tokenizer.from_str(own.to_json()), own.special
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL[special.start]} $A", special_tokens=[(SPECIAL[special.start], special.start)]
    )
    tokenizer.add_special_tokens([SPECIAL[number] for number in (special.pad, special.start, special.end)])
    roles = {ROLES[role]: SPECIAL[number] for role, number in special.ids.items()}
    values = {"bos_token_id": special.start, "eos_token_id": special.end}
    model: Any = task.model
    return Completer(model, str(task.description["family"]), PublicTokenizer(tokenizer, roles), values)
