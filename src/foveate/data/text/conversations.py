"""Conversations with an assistant, whose answers alone are learned."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.dataset import Dataset
from foveate.data.ragged import Numbers
from foveate.data.table.columns import TEXT, chosen_columns
from foveate.data.table.records import json_records
from foveate.data.text.documents import Conversation, Passage, Turns
from foveate.data.text.files import file_lines
from foveate.data.text.spooled_passages import spooled
from foveate.data.tokens.chat import ChatForm, Message, chat_template, found_in
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError, show_value
from foveate.files import parse_json, read_json_value
from foveate.special_tokens import SpecialTokens

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
    """Returns whether files hold conversations, and not texts. Raises UserError for some files that do among others
    that do not."""
    named = [path for path in paths if path.name.lower().endswith(ENDINGS) and not _holds_texts(path)]
    if named and len(named) < len(paths):
        other = next(path for path in paths if path not in named)
        raise UserError(f"{named[0]} holds conversations, but {other} prose: train on one after the other")
    return bool(named)


def _holds_texts(path: Path) -> bool:
    """Whether the first object of a file of JSON has a text, and no messages."""
    (column,) = chosen_columns([TEXT], [])
    try:
        names = [*next(filter(None, json_records(path))).values]
    except (UserError, StopIteration):  # which is told by who reads it
        return False
    return column.place_in(names) is not None and not {"prompt", *FIELDS} & {*names}


def read_conversations(paths: Sequence[Path]) -> Dataset[Passage]:
    """The conversations in files: one in each line, or a JSON list of them.

    Raises UserError, which names the line, for what is none.
    """
    name, found = _read(paths, conversation_of)
    return Dataset(name, found, "conversations", [_count_answers])


def _count_answers(conversations: Iterable[Passage]) -> str:
    return f"{sum(len(one.sentences) for one in conversations):,} answers"


def read_questions_to_answer(paths: Sequence[Path]) -> Dataset[Passage]:
    """The same up to the last message of the user, which is to be answered; or texts to go on from, one in each line.

    Raises UserError for files that have both.
    """
    name, found = _read(paths, question_of)
    other = next((one for one in found if one.is_prompt != found[0].is_prompt), None)
    if other is not None:
        kinds = [("a text" if one.is_prompt else "a list of messages") for one in (other, found[0])]
        raise UserError(f"{other.place}: the prompt is {kinds[0]}, but {kinds[1]} in {found[0].place}: use one kind")
    return Dataset(name, found, "prompts")


def _read(paths: Sequence[Path], make: Callable[[Any, str], Passage]) -> tuple[str, Sequence[Passage]]:
    """A name for files, and what is made of each of their objects."""
    found = spooled(made for path in paths for made in _each(path, make))
    if not found:
        raise UserError(f"{paths[0]}: there is no conversation in it")
    return paths[0].name if len(paths) == 1 else f"{len(paths)} files", found


def _each(path: Path, make: Callable[[Any, str], Passage]) -> Iterator[Passage]:
    if path.suffix.lower() == ".json":
        values = read_json_value(path)
        if not isinstance(values, list):
            raise UserError(f"{path} must hold a list of conversations, not {show_value(values)}")
        for number, value in enumerate(values, 1):
            yield make(value, f"{path.name}, conversation {number}")
        return
    for number, line in enumerate(file_lines(path), 1):
        if line.strip():
            where = f"{path.name}, line {number}"
            yield make(parse_json(line, where), where)


def conversation_of(value: Any, where: str) -> Passage:
    """A conversation from a JSON object. Raises UserError for one in which user and assistant do not take turns."""
    turns = turns_of(*_field(value, FIELDS, where), where)
    answers = tuple(content for role, content in turns if role == "assistant")
    if not answers:
        raise UserError(f"{where}: the assistant says nothing that could be learned")
    return Passage(where, "", answers, turns)


def question_of(value: Any, where: str) -> Passage:
    """The messages of a JSON object up to the last one of the user, or the text that it has as `prompt` or is itself.

    Raises UserError as `conversation_of`, and for an empty text.
    """
    text = value.get("prompt") if isinstance(value, Mapping) else value
    if isinstance(text, str):
        if not text.strip():
            raise UserError(f"{where}: the prompt is empty")
        return Passage(where, "", (text.strip(),), is_prompt=True)
    turns = asked(turns_of(*_field(value, ("prompt", *FIELDS), where), where))
    return Passage(where, "", (turns[-1][1],), turns)


def asked(turns: Turns) -> Turns:
    """The messages up to the last one of the user."""
    while turns and turns[-1][0] != "user":
        turns = turns[:-1]
    return turns


def _field(value: Any, names: Sequence[str], where: str) -> tuple[Any, str]:
    """The messages of a JSON object, and what it calls them."""
    name = next((name for name in names if isinstance(value, Mapping) and name in value), None)
    if name is None:
        raise UserError(
            f"{where}: no conversation, which is an object with a list of messages, {', '.join(names)}; and no text, "
            "whose name --columns text=NAME says"
        )
    return value[name], name


def turns_of(messages: Any, name: str, where: str) -> Turns:
    """The messages of a JSON list. Raises UserError where user and assistant do not take turns."""
    if not isinstance(messages, list) or not messages:
        raise UserError(f"{where}: the {name} must be a list of messages, not {show_value(messages)}")
    found = [_message(one, f"{where}, message {number}") for number, one in enumerate(messages, 1)]
    turns = found[1:] if found[0].role == "system" else found
    for number, message in enumerate(turns):
        if message.role != ("user", "assistant")[number % 2]:
            place = f"message {number + 1 + len(found) - len(turns)} is of the {message.role}"
            raise UserError(f"{where}: {place}, but user and assistant take turns, and the user begins")
    if not turns:
        raise UserError(f"{where}: the user says nothing")
    return tuple((one.role, one.content) for one in found)


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
    return tokenizer.public, chat_template(tokenizer.public)


def answer_ends(tokenizer: Tokenizer) -> list[int]:
    """The token that ends an answer in chats; none of a vocabulary without a template that foveate reads."""
    try:
        own, form = chat_of(tokenizer)
    except UserError:
        return []
    signs = found_in(form.end, own.signs(form.end, form.end))
    number = own.number(signs[0]) if signs else None
    return [] if number is None else [number]


def question_ids(question: Conversation, tokenizer: Tokenizer) -> Numbers:
    """The ids of messages that are to be answered. Raises UserError as `encode_conversations`."""
    (row,) = encode_conversations([question], tokenizer)
    return ids_of(row)


def ids_of(row: Numbers) -> Numbers:
    """The ids of a row in which those that are not learned are `~id`."""
    return np.where(row < 0, ~row, row)


def with_answer_end(tokenizer: Tokenizer) -> SpecialTokens:
    """The special tokens for an answer in a chat, which has an end of its own."""
    ends = answer_ends(tokenizer)
    return SpecialTokens({**tokenizer.special.ids, **({"end": ends[0]} if ends else {})})


def encode_conversations(conversations: Iterable[Conversation], tokenizer: Tokenizer) -> Iterator[Numbers]:
    """The ids of conversations; those that are read and not learned are `~id`, below zero.

    Where the user spoke last, the signs stand behind that begin an answer. Names of special tokens in messages are
    plain text. Raises UserError for a conversation that the template refuses.
    """
    own, form = chat_of(tokenizer)
    for one in conversations:
        messages = [Message(role, content) for role, content in one.turns]
        try:
            found = form.learned_tokens(own, messages, one.known)
        except UserError as error:
            raise UserError(f"{one.place}: {error}") from None
        yield np.array([token if learned else ~token for token, learned in found], np.int32)
