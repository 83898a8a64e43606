"""Conversations with an assistant, whose answers alone are learned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.dataset import Dataset
from foveate.data.ragged import Numbers
from foveate.data.text.documents import Passage
from foveate.data.text.files import file_lines
from foveate.data.text.spooled_passages import spooled
from foveate.data.tokens.chat import ChatForm, Message, chat_template, found_in
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError, show_value
from foveate.files import parse_json, read_json_value

ENDINGS = (".json", ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""How the names of files of conversations end."""

FIELDS = ("messages", "conversations", "conversation")
"""What a conversation calls its messages: as OpenAI and trl do, or ShareGPT."""

ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "bot", "chatgpt"), "assistant"),
}
"""Who says a message, by what data call them."""

WITHOUT_TEMPLATE = (
    "conversations need a chat template, which says what stands around messages: begin --from a model that was trained "
    "to chat, or put a chat_template into the tokenizer_config.json of its folder"
)


def holds_conversations(paths: Sequence[Path]) -> bool:
    """Returns whether files hold conversations. Raises UserError for some files that do among others that do not."""
    named = [path for path in paths if path.name.lower().endswith(ENDINGS)]
    if named and len(named) < len(paths):
        other = next(path for path in paths if path not in named)
        raise UserError(f"{named[0]} holds conversations, but {other} prose: train on one after the other")
    return bool(named)


def read_conversations(paths: Sequence[Path]) -> Dataset[Passage]:
    """The conversations in files: one in each line, or a JSON list of them.

    Raises UserError, which names the line, for what is none.
    """
    found = spooled(conversation for path in paths for conversation in _conversations(path))
    if not found:
        raise UserError(f"{paths[0]}: there is no conversation in it")
    answers = sum(len(one.sentences) for one in found)
    name = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    return Dataset(name, found, "conversations", [f"{answers:,} answers"])


def _conversations(path: Path) -> Iterator[Passage]:
    if path.suffix.lower() == ".json":
        values = read_json_value(path)
        if not isinstance(values, list):
            raise UserError(f"{path} must hold a list of conversations, not {show_value(values)}")
        for number, value in enumerate(values, 1):
            yield conversation_of(value, f"{path.name}, conversation {number}")
        return
    for number, line in enumerate(file_lines(path), 1):
        if line.strip():
            where = f"{path.name}, line {number}"
            yield conversation_of(parse_json(line, where), where)


def conversation_of(value: Any, where: str) -> Passage:
    """A conversation from a JSON object. Raises UserError for one in which user and assistant do not take turns."""
    name = next((name for name in FIELDS if isinstance(value, Mapping) and name in value), None)
    if name is None:
        raise UserError(f"{where}: no conversation, which is an object with a list of messages, {', '.join(FIELDS)}")
    if not isinstance(value[name], list) or not value[name]:
        raise UserError(f"{where}: the {name} must be a list of messages, not {show_value(value[name])}")
    messages = tuple(_message(one, f"{where}, message {number}") for number, one in enumerate(value[name], 1))
    turns = messages[1:] if messages[0].role == "system" else messages
    for number, message in enumerate(turns):
        if message.role != ("user", "assistant")[number % 2]:
            place = f"message {number + 1 + len(messages) - len(turns)} is of the {message.role}"
            raise UserError(f"{where}: {place}, but user and assistant take turns, and the user begins")
    answers = tuple(one.content for one in turns if one.role == "assistant")
    if not answers:
        raise UserError(f"{where}: the assistant says nothing that could be learned")
    return Passage(where, "", answers, tuple((one.role, one.content) for one in messages))


def _message(value: Any, where: str) -> Message:
    table = value if isinstance(value, Mapping) else {}
    role, content = table.get("role", table.get("from")), table.get("content", table.get("value"))
    if not isinstance(role, str) or role.lower() not in ROLES:
        raise UserError(f"{where}: its role is {show_value(role)}, but must be one of {', '.join(ROLES)}")
    if isinstance(content, list):  # parts, as OpenAI's interface has them
        texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        known = [text for text in texts if isinstance(text, str)]
        content = "".join(known) if len(known) == len(content) else None
    if not isinstance(content, str):
        raise UserError(f"{where}: its content is {show_value(table.get('content'))}, but must be a text")
    return Message(ROLES[role.lower()], content)


def chat_of(tokenizer: Tokenizer) -> tuple[PublicTokenizer, ChatForm]:
    """What writes conversations for a model. Raises UserError for a vocabulary that has no chat template."""
    if not isinstance(tokenizer, TextTokenizer) or not tokenizer.chat:
        raise UserError(WITHOUT_TEMPLATE)
    own = PublicTokenizer(tokenizer.copy(), dict(tokenizer.chat))
    return own, chat_template(own)


def answer_ends(tokenizer: Tokenizer) -> list[int]:
    """The token that ends an answer in chats; none of a vocabulary without a template that foveate reads."""
    try:
        own, form = chat_of(tokenizer)
    except UserError:
        return []
    signs = found_in(form.end, own.signs(form.end, form.end))
    number = own.number(signs[0]) if signs else None
    return [] if number is None else [number]


def encode_conversations(passages: Iterable[Passage], tokenizer: Tokenizer) -> Iterator[Numbers]:
    """The ids of conversations; those that are read and not learned are `~id`, below zero.

    Names of special tokens in messages are plain text. Raises UserError for a conversation that the template refuses.
    """
    own, form = chat_of(tokenizer)
    for passage in passages:
        messages = [Message(role, content) for role, content in passage.messages]
        try:
            found = form.learned_tokens(own, messages)
        except UserError as error:
            raise UserError(f"{passage.place}: {error}") from None
        yield np.array([token if learned else ~token for token, learned in found], np.int32)
