"""Every kind of folder with an encoder-decoder: the same logits, searches and answers, and what one can do with it."""

import json
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from rich.console import Console
from translators import TRANSLATORS

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.answers import Answer, Failure
from foveate.interop.public_folder import MODEL_TYPES, layout_at, read_folder, translates
from foveate.models import sizes_of_data
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson, learn

SILENT = Console(file=StringIO())

TEXTS = ["the keeper lit the lamp", "counting each dawn", "up the stairs , up"]

LENGTHS = torch.tensor([13, 7, 4])

Case = tuple[str, Path, Any]


def test_every_kind_is_here() -> None:
    two_sided = {kind for kind, module in MODEL_TYPES.items() if "tgt_vocab" in sizes_of_data(family(module))}
    assert two_sided == {row.config.model_type for row in TRANSLATORS.values()}


def family(module: str) -> str:
    return layout_at(module).family


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("translators")


@cache
def written(kind: str, place: Path) -> tuple[Path, Any]:
    return place / kind, TRANSLATORS[kind].write(place / kind)


@pytest.fixture(params=TRANSLATORS)
def case(request: pytest.FixtureRequest, place: Path) -> Case:
    """A kind, its folder and transformers' model."""
    return request.param, *written(request.param, place)


def sources() -> torch.Tensor:
    return torch.randint(3, 49, (3, 13), generator=torch.Generator().manual_seed(2))


def words_to_write(kind: str) -> dict[str, Any]:
    languages = TRANSLATORS[kind].languages
    return {} if languages is None else {"target_language": languages[1]}


def test_logits_of_padded_rows(case: Case) -> None:
    """Each row as transformers has it by itself, for a whole target and step by step."""
    _, folder, theirs = case
    assert translates(folder)
    ours: Any = read_folder(folder).model
    source, target = sources(), torch.randint(3, 49, (3, 9), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        found = ours(source, LENGTHS, target, torch.tensor([9, 5, 2])).logits
        state = ours.start(source, LENGTHS)
        steps = torch.stack([ours.step(column, state) for column in target.unbind(1)], 1)
        for row, (length, written) in enumerate(zip(LENGTHS.tolist(), (9, 5, 2), strict=True)):
            own = {"input_ids": source[row : row + 1, :length], "decoder_input_ids": target[row : row + 1]}
            expected = theirs(**own).logits[0]
            torch.testing.assert_close(found[row, :written], expected[:written], atol=5e-5, rtol=0)
            torch.testing.assert_close(steps[row], expected, atol=5e-5, rtol=0)


def generated(theirs: Any, rows: list[list[int]], **settings: Any) -> list[list[int]]:
    """What transformers writes for rows of different lengths, without start and end."""
    config = theirs.config
    pad = config.pad_token_id
    longest = max(map(len, rows))
    inputs = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    with torch.no_grad():
        found = theirs.generate(input_ids=inputs, attention_mask=mask, do_sample=False, **settings).tolist()
    return [row[1 : row.index(config.eos_token_id, 1) if config.eos_token_id in row[1:] else None] for row in found]


DECODING: list[dict[str, Any]] = [
    {"num_beams": 1},
    {"num_beams": 4, "early_stopping": True},
    {"num_beams": 4, "early_stopping": False, "length_penalty": 0.6},
    {"num_beams": 3, "early_stopping": "never", "length_penalty": 2.0},
    {"num_beams": 4, "no_repeat_ngram_size": 2, "bad_words_ids": [[9], [12, 14], [50]], "min_length": 6},
    {"num_beams": 1, "no_repeat_ngram_size": 1, "suppress_tokens": [8, 50], "begin_suppress_tokens": [10]},
    {"num_beams": 2, "repetition_penalty": 1.3, "max_length": 6},
]


@pytest.mark.parametrize("settings", DECODING, ids=str)
def test_searches_find_the_same(case: Case, settings: dict[str, Any], tmp_path: Path) -> None:
    """Several texts in one batch, by the settings of `generation_config.json`; and each by itself."""
    kind, folder, theirs = case
    again = tmp_path / "folder"
    again.mkdir()
    for file in folder.iterdir():
        (again / file.name).write_bytes(file.read_bytes())
    whole = json.loads((folder / "generation_config.json").read_text()) | {"max_length": 15} | settings
    whole = {name: value for name, value in whole.items() if value is not None}
    whole |= {} if whole["num_beams"] > 1 else {"length_penalty": 1.0, "early_stopping": False}
    (again / "generation_config.json").write_text(json.dumps(whole))
    skill = foveate.load(again)
    rows = skill.processor.reads.tokenizer
    asked = words_to_write(kind)
    own = skill.in_languages(skill.options_with(**asked)).processor
    rows = [own.reads.prepare(text).tolist() for text in TEXTS]
    before = theirs.generation_config
    theirs.generation_config = transformers.GenerationConfig.from_dict(whole)
    first = own.writes.rules.first
    try:
        expected = generated(theirs, rows, **({} if first is None else {"forced_bos_token_id": first}))
    finally:
        theirs.generation_config = before
    answers = skill(TEXTS, **asked)
    pad = theirs.config.pad_token_id
    for text, answer, tokens in zip(TEXTS, answers, expected, strict=True):
        while tokens and tokens[-1] == pad and len(tokens) > len(answer.tokens):
            tokens.pop()  # which fills up the row
        assert answer.tokens == tokens
        assert skill.run(text, **asked).tokens == tokens


def test_it_answers_and_is_looked_at(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind, folder, _ = case
    skill, asked = foveate.load(folder), words_to_write(kind)
    answers = skill.answer([*TEXTS, "caf\udce9"], skill.options_with(**asked))
    assert all(isinstance(one, Answer) for one in answers[:-1])
    assert isinstance(answers[-1], Failure)
    flags = [part for name, value in asked.items() for part in (f"--{name.replace('_', '-')}", value)]
    capsys.readouterr()
    main(["run", str(folder), TEXTS[0], "--json", *flags])
    assert json.loads(capsys.readouterr().out)["text"] == answers[0].text
    main(["look", str(folder), TEXTS[0], "--out", str(tmp_path / "look.html")])
    page = (tmp_path / "look.html").read_text()
    for site in ("encoder.1.self", "decoder.1.self", "decoder.1.cross"):
        assert site in page
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the lamp\tof the lamp\nup\tdawn\n")
    main(["eval", str(folder), "--data", str(pairs), *flags])
    assert "BLEU" in capsys.readouterr().out


@pytest.mark.parametrize("lora", [None, 2], ids=["whole", "lora"])
def test_a_training_begins_from_it(case: Case, lora: int | None, tmp_path: Path) -> None:
    """With its sizes, weights, tokenizers and rules; and its result is written for transformers, which gives the same
    logits and writes the same texts."""
    kind, folder, theirs = case
    before = read_folder(folder).model
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"the keeper lit {number}\tof the lamp {number}\n" for number in range(9)))
    more: dict[str, Any] = {"steps": 2, "validate_every": 2, "save_every": 2, "average": 1, "warmup": 1, "lora": lora}
    more |= {"max_length": 30, "batch": 200, "validation_examples": 4}
    if TRANSLATORS[kind].languages:
        more |= dict(zip(("from_language", "to_language"), TRANSLATORS[kind].languages, strict=True))
    recipe = find_task("translate").recipe(data=data, validation=data, start=folder, out=tmp_path / "run", **more)
    built = Lesson(find_task("translate"), recipe).build()
    own = {part.replace(".layer.", "."): value for part, value in built.state_dict().items()}
    for part, value in before.state_dict().items():
        torch.testing.assert_close(own[part], value, msg=part)
    learn(recipe, console=SILENT)
    skill = foveate.load(tmp_path / "run")
    answer = skill.run(TEXTS[0], max_new_tokens=16)
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
    again = type(theirs).from_pretrained(tmp_path / "back").eval()
    source, target = sources(), torch.randint(3, 49, (3, 5))
    with torch.no_grad():
        expected = skill.model(source, torch.tensor([13] * 3), target).logits
        found = again(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)
    rows = [skill.processor.reads.prepare(text).tolist() for text in TEXTS]
    plain = {"num_beams": 1, "length_penalty": 1.0, "early_stopping": False, "max_length": 17}
    for text, written in zip(TEXTS, generated(again, rows, **plain), strict=True):
        assert skill.run(text, method="greedy", max_new_tokens=16).tokens == written
    opened = foveate.load(tmp_path / "back")
    assert opened.run(TEXTS[0], max_new_tokens=16, **words_to_write(kind)).tokens == answer.tokens


def test_a_text_that_is_too_long_is_cut(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the model has learned so many positions: the line alone has no answer, unless --truncate cuts it."""
    kind, folder, _ = case
    long = " ".join(["lamp"] * 300)
    flags = [part for name, value in words_to_write(kind).items() for part in (f"--{name.replace('_', '-')}", value)]
    given = ["run", str(folder), long, TEXTS[0], "--decoding.max-new-tokens", "4", *flags]
    skill = foveate.load(folder)
    if skill.most_positions > 1000:
        main(given)
        assert len(capsys.readouterr().out.splitlines()) == 2
        return
    with pytest.raises(SystemExit) as stop:
        main(given)
    assert stop.value.code == 2
    capsys.readouterr()
    main([*given, "--truncate"])
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert "cut" in err


def test_it_is_written_back(case: Case, tmp_path: Path) -> None:
    kind, folder, theirs = case
    main(["export", str(folder), "--out", str(tmp_path / "back")])
    again = type(theirs).from_pretrained(tmp_path / "back").eval()
    inputs = {"input_ids": sources(), "decoder_input_ids": sources()[:, :5]}
    with torch.no_grad():
        torch.testing.assert_close(again(**inputs).logits, theirs(**inputs).logits, atol=5e-5, rtol=0)
    first, second = (foveate.load(one)(TEXTS, **words_to_write(kind)) for one in (folder, tmp_path / "back"))
    assert [one.text for one in first] == [one.text for one in second]


def test_a_language_that_there_is_not(place: Path) -> None:
    folder, _ = written("m2m_100", place)
    skill = foveate.load(folder)
    with pytest.raises(UserError, match="name one by --target-language, such as up, of"):
        skill.run(TEXTS[0])
    with pytest.raises(UserError, match="language 'fr'"):
        skill.run(TEXTS[0], target_language="fr")
    with pytest.raises(UserError, match="has no choice of languages"):
        foveate.load(written("t5", place)[0]).run(TEXTS[0], target_language="fr")
