"""The tokenizer of a Hugging Face folder for training: texts by themselves, and what stands around them."""

import json
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from tokenizers import Tokenizer, processors

from foveate.data.tokens.library import copy_of, decode, encode, encode_with_offsets
from foveate.data.tokens.public_settings import TEMPLATE, default_template
from foveate.data.tokens.public_tokenizer import PublicTokenizer, name_pieces
from foveate.errors import UserError, show_value
from foveate.files import parse_json
from foveate.special_tokens import Role, SpecialTokens

ROLES = "foveate_roles"
"""What a saved `tokenizer.json` calls the ids of its special tokens, which the library's file does not say."""

CHAT = "foveate_chat"
"""What it calls what the folder said of chats."""

STAND_INS: dict[Role, tuple[Role, ...]] = {"start": ("class", "end"), "end": ("separator", "start")}
"""What stands for a special token that a vocabulary lacks: GPT-2 has one token for both ends of a text."""


class TextTokenizer:
    """Text to the ids of a public vocabulary and back; a `foveate.contracts.Tokenizer`.

    `begin` and `end` are the ids that the tokenizer's own form puts before and after each text.
    """

    def __init__(self, tokenizer: Tokenizer, roles: Mapping[Role, int], chat: Mapping[str, str] | None = None) -> None:
        """`chat` has the template of chats, and the names of the special tokens that it writes."""
        tokenizer.encode_special_tokens = True  # a user who writes "[SEP]" means these five characters
        self._tokenizer = tokenizer
        self.chat = dict(chat or {})
        self.special = SpecialTokens(roles)
        self.begin, self.end = self._ends()

    @classmethod
    def of(cls, public: PublicTokenizer) -> "TextTokenizer":
        """The tokenizer of a folder, with the special tokens that its `tokenizer_config.json` names."""
        roles = dict(public.special.ids)
        for role, others in STAND_INS.items():
            known = [roles[other] for other in others if other in roles]
            if role not in roles and known:
                roles[role] = known[0]
        return cls(public.copy(), roles, chat_settings(public))

    @cached_property
    def public(self) -> PublicTokenizer:
        """The same tokenizer as that of a folder, which reads special tokens by name, with what is said of chats."""
        return PublicTokenizer(self.copy(), dict(self.chat))

    @property
    def around_pairs(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The ids before the first of two texts, between both, and behind the second.

        Where the tokenizer's own form has nothing between them, the end of a text separates them.
        """
        (inside,) = encode(self._tokenizer, ["a"], add_special_tokens=False)
        whole, size = encode_with_offsets(self._tokenizer, "a", "a").ids, len(inside.ids)
        places = [at for at in range(len(whole) - size + 1) if whole[at : at + size] == inside.ids]
        first, last = places[0], places[-1]
        between = tuple(whole[first + size : last]) or (self.special.end,)
        return tuple(whole[:first]), between, tuple(whole[last + size :])

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    @property
    def largest(self) -> int:
        """The largest token id."""
        return max(self._tokenizer.get_vocab().values(), default=-1)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in encode(self._tokenizer, texts, add_special_tokens=False)]

    def spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text between its begin and end, and where each begins and ends in it; (0, 0) for those."""
        found = encode_with_offsets(self._tokenizer, text, add_special_tokens=False)
        before, behind = ([(0, 0)] * len(ids) for ids in (self.begin, self.end))
        return [*self.begin, *found.ids, *self.end], [*before, *found.offsets, *behind]

    def words(self, text: str) -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]]:
        """The ids of a text, where each begins and ends in it, and where the word does that it is a part of."""
        found = encode_with_offsets(self._tokenizer, text, add_special_tokens=False)
        numbers, places = found.word_ids, found.offsets
        known: dict[int, tuple[int, int]] = {}
        for number, (start, end) in zip(numbers, places, strict=True):
            if number is not None:
                known[number] = known.get(number, (start, end))[0], end
        words = [own if number is None else known[number] for number, own in zip(numbers, places, strict=True)]
        return found.ids, places, words

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        return decode(self._tokenizer, tokens, skip_special_tokens=True)

    def encode_tagged(self, text: str) -> list[int]:
        """The ids of a text in which special tokens may stand by name, such as "<s_cord-v2>"."""
        tokenizer = self.copy()
        tokenizer.encode_special_tokens = False
        ids: list[int] = encode(tokenizer, [text], add_special_tokens=False)[0].ids
        return ids

    def decode_tagged(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The texts with special tokens by name, but for those that have a role or stand around a text."""
        left_out = {*self.special.ids.values(), *self.begin, *self.end}
        rows = [[token for token in row if token not in left_out] for row in tokens]
        return [text.strip(" ") for text in decode(self._tokenizer, rows, skip_special_tokens=False)]

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        special = {number for number, token in self._tokenizer.get_added_tokens_decoder().items() if token.special}
        names = [self._tokenizer.id_to_token(token) for token in tokens]
        return name_pieces(tokens, names, special, partial(self._tokenizer.decode, skip_special_tokens=False))

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`, with the roles of the special tokens."""
        chat = {CHAT: self.chat} if self.chat else {}
        table = {ROLES: dict(self.special.ids), **chat, **parse_json(self._tokenizer.to_str(), path)}
        path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")

    def copy(self) -> Tokenizer:
        """The library's tokenizer, to be changed."""
        return copy_of(self._tokenizer)

    def with_ends(
        self, begin: Sequence[int], end: Sequence[int], roles: Mapping[Role, int] | None = None
    ) -> "TextTokenizer":
        """The same tokenizer with other ids before and after each text, and other ids of special tokens."""
        tokenizer = self.copy()
        named = {number: str(tokenizer.id_to_token(number)) for number in (*begin, *end)}
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[*(named[number] for number in begin), "$A", *(named[number] for number in end)],
            special_tokens=[(name, number) for number, name in named.items()],
        )
        return TextTokenizer(tokenizer, {**self.special.ids, **(roles or {})}, self.chat)

    def _ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the tokenizer's own form puts before and after a text."""
        (inside,), (whole,) = (encode(self._tokenizer, ["a"], add_special_tokens=form) for form in (False, True))
        spare = len(whole.ids) - len(inside.ids)
        for at in range(spare + 1):
            if whole.ids[at : at + len(inside.ids)] == inside.ids:
                return tuple(whole.ids[:at]), tuple(whole.ids[at + len(inside.ids) :])
        raise UserError("the tokenizer reads a text otherwise when it puts tokens around it")


def chat_settings(public: PublicTokenizer) -> dict[str, str]:
    """What a folder says of chats: its template, and the names of its special tokens; nothing without a template."""
    template = default_template(public.config)
    return {TEMPLATE: template, **dict(public.special_names())} if isinstance(template, str) and template else {}


def chat_of_file(value: object, where: Path) -> dict[str, str] | None:
    """The same of a file of ours. Raises UserError for what is none."""
    if value is not None and not (isinstance(value, dict) and all(isinstance(one, str) for one in value.values())):
        raise UserError(f"{where} has the {CHAT} {show_value(value)}, which cannot be")
    return typing.cast(dict[str, str] | None, value)


def roles_of(value: object, where: Path) -> dict[Role, int]:
    """The ids of special tokens that a file holds. Raises UserError for what is none."""
    roles = typing.get_args(Role)
    fits = isinstance(value, dict) and all(
        name in roles and type(one) is int and one >= 0 for name, one in value.items()
    )
    if not fits:
        raise UserError(f"{where} has the {ROLES} {show_value(value)}, which cannot be")
    return typing.cast(dict[Role, int], value)
