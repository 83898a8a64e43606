"""Chats as token ids. Templates in folders are programs, which are never run: those that are known are written here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError


@dataclass(frozen=True)
class Message:
    """A message in a chat."""

    role: str
    """"system", "user" or "assistant"."""
    content: str


@dataclass(frozen=True)
class ChatML:
    """Each message between `<|im_start|>` and `<|im_end|>`."""

    end: ClassVar[str] = "<|im_end|>"
    """What ends a message."""

    system: str
    """What the system says where the chat does not begin with a message of the system."""

    def encode(self, tokenizer: PublicTokenizer, messages: Sequence[Message]) -> list[int]:
        """The ids of a chat up to where the assistant begins. Names of special tokens in messages are plain text."""
        start, end = (tokenizer.number(name) for name in ("<|im_start|>", "<|im_end|>"))
        if start is None or end is None:
            raise UserError("the tokenizer has no <|im_start|> and <|im_end|>, which its chat template needs")
        if not messages or messages[0].role != "system":
            messages = [Message("system", self.system), *messages]
        texts = [f"{message.role}\n{message.content}" for message in messages]
        *encoded, gap, assistant = tokenizer.encode_inside([*texts, "\n", "assistant\n"])
        return [token for text in encoded for token in (start, *text, end, *gap)] + [start, *assistant]

    def turn(self, text: str) -> str:
        """A chat as text, up to where the assistant begins: what follows the last end of a message, the user messages.

        Where the assistant has begun already, the text stays as it is.
        """
        before, ended, message = text.rpartition(f"{ChatML.end}\n")
        if message.startswith("<|im_start|>"):
            return text
        if not ended:
            before = f"<|im_start|>system\n{self.system}"
        return f"{before}{ChatML.end}\n<|im_start|>user\n{message.strip()}{ChatML.end}\n<|im_start|>assistant\n"

    def last_of_user(self, text: str) -> str:
        """Returns the user's last message in a chat as text; all of a text in which no user speaks."""
        _, spoke, message = text.rpartition("<|im_start|>user\n")
        return message.partition(ChatML.end)[0] if spoke else text


_SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

TEMPLATES = {_SMOLLM2: ChatML("You are a helpful AI assistant named SmolLM, trained by Hugging Face")}
"""What is written here for each template of a folder."""


def chat_template(tokenizer: PublicTokenizer) -> ChatML:
    """The template of a model's tokenizer. Raises UserError where it has none, or one that is not known."""
    text = tokenizer.config.get("chat_template")
    if isinstance(text, list):  # several by name
        text = next((one.get("template") for one in text if isinstance(one, dict) and one.get("name") == "default"), "")
    if text is None:
        raise UserError("this model was not trained to chat: it has no chat template; leave --chat out")
    # a template's last line break is not part of what it writes
    if not isinstance(text, str) or (known := TEMPLATES.get(text.removesuffix("\n"))) is None:
        raise UserError(
            "this model's chat template is not known to foveate, and templates are never run: "
            "leave --chat out and write the whole prompt"
        )
    return known
