"""Models of transformers that write about an image and a text: they answer through transformers, with its tokens."""

import json
import math
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import transformers
from image_text_folders import ALONE, KINDS, write_folder
from torch import nn

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.processed_image import WriteAboutOptions
from foveate.sight import Knock
from foveate.tasks.start.weights import open_start
from foveate.tasks.viewers import open_model
from foveate.viewer.page import read, save
from foveate.viewer.protocol import File
from foveate.viewer.server.removals import Removal, without

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of the processor of PaliGemma

QUESTION = "the keeper lit the lamp"

TILED = {"image": (4, 6), "overview": (2, 2)}

GRIDS = {
    "llava": {"image": (4, 4)},
    "git": {"image": (4, 4)},
    "qwen2_vl": {"image": (3, 4)},
    "qwen2_5_vl": {"image": (3, 4)},
    "llava_next": {"image": (8, 12), "overview": (4, 4)},
    "paligemma": {"image": (4, 4)},
    "idefics3": TILED,
    "smolvlm": TILED,
    "internvl": TILED,
    "gemma3": {"image": (2, 2)},
    "florence2": {"image": (4, 4)},
    "mllama": {"image": (6, 8)},
    "blip_2": {"image": (4, 4)},
    "instructblip": {"image": (4, 4)},
    "vit_msn": {"image": (4, 4)},
}
"""The rows and columns of what words look at."""

THROUGH_QUERIES = ("blip_2", "instructblip")
"""Those whose words look at learned queries, which are no places."""

APART = ("florence2", "vit_msn")
"""Those whose decoder is apart from what reads the input."""

PATCHES = ("qwen2_vl", "qwen2_5_vl")
"""Those that are given patches, by a processor that needs torchvision without foveate."""

SIGNS = {
    "gemma3": "<start_of_image>\n",
    "mllama": "<|image|>\n",
    "florence2": "",
    "blip_2": "",
    "instructblip": "",
}
"""What stands before a question where it is not "<image>"."""

PADDED = {"mllama": 18 / 16}
"""The height of what a model reads of the test's image, in heights of the image."""


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Path, Any]:
    """A kind, its folder, an image, and transformers' model."""
    folder, picture = tmp_path / request.param, tmp_path / "photo.png"
    theirs = write_folder(request.param, folder)
    PIL.Image.fromarray(noise()).save(picture)
    return request.param, folder, picture, theirs


def noise() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 255, (24, 36, 3), np.uint8)


def expected_tokens(kind: str, folder: Path, picture: Path, theirs: Any) -> list[int]:
    with PIL.Image.open(picture) as opened:
        image = opened.convert("RGB")
    if kind in (*PATCHES, "internvl"):  # whose own processors need torchvision
        reads = foveate.load(folder).processor.reads
        inputs = reads.prepare(reads.open(f"{picture}\t{QUESTION}")).inputs
        assert int((inputs["input_ids"] == 55).sum()) == (7 * 4 if kind == "internvl" else 3 * 4)
    elif kind == "vit_msn":
        inputs = transformers.AutoImageProcessor.from_pretrained(folder)(images=image, return_tensors="pt")
    elif kind == "git":
        inputs = transformers.AutoProcessor.from_pretrained(folder)(images=image, return_tensors="pt")
    else:
        processor = transformers.AutoProcessor if kind != "smolvlm" else transformers.Idefics3Processor
        text = SIGNS.get(kind, "<image>\n") + QUESTION
        inputs = processor.from_pretrained(folder)(images=image, text=text, return_tensors="pt")
    with torch.no_grad():
        (row,) = theirs.generate(**inputs, max_new_tokens=7).tolist()
    if kind in APART or "input_ids" not in inputs:
        return row[1:]
    read = inputs["input_ids"][0].tolist()
    return row[len(read) :] if row[: len(read)] == read else row


def test_the_text_is_theirs(case: tuple[str, Path, Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    kind, folder, picture, theirs = case
    asked = [str(picture)] if kind in ALONE else [str(picture), QUESTION]
    main(["run", str(folder), *asked, "--json"])
    found = foveate.load(folder).run("\t".join(asked))
    assert found.tokens == expected_tokens(kind, folder, picture, theirs)
    assert json.loads(capsys.readouterr().out)["text"] == found.text


def test_it_is_looked_at(case: tuple[str, Path, Path, Any], tmp_path: Path) -> None:
    kind, folder, picture, _ = case
    asked = [str(picture)] if kind in ALONE else [str(picture), QUESTION]
    main(["look", str(folder), *asked, "--out", str(tmp_path / "look.html")])
    page = (tmp_path / "look.html").read_text()
    assert kind == "vit_msn" or "[IMAGE 1]" in page
    assert '"opening":{"site":' in page.replace(" ", "")
    assert ("Words look at learned queries" in page) == (kind in THROUGH_QUERIES)
    main(["look", str(folder), *asked, "--out", str(tmp_path / "words.gif")])
    with PIL.Image.open(tmp_path / "words.gif") as moving:
        assert moving.n_frames > 1
    drawn = tmp_path / "seen.png"
    main(["run", str(folder), *asked, "--picture", str(drawn)])
    assert drawn.stat().st_size > 1000


def test_it_is_measured(case: tuple[str, Path, Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind, folder, picture, _ = case
    table = tmp_path / "table.tsv"
    columns = [picture.name, "a lamp"] if kind in ALONE else [picture.name, QUESTION, "up"]
    table.write_text("\t".join(columns) + "\n")
    (metrics,) = foveate.load(folder).evaluate([table]).figures["ways"].values()
    assert ("cider" if kind in ALONE else "accuracy") in metrics


def test_it_is_neither_trained_nor_written(case: tuple[str, Path, Path, Any], tmp_path: Path) -> None:
    kind, folder, _, theirs = case
    reason = (
        "has the encoder 'vit_msn'" if kind == "vit_msn" else f"holds a model of the type '{theirs.config.model_type}'"
    )
    with pytest.raises(UserError, match=reason):
        open_start(folder)
    with pytest.raises((UserError, SystemExit)):
        main(["export", str(folder), "--out", str(tmp_path / "out")])


def test_a_question_is_needed(case: tuple[str, Path, Path, Any]) -> None:
    kind, folder, picture, _ = case
    if kind not in ALONE:
        with pytest.raises(UserError, match="no question"):
            foveate.load(folder).run(str(picture))


def seen_and_written(kind: str, folder: Path, picture: Path) -> tuple[Any, Any, list[int], dict[str, torch.Tensor]]:
    """A skill, its look at an image, the tokens of the answer, and what the model was given."""
    skill = foveate.load(folder)
    given = File("photo.png", picture.read_bytes(), "" if kind in ALONE else QUESTION)
    prepared = skill.processor.reads.prepare(skill.processor.reads.receive(given, ""))
    (answer,) = skill.answer_prepared([prepared], WriteAboutOptions())
    return skill, skill.look(given), answer.tokens, prepared.inputs


def test_each_word_has_a_map_of_the_picture(case: tuple[str, Path, Path, Any]) -> None:
    """A map is the part of the whole row of the token that writes a word which is of the image, in the image's order,
    and the model that is looked at would write the same words."""
    kind, folder, picture, _ = case
    skill, seen, tokens, inputs = seen_and_written(kind, folder, picture)
    count = len(tokens)
    with torch.inference_mode():
        logits = skill.model(**inputs, tokens=torch.tensor([tokens])).logits[0]
    written = slice(0, count) if kind in APART else slice(-count - 1, -1)
    assert logits[written].argmax(-1).tolist() == tokens
    writes = [name for name in seen.sight.sites if kind != "florence2" or "decoder" in name]
    for region, grid in GRIDS[kind].items():
        first = next(name for name in writes if name.endswith(f".words-{region}"))
        words, image = seen.tokens[first]
        assert (image.height, image.width) == grid
        assert list(words[-count:]) == skill.processor.writes.tokenizer.pieces(tokens)
        found, whole = seen.sight[first].weights()[0, :, -count:], seen.sight[first.rpartition(".")[0]]
        rows = whole.weights()[0, :, written]
        if kind in THROUGH_QUERIES:
            reader = next(site for site in seen.sight if "crossattention" in site.name)
            expected = rows[..., :9] @ reader.weights()[0].mean(0)[:, 1:]
        else:
            expected = rows[..., list(places_of(seen, first))]
        torch.testing.assert_close(found, expected)
        assert found.sum() > 0
    assert seen.opening is not None
    assert seen.opening.site.endswith(".words-image")
    assert seen.sight.sites[0].endswith(".words-image")


def places_of(seen: Any, part: str) -> tuple[int, ...]:
    """The keys of the whole map that are a part's, in its order."""
    return tuple(seen.sight[part]._columns)


def test_a_cell_is_that_of_the_token_which_it_changes(case: tuple[str, Path, Path, Any]) -> None:
    """Where another colour stands in one cell of the image, what a model reads for one token changes most: the token of
    that cell. What encodes the image is kept from mixing its patches by attention and by convolutions."""
    kind, folder, picture, _ = case
    if kind in THROUGH_QUERIES:
        pytest.skip("learned queries are no places")
    skill, seen, _, _ = seen_and_written(kind, folder, picture)
    for region, (rows, columns) in GRIDS[kind].items():
        part = next(name for name in seen.sight.sites if name.endswith(f".words-{region}"))
        places = places_of(seen, part)
        keys = part.rpartition(".")[0]
        still = [site.name for site in seen.sight if site.name.split(".image-image")[0] not in texts_of(seen)]
        before = what_is_read(skill, keys, still, picture.read_bytes(), kind)
        image = noise()
        bottom = image.shape[0] * PADDED.get(kind, 1.0)
        for number in range(len(places)):
            row, column = divmod(number, columns)
            changed = image.copy()
            down = [round(at * bottom / rows) for at in (row, row + 1)]
            across = [round(at * image.shape[1] / columns) for at in (column, column + 1)]
            cell = changed[slice(*down), slice(*across)]
            if len(cell) < (down[1] - down[0]) / 2:  # beyond the image, where a model reads padding
                continue
            cell[:] = 255 - cell
            file = BytesIO()
            PIL.Image.fromarray(changed).save(file, "png")
            after = what_is_read(skill, keys, still, file.getvalue(), kind)
            apart = (after - before).norm(dim=-1)[list(places)]
            assert int(apart.argmax()) == number, (region, row, column)


def texts_of(seen: Any) -> set[str]:
    """The sites of what reads words."""
    parts = {name.rpartition(".")[0].rpartition(".")[0] for name in seen.sight.sites if ".words-" in name}
    return {site.name for site in seen.sight if any(site.name.startswith(part) for part in parts)}


def what_is_read(skill: Any, site: str, still: list[str], file: bytes, kind: str) -> torch.Tensor:
    """What the keys (S, C) of a site are made of, where the sites that are still add nothing."""
    reads = skill.processor.reads
    prepared = reads.prepare(reads.receive(File("photo.png", file, "" if kind in ALONE else QUESTION), ""))
    found: list[torch.Tensor] = []

    def note(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        order = ("encoder_hidden_states", "key_value_states", "cross_attention_states", "hidden_states")
        tensors = [named[name] for name in order if named.get(name) is not None]
        states = (tensors or [one for one in given if isinstance(one, torch.Tensor)])[0]
        found.append(states.reshape(-1, states.shape[-1]))

    def silence(module: Any, given: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, tuple):
            return (torch.zeros_like(output[0]), *output[1:])
        return torch.zeros_like(output)

    modules = dict(skill.model.named_modules())
    silent = {name.split("#")[0].split(".image-image")[0] for name in still}
    silent |= {name for name, one in modules.items() if isinstance(one, nn.Conv2d) and one.groups > 1}
    hooks = [modules[name].register_forward_hook(silence) for name in silent]
    hooks.append(modules[site].register_forward_pre_hook(note, with_kwargs=True))
    try:
        with torch.inference_mode():
            skill.model(**prepared.inputs, tokens=torch.tensor([[5]]))
    finally:
        for hook in hooks:
            hook.remove()
    return found[0]


def log_prob(skill: Any, inputs: dict[str, torch.Tensor], tokens: list[int], kind: str) -> torch.Tensor:
    """The log-probability of what was written."""
    logits = skill.model(**inputs, tokens=torch.tensor([tokens])).logits[0].float().log_softmax(-1)
    logits = logits[: len(tokens)] if kind in APART else logits[-len(tokens) - 1 : -1]
    return logits[range(len(tokens)), tokens].sum()


def test_what_the_text_needs(case: tuple[str, Path, Path, Any], tmp_path: Path) -> None:
    """Heads, words and cells of the image, measured against a model that is changed from outside."""
    kind, folder, picture, _ = case
    skill, seen, tokens, inputs = seen_and_written(kind, folder, picture)
    given = File("photo.png", picture.read_bytes(), "" if kind in ALONE else QUESTION)
    found = skill.effect(given, exact=2)
    with torch.inference_mode():
        whole = float(log_prob(skill, inputs, tokens, kind))
    assert found.panel.value == pytest.approx(whole, abs=1e-4)
    for site, heads in found.panel.heads.items():
        for head, effect in enumerate(heads):
            if effect.exact:
                with foveate.change(skill.model, {site: Knock(heads=[head])}), torch.inference_mode():
                    without = float(log_prob(skill, inputs, tokens, kind))
                assert effect.change == pytest.approx(without - whole, abs=1e-4)
    cells = [part for part in found.panel.places if part.site.endswith(".words-image")]
    assert [len(part.places) for part in cells] == (
        [] if kind in THROUGH_QUERIES else [math.prod(GRIDS[kind]["image"])]
    )
    for part in found.panel.places:
        keys = places_of(seen, part.site) if part in cells else part.places
        read_at = part.site.removesuffix(".words-image").partition("#")[0]
        shape = seen.sight[read_at].shape
        alike = [name for name in seen.sight.sites if seen.sight[name].shape[3] == shape[3] and ".words-" not in name]
        alike = [name for name in alike if name in texts_of(seen) and "#" not in name]
        for key, effect in zip(keys, part.effects, strict=True):
            if effect.exact and kind not in (*APART, "mllama"):  # of these other keys are as many
                hidden = dict.fromkeys(alike, Knock(keys=[int(key)]))
                with foveate.change(skill.model, hidden), torch.inference_mode():
                    without = float(log_prob(skill, inputs, tokens, kind))
                assert effect.change == pytest.approx(without - whole, abs=1e-4)
    words = [name for name in found.names if not name.startswith("row ")]
    assert kind == "vit_msn" or len(words) + sum(len(part.places) for part in cells) <= len(found.names)
    page = tmp_path / "effects.html"
    save(page, found.document())
    shown = read(page).effects
    assert shown is not None
    assert [part.site for part in shown.places] == [part.site for part in found.panel.places]
    other = skill.effect(given, "the lamp", exact=0)
    assert other.panel.answer == "the lamp"
    assert other.panel.value != found.panel.value


def test_the_gradients_of_the_text(case: tuple[str, Path, Path, Any]) -> None:
    """Weights times the gradients of the log-probability of what was written, by transformers' own maps."""
    kind, folder, picture, _ = case
    skill, _, tokens, inputs = seen_and_written(kind, folder, picture)
    given = File("photo.png", picture.read_bytes(), "" if kind in ALONE else QUESTION)
    relevance = skill.look(given, measure="relevance").sight.sites
    through = {"mllama", "vit_msn"}  # whose words have the image behind cross-attention, and no stack reads both
    assert any(name.endswith(".words-image") for name in relevance) == (kind not in {*THROUGH_QUERIES, *through})
    seen = skill.look(given, measure="gradients")
    assert seen.sight.sites[0].endswith(".words-image") == (kind not in THROUGH_QUERIES)
    found = {site.name: site.weights() for site in seen.sight}
    caught: list[Any] = []
    theirs = skill.model.theirs
    theirs.set_attn_implementation("eager")
    asked: Any = lambda module, given, named: (given, {**named, "output_attentions": True})  # noqa: E731
    hooks = [
        theirs.register_forward_pre_hook(asked, with_kwargs=True),
        theirs.register_forward_hook(lambda module, given, output: caught.append(output)),
    ]
    number = log_prob(skill, inputs, tokens, kind)
    for hook in hooks:
        hook.remove()
    own = getattr(caught[0], "language_model_outputs", None) or caught[0]
    kept = [getattr(own, name, None) for name in ("attentions", "decoder_attentions", "cross_attentions")]
    maps = [weights for own in kept for weights in own or ()]
    slopes = torch.autograd.grad(number, maps, allow_unused=True)
    pairs = zip(maps, slopes, strict=True)
    expected = [(weights * slope).clamp(min=0).detach() for weights, slope in pairs if slope is not None]
    assert expected
    for one in expected:
        apart = [float((own - one).abs().max()) for own in found.values() if own.shape == one.shape]
        assert min(apart) < 5e-5


def test_a_head_of_the_words_is_removed_from_the_whole_map(case: tuple[str, Path, Path, Any]) -> None:
    kind, folder, picture, _ = case
    viewer = open_model(folder)
    given = File("photo.png", picture.read_bytes(), "" if kind in ALONE else QUESTION)
    site = next(name for name in viewer.look(given, 4096).sight.sites if name.endswith(".words-image"))
    found = []
    for removed in ([], [Removal(site, 1)], [Removal(site.removesuffix(".words-image"), 1)]):
        with without(viewer, removed):
            seen = viewer.look(given, 4096).sight
            found.append(seen[seen.sites[-1]].weights())
    assert torch.equal(found[1], found[2])
    assert found[0].shape != found[1].shape or not torch.equal(found[0], found[1])
