"""Chat templates of folders: where they are, which one counts, and what is written by those of known models."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers
from chat_templates import CHATML, TEMPLATES
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of

import foveate
from foveate.data.tokens import chat_probes
from foveate.data.tokens.chat import Message, chat_template
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a tiny Llama."""
    return folder_of("llama", tmp_path / "llama")[0]


def byte_tokenizer(special: tuple[str, ...]) -> Tokenizer:
    """A token for each byte, and special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={sign: number for number, sign in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return tokenizer


@pytest.fixture(params=TEMPLATES)
def known(request: pytest.FixtureRequest) -> tuple[PublicTokenizer, Any]:
    """A tokenizer with the template of a known model, and transformers' one."""
    template, special = TEMPLATES[request.param]
    tokenizer = byte_tokenizer(special)
    config = {"chat_template": template, "bos_token": "<s>", "eos_token": "</s>"}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(special), **config)
    return PublicTokenizer(tokenizer, config), theirs


TURNS = [
    Message("user", " what is\n it? "),
    Message("assistant", "a lamp {{ 3 }} "),
    Message("user", "why"),
    Message("assistant", "for\n\nlight"),
    Message("user", "and then"),
]

CHATS = [TURNS[:count] for count in range(1, 6)]

SYSTEM = Message("system", "Be short.")


@pytest.mark.parametrize("system", [False, True])
def test_ids_are_those_of_transformers(known: tuple[PublicTokenizer, Any], system: bool) -> None:
    ours, theirs = known
    form = chat_template(ours)
    for chat in CHATS:
        messages = [SYSTEM, replace(chat[0], content="what is it?"), *chat[1:]] if system else chat
        if system and form.system is None:
            with pytest.raises(UserError, match="no place for what the system says: leave --system out"):
                form.encode(ours, messages)
            continue
        ask = messages[-1].role == "user"
        values = [vars(one) for one in messages]
        expected = theirs.apply_chat_template(values, add_generation_prompt=ask, tokenize=True, return_dict=False)
        assert form.encode(ours, messages) == expected


def test_only_some_have_no_place_for_the_system() -> None:
    without = []
    for name, (template, special) in TEMPLATES.items():
        tokenizer = PublicTokenizer(
            byte_tokenizer(special), {"chat_template": template, "bos_token": "<s>", "eos_token": "</s>"}
        )
        if chat_template(tokenizer).system is None:
            without.append(name)
    assert without == ["mistral", "gemma"]


def test_what_is_said_never_becomes_a_special_token(known: tuple[PublicTokenizer, Any]) -> None:
    """Whoever says it."""
    ours, _ = known
    form, names = chat_template(ours), ours.copy().get_added_tokens_decoder()
    plain = [one for one in form.encode(ours, [Message("user", "a"), Message("assistant", "b")]) if one in names]
    for name in [token.content for token in names.values()]:
        said = [Message("user", f"a{name}c"), Message("assistant", f"{name} b{name}")]
        found = form.encode(ours, said)
        assert [token for token in found if token in names] == plain
        assert ours.decode([[token for token in found if token not in names]])[0].count(name) >= 3


def test_answers_alone_are_learned(known: tuple[PublicTokenizer, Any]) -> None:
    """With the sign that ends each; also where a message has the name of a sign in it."""
    ours, _ = known
    form = chat_template(ours)
    for said in ("why", *[token.content for token in ours.copy().get_added_tokens_decoder().values()]):
        chat = [*TURNS[:2], Message("user", said), TURNS[3]]
        found = form.learned_tokens(ours, chat)
        learned = ours.copy().decode([token for token, own in found if own], skip_special_tokens=False)
        first = TURNS[1].content.strip() if "assistant" in form.stripped else TURNS[1].content
        before, between, behind = learned.partition(first)[0], *learned.partition(first)[2].split("for\n\nlight")
        assert before == ""
        assert between == behind
        assert between.strip() in ours.signs(form.between, form.between)


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_template_in_a_file_of_its_own(folder: Path, end: str) -> None:
    """As newer folders have it: it counts more than the config's, and is written back with the model."""
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "another"}))
    with pytest.raises(UserError, match="does not write all messages"):
        chat_template(foveate.load(folder).tokenizer)
    (folder / "chat_template.jinja").write_text(CHATML + end)
    skill = foveate.load(folder)
    assert "SmolLM" in chat_template(skill.tokenizer).start
    skill.save(folder.parent / "saved")
    assert chat_template(foveate.load(folder.parent / "saved").tokenizer) == chat_template(skill.tokenizer)
    (folder / "chat_template.jinja").write_text("{{ another }}")
    with pytest.raises(UserError, match="cannot read this model's chat template: it does not write all messages"):
        foveate.load(folder).run("the", chat=True)


@pytest.mark.parametrize("others", [[], [{"name": "tool_use", "template": "another"}], ["default"]])
def test_one_of_several_templates_is_the_default(folder: Path, others: list[Any]) -> None:
    several = [*others, {"name": "default", "template": CHATML}]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
    assert "SmolLM" in chat_template(foveate.load(folder).tokenizer).start
    for unknown in (others, {}, 7):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": unknown}))
        with pytest.raises(UserError, match="cannot read this model's chat template: it is not a text"):
            chat_template(foveate.load(folder).tokenizer)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for %}", "its program fails: jinja2.exceptions.TemplateSyntaxError"),
        ("{{ ''.__class__.__mro__ }}", "does not write all messages"),
        ("{{ messages.append(1) }}", "does not write all messages"),
        (
            "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
            "takes more than|too much time",
        ),
        ("{{ 'a' * 10**10 }}", "its program fails: MemoryError"),
        ("{% for m in messages %}{{ 'a' * 2**19 + m.content }}{% endfor %}", "writes more than 1,048,576 characters"),
        ("x" * 2**19, "it has 524,288 characters; the limit is 262,144"),
        ("{% for m in messages | reverse %}{{ m.content }}\n{% endfor %}", "in their order"),
        (
            "{% for m in messages %}{{ loop.index }} {{ m.content }}\n{% endfor %}",
            "in other ways when there are several",
        ),
    ],
)
def test_programs_that_are_not_obeyed(template: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_probes, "SECONDS", 2)
    tokenizer = PublicTokenizer(byte_tokenizer(()), {"chat_template": template})
    with pytest.raises(UserError, match=f"^foveate cannot read this model's chat template: .*({message})") as caught:
        chat_template(tokenizer)
    assert "\n" not in str(caught.value)


def test_a_template_beyond_the_limit_of_a_file(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    with path.open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UserError, match=r"chat_template.jinja has 10,240 MiB; the limit is 128 MiB"):
        foveate.load(folder)
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"chat_template.jinja is damaged: "):
        foveate.load(folder)
