"""Chats as token ids.

The template in a folder is a program. It writes a few chats whose messages are known (`chat_probes.py`), which show
what stands before, between and behind messages; the program is not used beyond that.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foveate.data.tokens.chat_probes import Chat, write_chats
from foveate.data.tokens.public_settings import default_template
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError

TURNS = ("user", "assistant", "user", "assistant", "user")


@dataclass(frozen=True)
class Message:
    """A message in a chat."""

    role: str
    """"system", "user" or "assistant"."""
    content: str


class ChatPart(NamedTuple):
    """A part of a chat that is written: what a message says, or signs around it."""

    text: str
    said: bool = False
    learned: bool = False
    """Whether a model is to learn to write it: what the assistant says."""


@dataclass(frozen=True)
class ChatForm:
    """What stands around the messages of a chat, in which a user and an assistant take turns."""

    start: str
    """What stands before the user's first message; perhaps with words of the system."""
    ask: str
    """What follows the user's last message, so that the assistant answers."""
    before_answer: str
    """What stands between the user's message and the answer."""
    between: str
    """What stands between an answer and the user's next message."""
    end: str
    """What follows the last answer."""
    system: tuple[str, str] | None
    """What stands before and behind a message of the system, with which a chat may begin; None where it may not."""
    stripped: frozenset[str] = frozenset()
    """The roles whose messages lose the white space around them."""

    def parts(self, messages: Sequence[Message], known: int = 0) -> list[ChatPart]:
        """A chat as it is written, up to where the assistant begins or has ended; of the first `known` messages no
        answer is learned.

        Raises UserError for roles that do not take turns, and for a system that has no place.
        """
        new = [False] * known + [True] * (len(messages) - known)
        first, *rest = messages
        found = [ChatPart(self.start)]
        if first.role == "system":
            if self.system is None:
                raise UserError("this model's chat template has no place for what the system says: leave --system out")
            found = [ChatPart(self.system[0]), self._said(first), ChatPart(self.system[1])]
            first, *rest = rest
        messages = [first, *rest]
        for number, message in enumerate(messages):
            if message.role != TURNS[number % 2]:
                place = f"message {number + 1} of a chat is of the {message.role}"
                raise UserError(f"{place}, but user and assistant take turns")
            last = number + 1 == len(messages)
            behind = (self.ask if last else self.before_answer) if message.role == "user" else ""
            behind = behind or (self.end if last else self.between)
            found += [self._said(message, new[number - len(messages)]), ChatPart(behind)]
        return found

    def _said(self, message: Message, new: bool = False) -> ChatPart:
        text = message.content.strip() if message.role in self.stripped else message.content
        return ChatPart(text, True, new and message.role == "assistant")

    def text(self, messages: Sequence[Message]) -> str:
        """A chat as a text."""
        return "".join(part.text for part in self.parts(messages))

    def encode(self, tokenizer: PublicTokenizer, messages: Sequence[Message]) -> list[int]:
        """The ids of a chat. Names of special tokens in messages are plain text."""
        return [token for token, _ in self.learned_tokens(tokenizer, messages)]

    def learned_tokens(
        self, tokenizer: PublicTokenizer, messages: Sequence[Message], known: int = 0
    ) -> list[tuple[int, bool]]:
        """The ids of a chat, and whether each is to be learned: those of answers, and the sign that ends each, but of
        the first `known` messages.

        Parts are encoded by themselves only where a message has the name of a special token in it, so that the ids are
        those of the whole text.
        """
        parts = self.parts(messages, known)
        text = "".join(part.text for part in parts)
        names = tokenizer.signs(text, "".join(part.text for part in parts if not part.said))
        ids, places = tokenizer.spans(text, around=False)
        signs = {tokenizer.number(name) for name in names}
        expected = [name for part in parts if not part.said for name in found_in(part.text, names)]
        if [token for token in ids if token in signs] == list(map(tokenizer.number, expected)):
            return [*zip(ids, learned_places(parts, places, names), strict=True)]
        return [*encoded_apart(tokenizer, parts, names)]

    def turn(self, text: str) -> str:
        """A chat as text, up to where the assistant begins: what follows the last answer, the user messages.

        Where the assistant has begun already, the text stays as it is.
        """
        before, begun, answer = text.rpartition(self.ask)
        if not begun:
            return f"{self.start}{text.strip()}{self.ask}"
        answer, ended, message = answer.partition(self.end)
        return f"{before}{begun}{answer}{self.between}{message.strip()}{self.ask}" if ended else text

    def last_of_user(self, text: str) -> str:
        """Returns the user's last message in a chat as text; all of a text in which no user speaks."""
        before, spoke, _ = text.rpartition(self.ask)
        if not spoke:
            return text
        _, again, message = before.rpartition(self.between)
        return message if again else before.removeprefix(self.start)


def found_in(text: str, names: Sequence[str]) -> list[str]:
    """The names that stand in a text, in their order."""
    return re.findall("|".join(map(re.escape, names)), text) if names else []


def learned_places(
    parts: Sequence[ChatPart], places: Sequence[tuple[int, int]], names: Sequence[str]
) -> Iterator[bool]:
    """Whether each token, which begins and ends there in the text of the parts, is of an answer or the sign behind."""
    ranges, begin = list[tuple[int, int]](), 0
    for part, behind in zip(parts, [*parts[1:], ChatPart("")], strict=True):
        if part.learned:
            signs = found_in(behind.text, names)
            sign = behind.text.index(signs[0]) + len(signs[0]) if signs else 0
            ranges.append((begin, begin + len(part.text) + sign))
        begin += len(part.text)
    return (any(low <= start and end <= high for low, high in ranges) for start, end in places)


def encoded_apart(
    tokenizer: PublicTokenizer, parts: Sequence[ChatPart], names: Sequence[str]
) -> Iterator[tuple[int, bool]]:
    """The ids of parts, of which those that are said have no sign among them."""
    after_answer = False
    for part in parts:
        if part.said:
            cut = re.compile("|".join(f"(?<={re.escape(name[0])})(?={re.escape(name[1:])})" for name in names))
            for ids in tokenizer.encode_inside(cut.split(part.text)):
                yield from ((token, part.learned) for token in ids)
        else:
            for token in tokenizer.spans(part.text, around=False)[0]:
                sign = token in map(tokenizer.number, names)
                yield token, after_answer and sign
                after_answer = after_answer and not sign
        after_answer = part.learned or (part.said and after_answer)


def chat_template(tokenizer: PublicTokenizer) -> ChatForm:
    """The form of the chats of a model's tokenizer.

    Raises UserError where it has none, or one in which user and assistant do not take turns.
    """
    text = default_template(tokenizer.config)
    if text is None:
        raise UserError("this model was not trained to chat: it has no chat template; leave --chat out")
    if not isinstance(text, str) or not text:
        raise UserError(f"{UNREADABLE}it is not a text")
    return form_of(text, tokenizer.special_names())


UNREADABLE = "foveate cannot read this model's chat template: "

SAYS = ("Qsystemq", "Quserq", "Qanswerq", "Qsecondq", "Qthanksq", "Qthirdq")
"""What is said in probes."""


def _probe(*roles: str, space: str = "") -> list[Message]:
    """A chat in which each message says something of its own."""
    texts = iter(SAYS if roles[0] == "system" else SAYS[1:])
    return [Message(role, f"{space}{next(texts)}{space}") for role in roles]


PROBES: tuple[tuple[str, ...], ...] = (TURNS[:1], TURNS[:2], TURNS[:3], TURNS[:4], TURNS)


def form_of(template: str, names: tuple[tuple[str, str], ...]) -> ChatForm:
    """The form of a template's chats. `names` are the special tokens by role, such as ("bos_token", "<s>").

    Raises UserError for a program that fails, takes too long, or writes chats of another form.
    """
    chats = [_probe(*roles) for roles in PROBES]
    chats += [_probe("system", *roles) for roles in PROBES[:3]]
    chats += [_probe(*TURNS, space=" \n"), [_probe("system", space=" \n")[0], _probe("user")[0]]]
    asked: list[Chat] = [([vars(one) for one in chat], chat[-1].role == "user") for chat in chats]
    try:
        written = write_chats(template, dict(names), asked)
    except UserError as error:
        raise UserError(f"{UNREADABLE}{error}") from None
    plain, spaced = written[: len(PROBES)], written[-2:]
    one, answered, two, _, _ = plain
    pieces = [_between(text, chat) for text, chat in zip(plain, chats, strict=False)]
    if any(piece is None for piece in pieces) or two is None or one is None or answered is None:
        raise UserError(f"{UNREADABLE}it does not write all messages, each once and in their order")
    (start, ask), (_, before, end), (_, _, between, _) = pieces[0] or [], pieces[1] or [], pieces[2] or []
    systems = [_between(text, chat) for text, chat in zip(written[len(PROBES) :], chats[len(PROBES) :], strict=False)]
    system = (systems[0][0], systems[0][1]) if systems[0] is not None else None
    stripped = {
        message.role
        for text, chat in zip(spaced, chats[-2:], strict=True)
        for message in chat
        if text is not None and message.content not in text
    }
    form = ChatForm(start, ask, before, between, end, system, frozenset(stripped))
    for text, chat in zip(written, chats, strict=True):
        if text is not None and (form.system or chat[0].role != "system") and form.text(chat) != text:
            raise UserError(f"{UNREADABLE}it writes messages in other ways when there are several")
    return form


def _between(text: str | None, chat: Sequence[Message]) -> list[str] | None:
    """What stands before, between and behind the messages of a chat; None where they are not in it, each once."""
    if text is None or any(text.count(message.content) != 1 for message in chat):
        return None
    found = re.split("|".join(message.content for message in chat), text)
    order = re.findall("|".join(message.content for message in chat), text)
    return found if order == [message.content for message in chat] else None
