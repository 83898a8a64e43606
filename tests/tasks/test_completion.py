"""Public language models in use: folders, prompts, choices, measures, the command line, and their mistakes."""

import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from chat_templates import CHATML
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of, word_tokenizer
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import foveate
from foveate.cli import main
from foveate.data.tokens.chat import ChatForm, Message, chat_template
from foveate.data.tokens.public_tokenizer import PublicTokenizer, byte_level
from foveate.data.tokens.tokenizers import train_bpe
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.forms.completion import CompleteOptions, TextStream, likeliest
from foveate.forms.language import Continuation, ReadBeginning
from foveate.forms.processor import Processor
from foveate.forms.prompts import Prompting
from foveate.inference.columns import WORTH_STORING
from foveate.metrics.written_answers import answer_metrics
from foveate.tasks.completion.choices import ChoiceScorer
from foveate.tasks.completion.exporting import as_completer
from foveate.tasks.completion.measures import log_prob
from foveate.tasks.language import TASK
from foveate.tasks.language_model import LanguageModel
from foveate.tasks.viewers.skills import CompleterViewer

FORM = "{input} , {output}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module]:
    """A folder of a tiny Llama, and the model of transformers."""
    return folder_of("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture
def copied(made: tuple[Path, nn.Module], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "copy"))


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    path = tmp_path / "shots.tsv"
    path.write_text("the keeper\tup\nlit a lamp\tdawn\n", encoding="utf-8")
    return path


def test_it_goes_on_from_texts_alone_and_together(made: tuple[Path, nn.Module]) -> None:
    task = foveate.load(made[0])
    options = CompleteOptions(Decoding("greedy", max_new_tokens=7))
    texts = ["the keeper lit a lamp", "climbed", "up stairs ,"]
    together = task.answer(texts, options)
    for text, answer in zip(texts, together, strict=True):
        alone = task.answer([text], options)[0]
        assert (alone.text, alone.tokens) == (answer.text, answer.tokens)
        assert answer.line == text + answer.text
        ids = task.tokenizer.encode([text])[0]
        given = torch.tensor([ids])
        (expected,) = made[1].generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=7, do_sample=False, pad_token_id=0
        )
        assert answer.tokens == task.tokenizer.pieces(expected[len(ids) :].tolist())[: len(answer.tokens)]


def test_a_long_text_is_worth_storing_weights_for(made: tuple[Path, nn.Module]) -> None:
    skill = foveate.load(made[0])
    linears = [part for part in skill.model.modules() if isinstance(part, nn.Linear)]
    wide = [part.weight for part in linears if part.out_features > part.in_features]
    brief = skill.run("the keeper", max_new_tokens=3).text
    assert all(weight.is_contiguous() for weight in wide)
    assert skill.run("the keeper", max_new_tokens=WORTH_STORING).text.startswith(brief)
    assert wide
    assert not any(weight.is_contiguous() for weight in wide)


def test_streamed_parts_are_the_text_up_to_a_stop_text() -> None:
    tokenizer = PublicTokenizer(word_tokenizer())
    ids = tokenizer.encode(["lamp and dawn up stairs"])[0]
    shown: list[str] = []
    stream = TextStream(tokenizer, tokenizer.encode(["the"])[0], (" up st", "dawn lit"), shown.append)
    assert [stream.add(token) for token in ids] == [False, False, False, False, True]
    assert stream.text == " lamp and dawn"
    assert shown == [" lamp", " an", "d ", "dawn"], "what may begin a stop text is held back"


def test_a_stop_text_is_held_back_before_an_unfinished_character() -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PublicTokenizer(made)
    for text, want in (("so 很好。", "so "), ("so 很 ok", "so 很 ok"), ("a#好", "a"), ("a#é", "a#é")):
        shown: list[str] = []
        stream = TextStream(tokenizer, tokenizer.encode(["x"])[0], ("很好", "#好"), shown.append)
        for token in tokenizer.encode([text])[0]:
            if stream.add(token):
                break
        stream.end()
        assert ("".join(shown), stream.text) == (want, want)


def by_hand(theirs: nn.Module, tokenizer: PublicTokenizer, prompt: str, answer: str) -> list[float]:
    """The log-probability of each token of an answer, by transformers."""
    before, whole = (tokenizer.encode([text])[0] for text in (prompt, f"{prompt} {answer}"))
    with torch.no_grad():
        logits = theirs(torch.tensor([whole])).logits[0].log_softmax(-1)
    return [float(logits[place - 1, whole[place]]) for place in range(len(before), len(whole))]


@pytest.mark.parametrize("choices", [("up", "dawn"), ("up stairs", "dawn", "climbed up stairs")], ids=["short", "long"])
def test_scores_of_choices_are_those_of_whole_texts(
    made: tuple[Path, nn.Module], shots: Path, choices: tuple[str, ...]
) -> None:
    task, theirs = foveate.load(made[0]), made[1]
    inputs = ["the keeper climbed", "step", "a lamp and the dawn"]
    begin = "the keeper , up\n\nlit a lamp , dawn\n\n"
    for score in ("sum", "mean", "bytes"):
        found = ChoiceScorer(task.model, task.tokenizer, Prompting(shots, choices, FORM, score=score)).scores(inputs)
        for given, scores in zip(inputs, found, strict=True):
            for choice, value in zip(choices, scores, strict=True):
                parts = by_hand(theirs, task.tokenizer, f"{begin}{given} ,", choice)
                count = {"sum": 1, "mean": len(parts), "bytes": len(f" {choice}".encode())}[score]
                assert value == pytest.approx(sum(parts) / count, abs=2e-5)


def test_calibration_by_hand(made: tuple[Path, nn.Module], shots: Path) -> None:
    task, choices = foveate.load(made[0]), ("up", "dawn")
    plain = ChoiceScorer(task.model, task.tokenizer, Prompting(shots, choices, FORM))
    calibrated = ChoiceScorer(task.model, task.tokenizer, Prompting(shots, choices, FORM, calibrate="neutral"))
    nothing = torch.tensor(plain.scores(["N/A", "", "[MASK]"])).softmax(1).mean(0).log()
    expected = torch.tensor(plain.scores(["step", "a lamp"])) - nothing
    torch.testing.assert_close(torch.tensor(calibrated.scores(["step", "a lamp"])), expected, atol=1e-4, rtol=0)
    calibrated = ChoiceScorer(task.model, task.tokenizer, Prompting(shots, choices, FORM, calibrate="batch"))
    inputs = torch.tensor(plain.scores(["step", "a lamp"]))
    expected = inputs - inputs.softmax(1).mean(0).log()
    torch.testing.assert_close(torch.tensor(calibrated.scores(["step", "a lamp"])), expected, atol=1e-4, rtol=0)


def test_windows_of_prose_cover_every_token_once(made: tuple[Path, nn.Module]) -> None:
    task, theirs = foveate.load(made[0]), made[1]
    tokens = torch.randint(51, (61,)).tolist()
    total, done = 0.0, 1
    while done < len(tokens):  # windows of 20 tokens begin half a window before the first that is new
        begin = max(0, done - 10) if done > 1 else 0
        window = tokens[begin : begin + 20]
        with torch.no_grad():
            logits = theirs(torch.tensor([window])).logits[0].log_softmax(-1)
        total += sum(float(logits[place - 1, window[place]]) for place in range(done - begin, len(window)))
        done = begin + len(window)
    assert log_prob(task.model, tokens, 20) == pytest.approx(total, abs=1e-3)


def test_the_command_line(made: tuple[Path, nn.Module], shots: Path, capsys: pytest.CaptureFixture) -> None:
    folder = str(made[0])
    main(["run", folder, "the keeper", "--max-new-tokens", "3", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["prompt"] == "the keeper"
    assert found["log_prob"] == pytest.approx(sum(each["log_prob"] for each in found["tokens"]))
    options = ["--choices", "up", "dawn", "--form", FORM, "--shots", str(shots)]
    main(["run", folder, "the lamp", "a step", *options])
    assert set(capsys.readouterr().out.split()) <= {"up", "dawn"}
    main(["eval", folder, "--data", str(shots), *options, "--json"])
    accuracy = json.loads(capsys.readouterr().out)["accuracy"]
    assert accuracy["always up"] == 0.5
    main(["eval", folder, "--data", str(shots), "--json"])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert ways["this model"]["bits_per_byte"] > 0
    assert set(ways) == {"gzip", "bz2", "this model"}


def test_several_draws_come_with_the_likeliest_first(
    made: tuple[Path, nn.Module], capsys: pytest.CaptureFixture
) -> None:
    texts, generation = ["the keeper", "climbed up"], Decoding("sample", max_new_tokens=4, n_best=3)
    task = foveate.load(made[0])
    found = task.answer(texts, CompleteOptions(generation))
    for text, one in zip(texts, found, strict=True):
        drawn = [one, *one.others]
        assert len(drawn) == 3
        assert [each.log_prob for each in drawn] == sorted((each.log_prob for each in drawn), reverse=True)
        assert len({each.text for each in drawn}) > 1
        assert one.line.split("\t") == [text + each.text for each in drawn]
        tokens = task.tokenizer.encode([text])[0]
        for each in drawn:
            whole = torch.tensor([[*tokens, *(task.tokenizer.number(name.lstrip("·")) for name in each.tokens)]])
            with torch.no_grad():
                scores = made[1](whole).logits.log_softmax(-1)[0, len(tokens) - 1 : -1]
            expected = scores.gather(1, whole[0, len(tokens) :, None]).sum()
            assert each.log_prob == pytest.approx(float(expected), abs=1e-3)
    main(["run", str(made[0]), "the keeper", "--n-best", "3", "--temperature", "1", "--max-new-tokens", "4", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["log_prob"] >= told["others"][0]["log_prob"] >= told["others"][1]["log_prob"]
    assert {*told["others"][1]} == {"text", "ended", "log_prob", "tokens"}
    parts: list[str] = []
    task.stream(texts[:1], CompleteOptions(replace(generation, n_best=2)), parts.append)
    assert parts[0].count("the keeper") == 2


def test_an_exported_folder_is_one_of_transformers(made: tuple[Path, nn.Module], tmp_path: Path) -> None:
    main(["export", str(made[0]), "--out", str(tmp_path / "out")])
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = words("the keeper lit")["input_ids"]
    assert ids == foveate.load(made[0]).tokenizer.encode(["the keeper lit"])[0]
    with torch.no_grad():
        assert torch.equal(again(torch.tensor([ids])).logits, made[1](torch.tensor([ids])).logits)


def test_a_trained_gpt_is_exported_with_its_start_token(tmp_path: Path) -> None:
    tokenizer = train_bpe(["the keeper lit the lamp, the keeper climbed the stairs"] * 3, 40)
    sizes = {"width": 12, "heads": 3, "feedforward": 14, "layers": 2, "max_length": 29}
    model = foveate.create("gpt-tiny", vocabulary=len(tokenizer), **sizes).eval()
    forms = Processor(ReadBeginning(tokenizer=tokenizer), Continuation(tokenizer=tokenizer))
    author = LanguageModel(TASK, TASK.recipe(model="gpt-tiny"), model, forms, {"family": "gpt"})
    as_completer(author).save(tmp_path)
    words = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    text = "the lamp lit"
    expected = author.reads.tensors([author.reads.prepare(author.reads.open(text))])[0]["tokens"]
    ids = words(text)["input_ids"]
    assert [ids] == expected.tolist()
    assert words.decode(ids, skip_special_tokens=True) == text
    assert words.eos_token_id == 2
    with torch.no_grad():
        torch.testing.assert_close(theirs(expected).logits, model(expected).logits, atol=2e-5, rtol=0)
    again = foveate.load(tmp_path).run(text, CompleteOptions(Decoding("greedy", max_new_tokens=5)))
    assert again.line.startswith(text)
    with pytest.raises(UserError, match="has no class for the models of"):
        as_completer(model)


def test_old_tokenizer_files_give_the_ids_of_transformers(tmp_path: Path) -> None:
    words = ["low", "er", "lo", "w", "Ġlow", "Ġ", "l", "o", "e", "r", "n", "<|endoftext|>"]
    (tmp_path / "vocab.json").write_text(json.dumps({word: place for place, word in enumerate(words)}), "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nl o\nlo w\ne r\nĠ low\n", "utf-8")
    ours = PublicTokenizer.load(tmp_path)
    text = "lower low<|endoftext|>"
    assert ours.encode([text]) == [[0, 1, 4, 11]]
    assert ours.decode([[0, 1, 4, 11]]) == ["lower low"]
    assert ours.pieces([0, 1, 4, 11]) == ["low", "·er", "low", "<|endoftext|>"]
    assert ours.encode_inside(["low"]) == [[0]]


class Terminal(io.StringIO):
    """Lines that are typed."""

    @property
    def buffer(self) -> io.BytesIO:
        return io.BytesIO(self.getvalue().encode())

    def isatty(self) -> bool:
        return True


def test_a_chat_in_the_terminal_remembers(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (copied / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    asked: list[list[Message]] = []

    def encode(self: ChatForm, tokenizer: PublicTokenizer, messages: list[Message]) -> list[int]:
        asked.append(list(messages))
        return [1, 2, 3]

    monkeypatch.setattr(ChatForm, "encode", encode)
    monkeypatch.setattr("sys.stdin", Terminal("the lamp\nof stairs\n"))
    main(["run", str(copied), "--chat", "--system", "climbed", "--max-new-tokens", "2"])
    first, second = capsys.readouterr().out.splitlines()
    start = [Message("system", "climbed"), Message("user", "the lamp")]
    assert asked == [start, [*start, Message("assistant", first), Message("user", "of stairs")]]
    assert first == second


def test_the_page_of_a_chat_has_the_users_words_as_its_title(copied: Path) -> None:
    (copied / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    viewer = CompleterViewer(foveate.load(copied))
    form = chat_template(foveate.load(copied).tokenizer)
    first = form.turn("the lamp")
    assert viewer.look(first, 1000).title == "the lamp"
    assert viewer.look(form.turn(f"{first}of stairs<|im_end|>\nclimbed"), 1000).title == "climbed"
    assert viewer.look("of stairs", 1000).title == "of stairs"


def test_a_chat_is_that_of_its_template() -> None:
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyzASYHFLM,.Ġ<|_>Ċ")}
    names = ["<|im_start|>", "<|im_end|>"]
    library = byte_level({**letters, names[0]: 41, names[1]: 42}, [], special=names)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=library, chat_template=CHATML)
    ours = PublicTokenizer(library, {"chat_template": CHATML})
    messages = [{"role": "user", "content": "hi there"}]
    expected = theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert chat_template(ours).encode(ours, [Message("user", "hi there")]) == expected
    # what a user writes is text, and ends no message
    assert chat_template(ours).encode(ours, [Message("user", "<|im_end|>")]).count(42) == 2


MISTAKES: list[tuple[str, Callable[[Path], object], str]] = [
    (
        "unknown tensor",
        lambda folder: change(folder, add="model.other.weight"),
        "unknown tensor 'model.other.w",
    ),
    ("missing tensor", lambda folder: change(folder, drop="model.norm.weight"), "lacks the tensor 'model.norm.weight'"),
    (
        "shape",
        lambda folder: change(folder, cut="model.norm.weight"),
        r"'model.norm.weight' is \(47,\), but \(48,\) by its config.json",
    ),
    (
        "pickle",
        lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
        "only as pytorch",
    ),
    ("no weights", lambda folder: (folder / "model.safetensors").unlink(), "has no model.safetensors"),
    (
        "architecture",
        lambda folder: configure(folder, architectures=["LlamaForQuestionAnswering"]),
        "is a LlamaFor",
    ),
    (
        "type",
        lambda folder: configure(folder, model_type="mumba"),
        "transformers .* cannot open .* model type `mumba`",
    ),
    ("type of types", lambda folder: configure(folder, model_type=["gpt2"]), r"model_type is \('gpt2',\), but must be"),
    ("number of a class", lambda folder: configure(folder, architectures=7), "architectures is 7, but must be"),
    (
        "lists of ends",
        lambda folder: configure(folder, eos_token_id=[[2]]),
        r"eos_token_id is \(\(2,\),\), but must be",
    ),
    (
        "activation",
        lambda folder: configure(folder, hidden_act="xielu"),
        "hidden_act 'xielu'; foveate's models",
    ),
    (
        "scaled positions",
        lambda folder: configure(folder, rope_parameters={"rope_type": "yarn"}),
        "rotary positions of type 'yarn' cannot be scaled by a factor of 0 ",
    ),
    (
        "type of a number",
        lambda folder: configure(folder, hidden_size="48"),
        "hidden_size '48', which cannot be",
    ),
    ("large tokenizer", lambda folder: enlarge(folder), r"has a token 53, but the model embeddings for 53 only"),
    ("adapter", lambda folder: adapter(folder), "adapter_config.json does not name its base model"),
]


def change(folder: Path, add: str = "", drop: str = "", cut: str = "") -> None:
    state = load_file(folder / "model.safetensors")
    state |= {add: torch.zeros(2)} if add else {}
    state |= {cut: state[cut][1:].clone()} if cut else {}
    save_file({name: value for name, value in state.items() if name != drop}, folder / "model.safetensors")


def configure(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def enlarge(folder: Path) -> None:
    tokenizer = word_tokenizer()
    tokenizer.add_tokens(["more"])
    tokenizer.save(str(folder / "tokenizer.json"))


def adapter(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "adapter_config.json").write_text("{}")


@pytest.mark.parametrize(("damage", "message"), [pytest.param(*rest, id=name) for name, *rest in MISTAKES])
def test_folders_that_cannot_be_used(copied: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(copied)
    with pytest.raises(UserError, match=message) as caught:
        foveate.load(copied)
    assert "\n" not in str(caught.value)


def test_a_missing_shard(tmp_path: Path) -> None:
    folder, _ = folder_of("gpt2", tmp_path / "shards", max_shard_size="20KB")
    gone = sorted(folder.glob("model-*.safetensors"))[1]
    gone.unlink()
    with pytest.raises(UserError, match=rf"lacks {gone.name} of the \d+ files that its model.safetensors.index.json n"):
        foveate.load(folder)


def test_a_pickle_comes_with_the_command_that_converts_it(copied: Path) -> None:
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(UserError, match="which may run code when it is opened") as told:
        foveate.load(copied)
    opened = f"transformers.LlamaForCausalLM.from_pretrained('{copied}').save_pretrained('{copied}')"
    assert str(told.value).endswith(f'save the model again with python -c "import transformers; {opened}"')
    configure(copied, architectures=None)
    with pytest.raises(UserError, match=r"transformers\.AutoModel\.from_pretrained"):
        foveate.load(copied)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("the " * 38, {}, "takes 38 positions, but the model learned only 37"),
        ("", {}, "an empty text has no next token, and this model has no start token"),
        ("the", {"chat": True}, "it has no chat template; leave --chat out"),
        ("the", {"prompting": Prompting(choices=("a", "a"))}, "takes two or more different outputs"),
        ("the", {"prompting": Prompting(form="{input}")}, "must have {input} once, and end with {output}"),
        ("the", {"prompting": Prompting(calibrate="batch")}, "--calibrate is about the scores of --choices"),
        ("the", {"system": "a"}, "--system is a part of a chat"),
        ("the", {"n_best": 2}, "n_best counts draws: give a temperature above 0"),
        ("the", {"n_best": 0}, "n_best is 0, but must be at least 1"),
        ("the", {"method": "beam"}, "leave --method beam out"),
        ("the", {"stop": ("",)}, "a stop text is empty"),
    ],
)
def test_mistakes_of_users(copied: Path, text: str, options: dict, message: str) -> None:
    configure(copied, bos_token_id=None)
    (copied / "generation_config.json").unlink()
    with pytest.raises(UserError, match=message):
        foveate.load(copied).run(text, **options)


def test_a_choice_that_merges_with_the_prompt(tmp_path: Path) -> None:
    words = ["a", "b", "ab", ":", "Ġ", "Ċ"]
    library = byte_level({word: number for number, word in enumerate(words)}, [("a", "b")])
    model = foveate.create("gpt-tiny", vocabulary=6, width=8, heads=2, feedforward=8, layers=1)
    scorer = ChoiceScorer(model, PublicTokenizer(library), Prompting(choices=("b", "a"), form="{input}a{output}"))
    with pytest.raises(UserError, match="the choice 'b' merges with the end of the prompt"):
        scorer.scores(["b"])


def test_a_text_that_was_read_as_a_choice(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as exit:
        main(["run", str(copied), "--choices", "a", "b", "the text"])
    assert exit.value.code == 2
    told = "is empty, and 'the text' was read as one of the --choices: give texts before --choices, or in --file\n"
    assert capsys.readouterr().err.endswith(told)


def test_written_answers_are_measured(
    made: tuple[Path, nn.Module], shots: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """With --shots and no --choices: by what the model writes after the prompt of each pair."""
    folder, data, output = str(made[0]), tmp_path / "pairs.tsv", tmp_path / "answers.txt"
    data.write_text("the lamp\tup\n\na step\tdown there\n" + "the keeper " * 300 + "\tup\n")
    arguments = ["eval", folder, "--data", str(data), "--shots", str(shots), "--max-new-tokens", "5"]
    main([*arguments, "--json", "--output", str(output)])
    figures = json.loads(capsys.readouterr().out)
    options = CompleteOptions(replace(likeliest(), max_new_tokens=5), prompting=Prompting(shots))
    written = [one.text.strip() for one in foveate.load(folder).answer(["the lamp", "a step"], options)]
    assert output.read_text().split("\n") == [written[0], "", written[1], "", ""]
    assert figures["pairs"] == 3
    assert figures["ways"]["always up"]["exact_match"] == pytest.approx(200 / 3)
    assert figures["ways"]["this model"] == answer_metrics([*written, ""], ["up", "down there", "up"])
    main(arguments)
    table = capsys.readouterr().out
    assert all(name in table for name in ("exact match", "F1", "BLEU", "1 have no answer, the first because"))


def test_answer_metrics() -> None:
    found = answer_metrics(["The Lamp!", "a red lamp", ""], ["lamp", "the blue lamp", "ship"])
    assert found["exact_match"] == pytest.approx(100 / 3)
    assert found["f1"] == pytest.approx(100 * (1 + 0.5 + 0) / 3)
    assert answer_metrics(["one two three four five"], ["one two three four five"])["bleu"] == pytest.approx(100)


def test_shots_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "shots.tsv"
    path.write_text("a\tb\nno tab\n")
    with pytest.raises(UserError, match=r"shots\.tsv, line 2: an example is input<TAB>output, not 'no tab'"):
        Prompting(path).prompt()
    path.write_text("\n")
    with pytest.raises(UserError, match="has no examples"):
        Prompting(path).prompt()
