"""A language model that foveate trained, with its tokenizer as public ones are: special tokens by role."""

from typing import Any, cast

from tokenizers import Tokenizer, processors

from foveate.contracts import END, PAD, START, UNKNOWN
from foveate.data.public_tokenizer import PublicTokenizer
from foveate.data.tokenizers import SPECIAL, SubwordTokenizer
from foveate.errors import UserError
from foveate.tasks.completion.completer import Completer
from foveate.tasks.language import Language
from foveate.tasks.predictor import Predictor

_ROLES = {"bos_token": START, "eos_token": END, "pad_token": PAD, "unk_token": UNKNOWN}


def as_completer(task: Any) -> Completer:
    """A trained GPT as a public model: its texts begin with START. Raises UserError for another model."""
    if not isinstance(task, Predictor) or not isinstance(task.task, Language):
        raise UserError("only language models are exported: the model of `foveate train language`")
    tokenizer = Tokenizer.from_str(cast(SubwordTokenizer, task.processor.tokenizer).to_json())
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL[START]} $A", special_tokens=[(SPECIAL[START], START)]
    )
    tokenizer.add_special_tokens([SPECIAL[number] for number in (PAD, START, END)])
    roles = {role: SPECIAL[number] for role, number in _ROLES.items()}
    values = {"bos_token_id": START, "eos_token_id": END}
    model: Any = task.model
    return Completer(model, str(task.description["family"]), PublicTokenizer(tokenizer, roles), values)
