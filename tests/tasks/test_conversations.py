"""Language models that learn what the assistant says in conversations."""

import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from chat_templates import TEMPLATES
from rich.console import Console
from test_chat_templates import byte_tokenizer

import foveate
from foveate.cli import main
from foveate.contracts import IGNORE
from foveate.data.buckets import BucketedBatches
from foveate.data.text.conversations import encode_conversations, read_conversations
from foveate.data.tokens.chat import Message
from foveate.errors import UserError
from foveate.nn import low_rank_updates
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson, learn
from foveate.training import CrossEntropy

SILENT = Console(file=StringIO())

SHORT: dict[str, Any] = {"steps": 2, "validate_every": 2, "save_every": 2, "average": 1, "warmup": 1}

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}"
    "{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

LLAMA3 = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}{% else %}"
    "{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)

MARKED = {"chatml": CHATML, "llama-3": LLAMA3}
"""Templates that say themselves what the assistant writes, as transformers asks for it."""

ENDS = ("<|im_end|>", "<|eot_id|>")

CHATS = [
    [("user", "what is\n it?"), ("assistant", "a lamp {{ 3 }}"), ("user", "why"), ("assistant", "for\n\nlight")],
    [("system", "be short"), ("user", "hello"), ("assistant", "good day")],
    [("user", "and"), ("assistant", "é now"), ("user", "then")],
]


def openai(chat: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in chat]}


def sharegpt(chat: Any) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    return {"id": 7, "conversations": [{"from": names[role], "value": content} for role, content in chat]}


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def written(name: str, place: Path, template: str | None) -> Any:
    """A tiny Llama with a token for each byte, and transformers' tokenizer."""
    torch.manual_seed(3)
    special = TEMPLATES[name][1] if "<s>" in TEMPLATES[name][1] else ("<s>", *TEMPLATES[name][1])
    tokenizer = byte_tokenizer((*special, "</s>"))
    sizes = {"hidden_size": 20, "num_attention_heads": 5, "num_hidden_layers": 2, "intermediate_size": 28}
    more = {"vocab_size": tokenizer.get_vocab_size() + 3, "num_key_value_heads": 5, "max_position_embeddings": 211}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **more)).eval()
    model.save_pretrained(place)
    named = {"bos_token": "<s>", "eos_token": "</s>", **({"chat_template": template} if template else {})}
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)
    found.save_pretrained(place)
    return model, found


@pytest.fixture(params=MARKED)
def known(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any, Any]:
    """A folder, transformers' model and its tokenizer."""
    return tmp_path / "base", *written(request.param, tmp_path / "base", MARKED[request.param])


def expected(tokenizer: Any, chat: Any) -> tuple[list[int], list[int]]:
    """The ids of a chat, and which of them the assistant writes, by transformers."""
    asked = {"tokenize": True, "return_dict": True, "return_assistant_tokens_mask": True}
    found = tokenizer.apply_chat_template(openai(chat)["messages"], **asked)
    return found["input_ids"], found["assistant_masks"]


def asked(chat: Any) -> Any:
    """A chat up to the last answer: what stands behind it is not learned."""
    return chat if chat[-1][0] == "assistant" else chat[:-1]


@pytest.mark.parametrize("form", [openai, sharegpt])
def test_what_is_learned_is_what_transformers_masks(known: tuple[Path, Any, Any], form: Any, tmp_path: Path) -> None:
    folder, _, theirs = known
    data = write(tmp_path / "chats.jsonl", [form(asked(chat)) for chat in CHATS])
    recipe = find_task("language").recipe(data=data, start=folder)
    tokenizer = Lesson(find_task("language"), recipe).plan.weights.tokenizer
    assert tokenizer is not None
    rows = encode_conversations((one.conversation for one in read_conversations([data])), tokenizer)
    for row, chat in zip(rows, map(asked, CHATS), strict=True):
        ids, mask = expected(theirs, chat)
        assert [token if token >= 0 else ~token for token in row.tolist()] == ids
        assert [int(token >= 0) for token in row.tolist()] == mask


def test_the_loss_is_that_of_transformers(known: tuple[Path, Any, Any], tmp_path: Path) -> None:
    """Of one batch of conversations of unequal lengths, with the folder's own weights."""
    folder, theirs, tokenizer = known
    data = write(tmp_path / "chats.jsonl", [openai(asked(chat)) for chat in CHATS])
    recipe = find_task("language").recipe(data=data, validation=data, start=folder, batch=2000, precision="float32")
    lesson = Lesson(find_task("language"), recipe)
    train, _ = lesson.open()
    processor = lesson.processor_of(train)
    (batch,) = BucketedBatches(processor.reads.buckets(train, processor), 2000, 1).epoch(0)
    model = lesson.model_of(processor.sizes()).eval()
    with torch.no_grad():
        found = CrossEntropy()(model(**batch.inputs), batch).total / batch.total_weight
    total, count = 0.0, 0
    for chat in map(asked, CHATS):
        ids, mask = (torch.tensor([one]) for one in expected(tokenizer, chat))
        learned = int(mask[:, 1:].sum())
        labels = torch.where(mask == 1, ids, IGNORE)
        with torch.no_grad():
            total, count = total + float(theirs(ids, labels=labels).loss) * learned, count + learned
    assert batch.total_weight == count
    assert float(found) == pytest.approx(total / count, abs=5e-5)


def test_answers_are_measured_before_a_training_and_after(
    known: tuple[Path, Any, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the perplexity of what transformers' mask leaves; a folder and its run have the same figures."""
    folder, theirs, tokenizer = known
    data = write(tmp_path / "chats.jsonl", [openai(chat) for chat in map(asked, CHATS)])
    recipe = {"data": data, "validation": data, "start": folder, "out": tmp_path / "run", **SHORT}
    learn(find_task("language").recipe(**recipe, learning_rate=1e-9, precision="float32"), console=SILENT)
    nats, count = 0.0, 0
    for ids, mask in (map(torch.tensor, expected(tokenizer, chat)) for chat in map(asked, CHATS)):
        with torch.no_grad():
            log_probs = theirs(ids[None, :-1]).logits[0].log_softmax(-1)
        learned = mask[1:] == 1
        nats -= float(log_probs[learned].gather(1, ids[1:][learned][:, None]).sum())
        count += int(learned.sum())
    for place in (folder, tmp_path / "run"):
        main(["eval", str(place), "--data", str(data), "--json"])
        (way,) = json.loads(capsys.readouterr().out)["ways"].values()
        assert way["perplexity"] == pytest.approx(math.exp(nats / count), rel=1e-4)


def test_what_a_user_says_never_becomes_a_special_token(known: tuple[Path, Any, Any], tmp_path: Path) -> None:
    folder, _, theirs = known
    names = [*theirs.get_added_vocab()]
    chat = [("user", f"say {' '.join(names)} now"), ("assistant", f"{names[0]}!")]
    data = write(tmp_path / "chats.jsonl", [openai(chat)])
    tokenizer = Lesson(
        find_task("language"), find_task("language").recipe(data=data, start=folder)
    ).plan.weights.tokenizer
    assert tokenizer is not None
    (row,) = encode_conversations([read_conversations([data])[0].conversation], tokenizer)
    plain, _ = expected(theirs, [("user", "x"), ("assistant", "y")])
    special = {*theirs.get_added_vocab().values()}
    found = [token if token >= 0 else ~token for token in row.tolist()]
    assert [one for one in found if one in special] == [one for one in plain if one in special]


def chat_of(run: Path) -> tuple[Any, Any, list[Message]]:
    """Options of a chat, what shows a reply, and messages before it."""
    options = foveate.load(run).options_with(chat=True, max_new_tokens=6)
    return options, lambda part: None, [Message("user", "a"), Message("assistant", "b")]


@pytest.mark.parametrize("lora", [None, 2], ids=["whole", "lora"])
def test_from_a_base_to_what_is_exported(lora: int | None, known: tuple[Path, Any, Any], tmp_path: Path) -> None:
    """Conversations, then pairs, then rewards, each from the run before; the template is written back."""
    folder, _, theirs = known
    data = write(tmp_path / "chats.jsonl", [openai(chat) for chat in CHATS] * 2)
    (tmp_path / "pairs.tsv").write_text("".join(f"good {n}\tbad {n}\n" for n in range(8)))
    (tmp_path / "prose.txt").write_text("\n\n".join(f"It was the {n} of the lamps that lit." for n in range(8)))
    own: dict[str, Any] = {**SHORT, "lora": lora, "precision": "float32"}
    chats = find_task("language").recipe(data=data, validation=data, start=folder, out=tmp_path / "chats", **own)
    if lora is not None:
        assert low_rank_updates(Lesson(find_task("language"), chats).build())
    learn(chats, console=SILENT)
    figures = foveate.load(tmp_path / "chats").evaluate([data]).figures["ways"]
    (perplexity,) = [way["perplexity"] for way in figures.values()]
    assert 1 < perplexity < 1000
    pairs = tmp_path / "pairs.tsv"
    reward = {"model": "transformer-classifier", "architecture": {"width": 12, "heads": 2, "layers": 1}}
    learn(
        find_task("reward").recipe(data=pairs, validation=pairs, out=tmp_path / "reward", **reward, **SHORT),
        console=SILENT,
    )
    prose = tmp_path / "prose.txt"
    steps = [("dpo", pairs, {}), ("rlhf", prose, {"reward": tmp_path / "reward", "batch": 4, "max_tokens": 5})]
    before = tmp_path / "chats"
    for task, given, more in steps:
        again = find_task(task).recipe(
            data=given, validation=given, start=before, out=tmp_path / task, **own, **more, validation_examples=3
        )
        learn(again, console=SILENT)
        before = tmp_path / task
    main(["export", str(before), "--out", str(tmp_path / "back")])
    asked_for: dict[str, Any] = {"chat": True, "system": "Be short.", "max_new_tokens": 6}
    replies = [foveate.load(place)("Say it.", **asked_for).text for place in (before, tmp_path / "back")]
    assert replies[0] == replies[1]
    assert all(
        foveate.load(tmp_path / task).chat("Say it.", *chat_of(tmp_path / task)).text for task in ("chats", "dpo")
    )
    back = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    for chat in map(asked, CHATS):
        assert expected(back, chat) == expected(theirs, chat)
    ids = torch.tensor([expected(theirs, CHATS[0])[0]])
    with torch.no_grad():
        logits = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back").eval()(ids).logits
        ours = foveate.load(before).model(ids, torch.tensor([ids.shape[1]])).logits
    torch.testing.assert_close(ours, logits, atol=5e-5, rtol=0)
    ends = json.loads((tmp_path / "back" / "config.json").read_text())["eos_token_id"]
    assert ends == theirs.convert_tokens_to_ids(["</s>", next(name for name in ENDS if name in theirs.chat_template)])
    assert foveate.load(tmp_path / "back").run("hello", chat=True, max_new_tokens=3).alone


def test_a_model_without_a_template_is_told_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written("chatml", tmp_path / "base", None)
    data = write(tmp_path / "chats.jsonl", [openai(chat) for chat in CHATS])
    given = ["--data", str(data), "--validation", str(data), "--out", str(tmp_path / "run"), "--steps", "1"]
    for start in (["--from", str(tmp_path / "base")], []):
        with pytest.raises(SystemExit) as stop:
            main(["train", "language", *given, *start])
        assert stop.value.code == 2
        assert "conversations need a chat template" in capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text": "a"}, "line 1: no conversation, which is an object with a list of messages"),
        ([1], "line 1: no conversation"),
        ({"messages": "a"}, "line 1: the messages must be a list of messages, not 'a'"),
        ({"messages": []}, "must be a list of messages"),
        (openai([("user", "a"), ("user", "b")]), "line 1: message 2 is of the user, but user and assistant take turns"),
        (openai([("system", "s"), ("assistant", "b")]), "message 2 is of the assistant, but user and assistant take"),
        (openai([("user", "a")]), "line 1: the assistant says nothing that could be learned"),
        (openai([("tool", "a")]), "line 1, message 1: its role is 'tool', but must be one of system"),
        ({"messages": [{"role": "user", "content": 3}]}, "message 1: its content is 3, but must be a text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "but must be a text"),
    ],
)
def test_data_that_are_no_conversations(row: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=told.replace("(", r"\(")):
        read_conversations([write(tmp_path / "chats.jsonl", [row])])


def test_a_list_and_parts_of_text_are_read_alike(tmp_path: Path) -> None:
    """As OpenAI's interface has them, and as files of ShareGPT are."""
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}
    parts["messages"].append({"role": "assistant", "content": "good day"})
    (tmp_path / "chats.json").write_text(json.dumps([parts, sharegpt(CHATS[1])]))
    first, second = read_conversations([tmp_path / "chats.json"])
    assert first.messages == (("user", "hello"), ("assistant", "good day"))
    assert second.messages == tuple(CHATS[1])
    (tmp_path / "prose.txt").write_text("It was.")
    with pytest.raises(UserError, match=r"chats\.json holds conversations, but .*prose\.txt prose"):
        find_task("language").read([tmp_path / "chats.json", tmp_path / "prose.txt"], find_task("language").recipe())


def test_lines_with_texts_are_prose(tmp_path: Path) -> None:
    """And those with messages beside the text that these were written as are conversations."""
    language = find_task("language")
    texts = write(tmp_path / "texts.jsonl", [{"text": "It was."}, {"text": "So it was."}])
    both = write(tmp_path / "both.jsonl", [{"text": "u: a"} | openai(CHATS[0])])
    assert [one.text for one in language.read([texts], language.recipe())] == ["It was.", "So it was."]
    assert next(iter(language.read([both], language.recipe()))).messages == tuple(CHATS[0])


def test_the_loss_of_packed_conversations_is_that_of_each_alone(known: tuple[Path, Any, Any], tmp_path: Path) -> None:
    """With the same gradients; rows are as full as they can be."""
    folder, *_ = known
    chats = [[("user", "a" * n), ("assistant", "bé" * (n % 5 + 1))] for n in range(1, 17)]
    data = write(tmp_path / "chats.jsonl", [openai(chat) for chat in [*chats, *map(asked, CHATS)]])
    losses, gradients, rows = [], [], []
    for pack in (False, True):
        recipe = find_task("language").recipe(
            data=data, validation=data, start=folder, batch=2000, max_length=180, pack=pack, precision="float32"
        )
        lesson = Lesson(find_task("language"), recipe)
        train, _ = lesson.open()
        processor = lesson.processor_of(train)
        model = lesson.model_of(processor.sizes()).eval()
        total, count = torch.zeros(()), 0
        for batch in BucketedBatches(processor.reads.buckets(train, processor), 2000, 1).epoch(0):
            total, count = total + CrossEntropy()(model(**batch.inputs), batch).total, count + int(batch.total_weight)
            rows.append((pack, *batch.inputs["tokens"].shape, int(batch.inputs["lengths"].sum())))
        (total / count).backward()
        losses.append(float(total.detach() / count))
        gradients.append(model.embedding.weight.grad)
    assert losses[0] == pytest.approx(losses[1], abs=5e-5)
    torch.testing.assert_close(gradients[0], gradients[1], atol=5e-5, rtol=0)
    (_, count, width, used), alone = next(row for row in rows if row[0]), [row for row in rows if not row[0]]
    assert used == sum(row[3] for row in alone)
    assert count == -(-used // 181)
    assert width <= 181


def test_packing_is_for_transformers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prose.txt").write_text("\n\n".join(f"It was the {n} of the lamps that lit." for n in range(30)))
    with pytest.raises(SystemExit) as stop:
        main(["train", "language", "--data", str(tmp_path / "prose.txt"), "--pack", "--steps", "1"])
    assert stop.value.code == 2
    assert "is not a Transformer, so that a row holds one passage: leave --pack out" in capsys.readouterr().err
