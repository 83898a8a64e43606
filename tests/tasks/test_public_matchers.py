"""Hugging Face folders of CLIP and SigLIP: scores of texts, labels that were never learned, and looks, with
transformers' numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from image_folders import write_matcher
from made_examples import labelled_images

import foveate
from foveate.cli import main
from foveate.contracts import Batch, Output
from foveate.errors import UserError
from foveate.models.multimodal.dual_encoder import DualEncoderConfig
from foveate.tasks import find_task
from foveate.tasks.export.matchers import export_matcher
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe
from foveate.tasks.viewers import add_question, read_input
from foveate.training.objectives.contrastive import Contrastive

transformers = pytest.importorskip("transformers")

KINDS = ("clip", "siglip")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("matchers")
    PIL.Image.fromarray(np.random.default_rng(3).integers(0, 255, (61, 83, 3), np.uint8)).save(root / "x.png")
    for name in KINDS:
        write_matcher(name, root / name)
    return {"root": root, "image": root / "x.png", **{name: root / name for name in KINDS}}


def expected_scores(folder: Path, image: Path, texts: list[str]) -> torch.Tensor:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    length = transformers.AutoConfig.from_pretrained(folder).text_config.max_position_embeddings
    padding = {"padding": "max_length", "max_length": length} if folder.name == "siglip" else {"padding": True}
    inputs = dict(tokenizer(texts, return_tensors="pt", **padding))
    inputs |= transformers.AutoImageProcessor.from_pretrained(folder)(PIL.Image.open(image), return_tensors="pt")
    inputs = {name: inputs[name] for name in ("input_ids", "pixel_values")}
    with torch.no_grad():
        return transformers.AutoModel.from_pretrained(folder).eval()(**inputs).logits_per_image[0]


@pytest.mark.parametrize("name", KINDS)
def test_scores_of_texts(name: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["a b c", "d", "e a d b"]
    scores = expected_scores(folders[name], folders["image"], texts)
    skill = foveate.load(folders[name])
    found = skill([f"{folders['image']}\t{text}" for text in texts])
    torch.testing.assert_close(torch.tensor([one.score for one in found]), scores, atol=5e-5, rtol=0)
    main(["run", str(folders[name]), str(folders["image"]), *texts, "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    torch.testing.assert_close(torch.tensor([one["score"] for one in rows]), scores, atol=5e-5, rtol=0)


@pytest.mark.parametrize("name", KINDS)
def test_labels_that_were_never_learned(
    name: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """As the pipeline for them has it: the probabilities of a CLIP add up to 1, those of a SigLIP need not."""
    labels = ["a b", "c", "d e"]
    pipeline = transformers.pipeline("zero-shot-image-classification", model=str(folders[name]))
    expected = {one["label"]: one["score"] for one in pipeline(str(folders["image"]), candidate_labels=labels)}
    for given in (labels, [", ".join(labels)]):
        main(["run", str(folders[name]), str(folders["image"]), "--json", "--labels", *given])
        found = json.loads(capsys.readouterr().out)
        assert [*found["probabilities"]] == [*expected]
        assert found["label"] == next(iter(expected))
        assert found["probabilities"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_where_it_looks(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    """Both towers are there, and the weights of each site sum to 1."""
    skill: Any = foveate.load(folders[name])
    found = skill.look(add_question(read_input(str(folders["image"]), skill.takes), "a b c", skill.takes))
    own = ["caption-image.similarity", "caption-image.relevance"]
    assert found.sight.sites[:2] == own
    assert {site.partition(".")[0] for site in found.sight.sites[2:]} == {"reader", "images"}
    for site in found.sight.sites:
        weights = found.sight[site].weights()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    for given in (["a b c"], ["--labels", "a,b"]):
        main(["run", str(folders[name]), str(folders["image"]), *given, "--picture", str(tmp_path / "look.png")])
        with PIL.Image.open(tmp_path / "look.png") as picture:
            assert picture.width > 100


def parts_of_theirs(folder: Path, image: Path, texts: list[str]) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """Transformers' model without fused kernels, the pixels of an image, and the vectors of texts."""
    theirs = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    pixels = transformers.AutoImageProcessor.from_pretrained(folder)(PIL.Image.open(image), return_tensors="pt")
    padding = {"padding": "max_length", "max_length": 64} if folder.name == "siglip" else {"padding": True}
    words = transformers.AutoTokenizer.from_pretrained(folder)(texts, return_tensors="pt", **padding)
    with torch.no_grad():
        vectors = theirs.get_text_features(input_ids=words["input_ids"]).pooler_output
    return theirs, pixels["pixel_values"], torch.nn.functional.normalize(vectors, dim=-1)


@pytest.mark.parametrize("name", KINDS)
def test_a_caption_over_the_image_by_similarity(name: str, folders: dict[str, Path]) -> None:
    """The logits of each patch alone: of the value path of the last attention, as transformers' layers have it."""
    texts = ["e a d b", "e", "a", "d", "b"]
    skill: Any = foveate.load(folders[name])
    found = skill.look(add_question(read_input(str(folders["image"]), skill.takes), texts[0], skill.takes))
    theirs, pixels, captions = parts_of_theirs(folders[name], folders["image"], texts)
    vision = theirs.vision_model
    with torch.no_grad():
        read = vision(pixels, output_hidden_states=True)
        if name == "siglip":
            each = [vision.head(read.last_hidden_state[:, place : place + 1]) for place in range(16)]
            patches = torch.cat(each)
        else:
            layer, before = vision.encoder.layers[-1], read.hidden_states[-2][0, 1:]
            alone = layer.self_attn(layer.layer_norm1(before)[:, None])[0][:, 0]
            patches = theirs.visual_projection(vision.post_layernorm(alone))
        patches = torch.nn.functional.normalize(patches, dim=-1)
        expected = (theirs.logit_scale.exp() * captions @ patches.mT).softmax(-1)
    torch.testing.assert_close(found.sight["caption-image.similarity"].weights()[0, 0], expected, atol=5e-5, rtol=0)
    rows, image = found.tokens["caption-image.similarity"]
    assert list(rows) == texts
    assert (image.height, image.width) == (4, 4)
    assert (found.opening.site, found.opening.query) == ("caption-image.similarity", 0)


def test_a_caption_over_the_image_by_attention(folders: dict[str, Path]) -> None:
    """Weights times their gradients, layer by layer, of transformers' own maps."""
    texts = ["e a", "e", "a"]
    skill: Any = foveate.load(folders["clip"])
    found = skill.look(add_question(read_input(str(folders["image"]), skill.takes), texts[0], skill.takes))
    theirs, pixels, captions = parts_of_theirs(folders["clip"], folders["image"], texts)
    read = theirs.vision_model(pixels, output_attentions=True)
    image = torch.nn.functional.normalize(theirs.visual_projection(read.pooler_output), dim=-1)[0]
    for row, caption in enumerate(captions):
        target = theirs.logit_scale.exp() * (image @ caption)
        gradients = torch.autograd.grad(target, read.attentions, retain_graph=True)
        shares = torch.eye(17)[:1]
        for weights, gradient in reversed([*zip(read.attentions, gradients, strict=True)]):
            shares = shares + shares @ (weights * gradient).clamp(min=0)[0].mean(0)
        expected = (shares[0, 1:] / shares[0, 1:].sum()).detach()
        shown = found.sight["caption-image.relevance"].weights()[0, 0, row]
        torch.testing.assert_close(shown, expected, atol=5e-5, rtol=0)


def test_a_pool_passes_its_relevance_to_the_layers_before(folders: dict[str, Path]) -> None:
    """The rows of a SigLIP sum to 1, and another caption has another one."""
    skill: Any = foveate.load(folders["siglip"])
    given = add_question(read_input(str(folders["image"]), skill.takes), "e a", skill.takes)
    rows = skill.look(given).sight["caption-image.relevance"].weights()[0, 0]
    torch.testing.assert_close(rows.sum(-1), torch.ones(3))
    assert rows.min() >= 0
    assert not torch.allclose(rows[1], rows[2])


@pytest.mark.parametrize("name", KINDS)
def test_the_words_over_the_image_are_a_moving_picture(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    main(["look", str(folders[name]), str(folders["image"]), "a b c", "--out", str(tmp_path / "words.gif")])
    with PIL.Image.open(tmp_path / "words.gif") as moving:
        assert moving.n_frames >= 4
    main(["look", str(folders[name]), str(folders["image"]), "a b c", "--out", str(tmp_path / "look.html")])
    page = (tmp_path / "look.html").read_text()
    assert "weights times their gradients (Chefer et al. 2021)" in page
    assert '"opening":{"site":' in page.replace(" ", "")
    main(
        [
            "look",
            str(folders[name]),
            str(folders["image"]),
            "a b c",
            "--sites",
            "reader*",
            "--out",
            str(tmp_path / "some.html"),
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no text: give an image and a text"),
        (["--labels", "a"], "--labels needs at least two different labels"),
        (["--labels", "a,b", "--template", "photo"], "template is 'photo', but must have {} where a label stands"),
        (["a b", "--labels", "a,b"], "--labels are compared with images alone"),
        (["a " * 70], "the text has 72 tokens, but the model reads at most 64"),
    ],
)
def test_what_cannot_be_answered(
    arguments: list[str], told: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folders["clip"]), str(folders["image"]), *arguments])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "part", "changes", "told"),
    [
        ("siglip", "vision_config", {"vision_use_head": False}, "has vision_use_head False"),
        ("clip", "vision_config", {"hidden_act": "relu"}, "has two activations"),
        ("clip", "text_config", {"num_hidden_layers": 3}, "lacks the tensor 'text_model.encoder.layers.2"),
    ],
)
def test_what_foveate_does_not_have(
    name: str, part: str, changes: dict[str, Any], told: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    for file in folders[name].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    values = json.loads((tmp_path / "config.json").read_text())
    values[part] |= changes
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=told):
        foveate.load(tmp_path)


@pytest.mark.parametrize("lora", [None, 2], ids=["whole", "lora"])
@pytest.mark.parametrize("name", KINDS)
def test_a_classifier_begins_with_the_part_that_reads_images(
    name: str, lora: int | None, folders: dict[str, Path], tmp_path: Path
) -> None:
    """With its weights, its sizes and its mean of pixels."""
    chosen = recipe(
        "classify-image",
        data=labelled_images(tmp_path).data,
        start=folders[name],
        out=tmp_path / "run",
        steps=1,
        validate_every=1,
        average=1,
        learning_rate=1e-9,
        lora=lora,
        device="cpu",
        precision="float32",
    )
    skill: Any = learn(chosen)
    public: Any = foveate.load(folders[name])
    tower = public.model.images.state_dict()
    assert len(tower) > 20
    for part, value in skill.model.state_dict().items():
        if not part.startswith("output."):
            torch.testing.assert_close(value, tower[part], atol=1e-6, rtol=0)
    reads = public.processor.reads
    assert (skill.processor.reads.pixel_mean, skill.processor.reads.pixel_deviation) == (reads.mean, reads.spread)
    assert foveate.load(tmp_path / "run").run(folders["image"]).label in {"red", "green", "blue"}


@pytest.fixture(scope="module")
def captions(folders: dict[str, Path]) -> Path:
    """A table of images of other shapes than the models', with captions, of which one is too long."""
    generator, table = np.random.default_rng(4), folders["root"] / "captions.tsv"
    lines = []
    for number in range(12):
        pixels = generator.integers(0, 255, (31 + number, 45, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folders["root"] / f"{number}.png")
        lines.append(f"{number}.png\t{' '.join('abcdefghijkl'[number:])}{' a' * 70 * (number == 3)}\n")
    table.write_text("".join(lines))
    return table


@pytest.mark.parametrize("lora", [None, 2], ids=["whole", "lora"])
@pytest.mark.parametrize("name", KINDS)
def test_it_is_trained_further_and_written_back(
    name: str,
    lora: int | None,
    folders: dict[str, Path],
    captions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From its own weights, with its tokenizer and its statistics of images."""
    out, image = tmp_path / "run", str(folders["image"])
    settings = {"steps": 4, "validate_every": 4, "save_every": 4, "average": 1, "warmup": 1, "learning_rate": 1e-3}
    more: dict[str, Any] = {"batch": 6, "lora": lora, "device": "cpu", "precision": "float32", **settings}
    begun = recipe("match-image", data=captions, validation=captions, start=folders[name], out=out, **more)
    built = Lesson(find_task("match-image"), begun).build().state_dict()
    plain = {part.replace(".layer.", "."): value for part, value in built.items()}
    before: Any = foveate.load(folders[name])
    for part, value in before.model.state_dict().items():
        torch.testing.assert_close(plain[part], value)
    learn(begun)
    assert "cut after 62 tokens, which the model reads: 1 of 12 captions" in capsys.readouterr().err
    skill: Any = foveate.load(out)
    reads, theirs = skill.processor.reads, before.processor.reads
    assert vars(reads) == vars(theirs)
    changed = [part for part, value in skill.model.state_dict().items() if not torch.equal(value, plain[part])]
    assert bool([part for part in changed if "query" not in part and "value" not in part]) == (lora is None)
    metrics = skill.evaluate([captions]).figures["ways"]
    assert {"recall_1", "recall_5"} <= next(iter(metrics.values())).keys()
    main(["run", str(out), image, "--labels", "a b", "c", "--json"])
    assert {*json.loads(capsys.readouterr().out)["probabilities"]} == {"a b", "c"}
    main(["look", str(out), image, "a b c", "--out", str(tmp_path / "look.html")])
    assert (tmp_path / "look.html").stat().st_size > 10_000
    main(["export", str(out), "--out", str(tmp_path / name)])
    texts = ["a b c", "d", "e a d b"]
    scores = expected_scores(tmp_path / name, folders["image"], texts)
    for place in (out, tmp_path / name):
        found = foveate.load(place)([f"{image}\t{text}" for text in texts])
        torch.testing.assert_close(torch.tensor([one.score for one in found]), scores, atol=5e-5, rtol=0)
    again = recipe("match-image", data=captions, validation=captions, start=out, out=tmp_path / "again", **more)
    assert learn(again).model.config == skill.model.config


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_is_written_back(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    main(["export", str(folders[name]), "--out", str(tmp_path / name)])
    texts = ["a b c", "d"]
    found, expected = (expected_scores(place, folders["image"], texts) for place in (tmp_path / name, folders[name]))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", KINDS)
def test_one_learns_from_nothing(name: str, captions: Path, tmp_path: Path) -> None:
    """With words of its own, and images of the size of its config."""
    sizes = {"kind": name, "image_size": 16, "image_layers": 1, "layers": 1, "embedding": 96}
    settings = {"steps": 2, "validate_every": 2, "save_every": 2, "average": 1, "warmup": 1, "batch": 6}
    data: dict[str, Any] = {"data": captions, "validation": captions, "out": tmp_path / "run"}
    learn(recipe("match-image", model="clip-vit-tiny", architecture=sizes, tokens="characters", **data, **settings))
    skill = foveate.load(tmp_path / "run")
    first, unknown = skill([f"{captions.parent / '1.png'}\t{text}" for text in ("a b", "a ?")])
    assert -1 <= first.cosine <= 1
    assert "never saw" in unknown.reason
    with pytest.raises(UserError, match=r"reads\.pixel_mean does nothing for such a model"):
        recipe("match-image", model="clip-vit-tiny", pixel_mean=(0.5,), pixel_deviation=(0.5,), **data)
    assert export_matcher(skill, tmp_path / name) == {"clip": "CLIPModel", "siglip": "SiglipModel"}[name]
    image, texts = captions.parent / "1.png", ["a b", "b a a"]
    cosines = torch.tensor([one.cosine for one in skill([f"{image}\t{text}" for text in texts])])
    logits = expected_scores(tmp_path / name, image, texts)
    scale = skill.model.scale.exp().detach()
    torch.testing.assert_close(logits[1] - logits[0], scale * (cosines[1] - cosines[0]), rtol=0, atol=5e-5)


def test_a_size_that_is_not_the_folders(folders: dict[str, Path], captions: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"size is 32, but the images of .*clip have 20 pixels"):
        learn(recipe("match-image", data=captions, start=folders["clip"], out=tmp_path / "run", size=32))


def test_the_objective_of_a_siglip_by_hand() -> None:
    """The cross-entropy of each pair by itself; equal captions belong to each other's images."""
    logits, labels = torch.tensor([[2.0, -1.0], [0.5, -3.0]]), torch.tensor([[0], [1]])
    batch = Batch({}, {"labels": labels}, torch.ones(2, dtype=torch.long), "")
    signed = torch.tensor([[2.0, 1.0], [-0.5, -3.0]])
    objective = Contrastive().fit(DualEncoderConfig(vocabulary=9, kind="siglip"))
    torch.testing.assert_close(objective(Output(logits), batch).total, -torch.nn.functional.logsigmoid(signed).sum())
    assert Contrastive().fit(DualEncoderConfig(vocabulary=9)) == Contrastive()
