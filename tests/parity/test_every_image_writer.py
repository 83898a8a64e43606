"""Every kind of folder that writes about images: the same logits, searches and texts, and what one can do with it."""

import json
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import transformers
from image_writers import IMAGE_WRITERS
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.interop.public_folder import read_folder
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson, learn

SILENT = Console(file=StringIO())

Case = tuple[str, Path, Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("image-writers")


@cache
def written(kind: str, place: Path) -> tuple[Path, Any]:
    return place / kind, IMAGE_WRITERS[kind].write(place / kind)


@pytest.fixture(params=IMAGE_WRITERS)
def case(request: pytest.FixtureRequest, place: Path) -> Case:
    """A kind, its folder and transformers' model."""
    return request.param, *written(request.param, place)


def logits_of(theirs: Any, pixels: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    name = "input_ids" if theirs.config.model_type == "blip" else "decoder_input_ids"
    with torch.no_grad():
        found: torch.Tensor = theirs(pixel_values=pixels, **{name: target}).logits
    return found


def sizes_of(kind: str) -> tuple[int, int]:
    size = IMAGE_WRITERS[kind].size["size"]
    return size["height"], size["width"]


def test_logits(case: Case) -> None:
    """Of a whole target, and step by step."""
    kind, folder, theirs = case
    generator = torch.Generator().manual_seed(3)
    pixels = torch.randn(3, 3, *sizes_of(kind), generator=generator)
    target = torch.randint(3, 49, (3, 9), generator=generator)
    ours: Any = read_folder(folder).model
    with torch.no_grad():
        found = ours(pixels, target).logits
        state = ours.start(pixels)
        steps = torch.stack([ours.step(column, state) for column in target.unbind(1)], 1)
    expected = logits_of(theirs, pixels, target)
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)
    torch.testing.assert_close(steps, expected, atol=5e-5, rtol=0)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Images of other sizes than the models': one that lies, one that stands, one in grey."""
    folder, generator = tmp_path_factory.mktemp("pictures"), np.random.default_rng(3)
    found = []
    for number, size in enumerate([(31, 45, 3), (52, 29, 3), (40, 40)]):
        found.append(folder / f"{number}.png")
        PIL.Image.fromarray(generator.integers(0, 255, size, np.uint8)).save(found[-1])
    (folder / "table.tsv").write_text("".join(f"{one.name}\tthe lamp {number}\n" for number, one in enumerate(found)))
    return found


def pixels_of(skill: Any, picture: Path) -> torch.Tensor:
    reads = skill.processor.reads
    found: torch.Tensor = reads.tensors([reads.prepare(reads.open(str(picture)))])[0]["pixels"]
    return found


def generated(theirs: Any, pixels: torch.Tensor, settings: dict[str, Any]) -> list[int]:
    """What transformers writes for an image, without start and end."""
    if theirs.config.model_type != "blip":
        theirs.generation_config = transformers.GenerationConfig.from_dict(settings)
        settings = {}
    with torch.no_grad():
        (row,) = theirs.generate(pixels, **settings).tolist()
    end = 52
    return row[1 : row.index(end, 1) if end in row[1:] else None]


DECODING: list[dict[str, Any]] = [
    {"num_beams": 1},
    {"num_beams": 4, "early_stopping": True, "length_penalty": 0.6},
    {"num_beams": 3, "early_stopping": False, "length_penalty": 2.0, "no_repeat_ngram_size": 2, "max_length": 11},
]


@pytest.mark.parametrize("settings", DECODING, ids=str)
def test_searches_find_the_same(case: Case, settings: dict[str, Any], pictures: list[Path], tmp_path: Path) -> None:
    """Several images in one batch, by the settings of `generation_config.json`; and each by itself."""
    kind, folder, theirs = case
    again = copy_of(folder, tmp_path / "folder")
    said = json.loads((folder / "generation_config.json").read_text())
    idle = {"length_penalty": 1.0, "early_stopping": False, "no_repeat_ngram_size": 0}
    whole = {**said, **idle, "max_length": 15, **settings}
    (again / "generation_config.json").write_text(json.dumps(whole))
    skill = foveate.load(again)
    answers = skill([str(one) for one in pictures])
    for picture, answer in zip(pictures, answers, strict=True):
        wanted = {name: value for name, value in whole.items() if not name.endswith("_token_id")}
        expected = generated(theirs, pixels_of(skill, picture), wanted if kind == "blip" else whole)
        assert answer.tokens == expected
        assert skill.run(str(picture)).tokens == expected


def copy_of(folder: Path, place: Path) -> Path:
    place.mkdir()
    for file in folder.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place


def test_a_prompt_is_the_beginning(case: Case, pictures: list[Path], tmp_path: Path) -> None:
    """As transformers has it: the tokens of a prompt count as written."""
    kind, folder, theirs = case
    again = copy_of(folder, tmp_path / "folder")
    said = json.loads((folder / "generation_config.json").read_text())
    ids = {name: value for name, value in said.items() if name.endswith("_token_id")}
    (again / "generation_config.json").write_text(json.dumps({**ids, "max_length": 12}))
    skill = foveate.load(again)
    answer = skill.run(str(pictures[0]), prompt="the lamp")
    begin = [51, *skill.processor.writes.tokenizer.encode(["the lamp"])[0]]
    if kind == "blip":  # which leaves out the last token
        asked: dict[str, Any] = {"input_ids": torch.tensor([[*begin, 52]]), "max_length": 12}
    else:
        asked = {"decoder_input_ids": torch.tensor([begin])}
        theirs.generation_config = transformers.GenerationConfig.from_dict({**ids, "max_length": 12})
    with torch.no_grad():
        (row,) = theirs.generate(pixels_of(skill, pictures[0]), **asked).tolist()
    assert answer.tokens == row[1 : row.index(52, 1) if 52 in row[1:] else None]
    assert answer.text.startswith("the lamp")


def test_images_are_scaled_as_theirs(case: Case, pictures: list[Path]) -> None:
    _, folder, _ = case
    skill = foveate.load(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    for picture in pictures:
        expected = processor(PIL.Image.open(picture).convert("RGB"), return_tensors="pt")["pixel_values"]
        torch.testing.assert_close(pixels_of(skill, picture), expected, atol=1e-5, rtol=0)


def test_it_answers_is_measured_and_looked_at(
    case: Case, pictures: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, folder, _ = case
    answer = foveate.load(folder).run(str(pictures[0]))
    drawn = tmp_path / "seen.png"
    main(["run", str(folder), str(pictures[0]), "--json", "--picture", str(drawn)])
    assert json.loads(capsys.readouterr().out)["text"] == answer.text
    assert drawn.stat().st_size > 1000
    main(["look", str(folder), str(pictures[0]), "--out", str(tmp_path / "look.html")])
    page = (tmp_path / "look.html").read_text()
    for site in ("decoder.1.self", "decoder.1.cross", "image_encoder."):
        assert site in page
    table = pictures[0].parent / "table.tsv"
    main(["eval", str(folder), "--data", str(table)])
    (metrics,) = foveate.load(folder).evaluate([table]).figures["ways"].values()
    assert ("character_error_rate" if IMAGE_WRITERS[kind].task == "read" else "cider") in metrics
    with pytest.raises(UserError, match=r"nowhere\.png"):
        foveate.load(folder).run(str(tmp_path / "nowhere.png"))


def reopened(theirs: Any, folder: Path) -> Any:
    """A folder as transformers has it."""
    found = type(theirs).from_pretrained(folder)
    if not getattr(getattr(theirs.config, "decoder", None), "use_learned_position_embeddings", True):
        made = type(theirs)(found.config)  # from_pretrained leaves TrOCR's waves on the meta device
        found.decoder.model.decoder.embed_positions = made.decoder.model.decoder.embed_positions
    return found.eval()


@pytest.mark.parametrize(
    ("own", "lora"), [(True, None), (True, 2), (False, None)], ids=["whole", "lora", "for the other task"]
)
def test_a_training_begins_from_it(
    case: Case, own: bool, lora: int | None, pictures: list[Path], tmp_path: Path
) -> None:
    """With its sizes, weights and tokenizer; and its result is written for transformers."""
    kind, folder, theirs = case
    before = read_folder(folder).model
    data = pictures[0].parent / "table.tsv"
    task = IMAGE_WRITERS[kind].task if own else "caption" if IMAGE_WRITERS[kind].task == "read" else "read"
    more: dict[str, Any] = {"steps": 2, "validate_every": 2, "save_every": 2, "average": 1, "warmup": 1, "lora": lora}
    more |= {"batch": 3, "validation_examples": 2, "out": tmp_path / "run"}
    recipe = find_task(task).recipe(data=data, validation=data, start=folder, **more)
    built = Lesson(find_task(task), recipe).build()
    begun = built.state_dict()
    for part, value in before.state_dict().items():
        module, _, leaf = part.rpartition(".")
        torch.testing.assert_close(begun.get(part, begun.get(f"{module}.layer.{leaf}")), value, msg=part)
    learn(recipe, console=SILENT)
    skill = foveate.load(tmp_path / "run")
    picture = str(pictures[1])
    answer = skill.run(picture)
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
    again = reopened(theirs, tmp_path / "back")
    pixels, target = pixels_of(skill, pictures[1]), torch.randint(3, 49, (1, 5))
    with torch.no_grad():
        expected = skill.model(pixels, target).logits
    torch.testing.assert_close(logits_of(again, pixels, target), expected, atol=5e-5, rtol=0)
    assert foveate.load(tmp_path / "back").run(picture).tokens == answer.tokens


def test_it_is_written_back(case: Case, pictures: list[Path], tmp_path: Path) -> None:
    kind, folder, theirs = case
    main(["export", str(folder), "--out", str(tmp_path / "back")])
    again = reopened(theirs, tmp_path / "back")
    pixels, target = torch.randn(2, 3, *sizes_of(kind)), torch.randint(3, 49, (2, 5))
    torch.testing.assert_close(logits_of(again, pixels, target), logits_of(theirs, pixels, target), atol=5e-5, rtol=0)
    given = [str(one) for one in pictures]
    first, second = (foveate.load(one)(given) for one in (folder, tmp_path / "back"))
    assert [one.text for one in first] == [one.text for one in second]


def test_one_learns_from_nothing(pictures: list[Path], tmp_path: Path) -> None:
    """With characters of its own, and images of the size of its config."""
    data = pictures[0].parent / "table.tsv"
    sizes = {"vision": {"classes": 1, "head": "none", "image_size": 16, "patch": 8, "width": 12, "heads": 3}}
    more: dict[str, Any] = {"steps": 2, "validate_every": 2, "save_every": 2, "average": 1, "warmup": 1}
    more |= {"batch": 3, "validation_examples": 2, "out": tmp_path / "run", "model": "trocr-tiny"}
    recipe = find_task("read").recipe(data=data, validation=data, architecture={**sizes, "decoder_layers": 1}, **more)
    learn(recipe, console=SILENT)
    skill = foveate.load(tmp_path / "run")
    assert pixels_of(skill, pictures[0]).shape == (1, 3, 16, 16)
    assert {*skill.run(str(pictures[0])).text} <= {*"the lamp 012"}
    with pytest.raises(UserError, match=r"reads\.height does nothing for such a model"):
        find_task("read").recipe(data=data, model="trocr-tiny", height=48)
