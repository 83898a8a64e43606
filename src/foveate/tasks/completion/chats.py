"""Makes of a run that began from weights with a chat template a model that chats."""

from typing import Any

from foveate.data.text.conversations import answer_ends
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError
from foveate.models.text import CAUSAL
from foveate.tasks.completion.completer import Completer
from foveate.tasks.completion.exporting import public_tokenizer

NO_TEMPLATE = "this model was not trained to chat: it has no chat template; leave --chat out"


def completer_of(skill: Any) -> Completer:
    """A run's model as those of public folders are. Raises UserError for one without a template."""
    own, family = skill.processor.reads.tokenizer, str(skill.description["family"])
    if family not in CAUSAL or not isinstance(own, TextTokenizer) or not own.chat:
        raise UserError(NO_TEMPLATE)
    tokenizer = public_tokenizer(own, own.begin)
    tokenizer.config |= own.chat
    ends = [own.special.end, *answer_ends(own)]
    values = {"bos_token_id": own.special.ids.get("start"), "eos_token_id": ends}
    return Completer.of(skill.model, family, tokenizer, values, skill.folder)
