"""What the files of public tokenizers and embedders say beside the vocabulary: transformers' tokens, or an error."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

sys.path.insert(0, str(Path(__file__).parent.parent / "tasks"))

from tiny_bert import write_folder

import foveate
from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.data.tokens.public_settings import NORMALIZER, REFUSED
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError

WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "mochte", "möchte", "M", "##öchte", "ich", "今", "天", "今天"),
    *("##天", "Ich", "möchten", "##n", "mo", "##chte"),
]

TEXT = "Ich möchte 今天"

BERT_SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cased": {"do_lower_case": False},
    "accents kept": {"do_lower_case": True, "strip_accents": False},
    "accents stripped": {"do_lower_case": False, "strip_accents": True},
    "by the case": {"do_lower_case": False, "strip_accents": None},
    "Chinese together": {"do_lower_case": True, "tokenize_chinese_chars": False},
}


def configured(folder: Path, kind: str, **values: Any) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **values}))
    return folder


@pytest.mark.parametrize("form", ["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize("name", BERT_SETTINGS)
def test_case_accents_and_chinese_characters_of_a_bert(name: str, form: str, tmp_path: Path) -> None:
    """Those of its config, whatever `tokenizer.json` says."""
    values = BERT_SETTINGS[name]
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    theirs = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), **values)
    if form == "tokenizer.json":
        transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    configured(tmp_path, "BertTokenizer", **values)
    expected = theirs(TEXT)["input_ids"]
    assert [*BertTokenizer.load(tmp_path).spans(TEXT)[0]] == expected
    if form == "tokenizer.json":
        assert PublicTokenizer.load(tmp_path).encode([TEXT])[0] == expected


def gpt2(folder: Path, form: str) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    table = {token: number for number, token in enumerate([*alphabet, "Ġs", "<|endoftext|>", "<s>", "</s>"])}
    made = Tokenizer(models.BPE(vocab=table, merges=[("Ġ", "s")]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>", "<s>", "</s>"])
    if form == "tokenizer.json":
        made.save(str(folder / "tokenizer.json"))
    else:
        (folder / "vocab.json").write_text(json.dumps(table))
        (folder / "merges.txt").write_text("#version: 0.2\nĠ s\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("form", ["tokenizer.json", "vocab.json"])
@pytest.mark.parametrize("space", [None, True, False])
@pytest.mark.parametrize("ends", [(), ("bos",), ("eos",), ("bos", "eos")])
def test_the_space_and_the_tokens_around_a_text(ends: tuple, space: bool | None, form: str, tmp_path: Path) -> None:
    switches = {f"add_{one}_token": one in ends for one in ("bos", "eos")} if ends else {}
    named = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_prefix_space": space, **switches}
    configured(gpt2(tmp_path, form), "GPT2Tokenizer", **named)
    tokenizer = PublicTokenizer.load(tmp_path)
    signs = {"bos": "<s>", "eos": "</s>"}
    before, behind = ([signs[one]] if one in ends else [] for one in signs)
    pieces = [*before, *(("Ġs", "o") if space else ("s", "o")), *behind]
    assert tokenizer.encode(["so"]) == [[tokenizer.number(piece) for piece in pieces]]
    assert [place for place in tokenizer.spans("so")[1] if place != (0, 0)] == [(0, 1), (1, 2)]


def test_the_prefix_of_a_llama(tmp_path: Path) -> None:
    table = {piece: number for number, piece in enumerate(["<unk>", "▁", "a", "▁a"])}
    made = Tokenizer(models.BPE(vocab=table, merges=[("▁", "a")], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    made.decoder = decoders.Metaspace()
    made.save(str(tmp_path / "tokenizer.json"))
    for wanted, ids in ((None, [3]), (True, [3]), (False, [2])):
        configured(tmp_path, "LlamaTokenizer", add_prefix_space=wanted)
        assert PublicTokenizer.load(tmp_path).encode(["a"]) == [ids]


@pytest.mark.parametrize("named", ["added_tokens.json", "added_tokens_decoder"])
def test_added_tokens_of_older_folders(named: str, tmp_path: Path) -> None:
    gpt2(tmp_path, "vocab.json")
    number = len(PublicTokenizer.load(tmp_path))
    decoder = {}
    if named == "added_tokens.json":
        (tmp_path / named).write_text(json.dumps({"<tool>": number}))
    else:
        decoder = {named: {str(number): {"content": "<tool>", "special": True, "normalized": False}}}
    configured(tmp_path, "GPT2Tokenizer", **decoder)
    tokenizer = PublicTokenizer.load(tmp_path)
    assert (tokenizer.number("<tool>"), tokenizer.largest) == (number, number)
    assert tokenizer.encode(["s<tool>"])[0][-1] == number
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<other>": number + 7}))
    with pytest.raises(
        UserError, match=rf"adds the token '<other>' as number {number + 7}, but its vocabulary gives it"
    ):
        PublicTokenizer.load(tmp_path)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<other>": "many"}))
    with pytest.raises(UserError, match="has added tokens that are no table of tokens and numbers"):
        PublicTokenizer.load(tmp_path)


def test_what_is_not_obeyed_is_refused_by_name(tmp_path: Path) -> None:
    gpt2(tmp_path, "tokenizer.json")
    for name, values in REFUSED.items():
        configured(tmp_path, "GPT2Tokenizer", **{name: values[0] if values else ["x"]})
        with pytest.raises(UserError, match=f"tokenizer_config.json has {name} .*, which foveate does not obey"):
            PublicTokenizer.load(tmp_path)
    for name in (*NORMALIZER, "add_prefix_space", "add_bos_token"):
        configured(tmp_path, "GPT2Tokenizer", **{name: "yes"})
        with pytest.raises(UserError, match=f"has {name} 'yes', but it must be true or false"):
            PublicTokenizer.load(tmp_path)
    configured(tmp_path, "GPT2Tokenizer", add_bos_token=True, bos_token="<begin>")
    with pytest.raises(UserError, match="has add_bos_token true, but the tokenizer has no bos_token"):
        PublicTokenizer.load(tmp_path)
    made = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(False)])
    made.post_processor = processors.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    configured(tmp_path, "GPT2Tokenizer", add_prefix_space=True)
    with pytest.raises(UserError, match="has add_prefix_space True, but its tokenizer does otherwise"):
        PublicTokenizer.load(tmp_path)
    configured(tmp_path, "GPT2Tokenizer", add_prefix_space=False)
    assert PublicTokenizer.load(tmp_path).encode(["so"])


def vector(folder: Path, text: str) -> torch.Tensor:
    """The normalized mean of transformers' vectors."""
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    with torch.no_grad():
        return F.normalize(model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0), dim=0)


def test_the_prompt_and_the_length_of_an_embedder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    configured(folder, "BertTokenizer", do_lower_case=False)
    settings, inner = folder / "config_sentence_transformers.json", folder / "sentence_bert_config.json"

    def cosine(text: str, read: str) -> float:
        return float(torch.tensor(foveate.load(folder).run(text).vector) @ vector(folder, read))

    assert cosine("bad dogs", "bad dogs") == pytest.approx(1, abs=1e-5)
    settings.write_text(json.dumps({"prompts": {"query": "great story "}, "default_prompt_name": "query"}))
    assert cosine("bad dogs", "great story bad dogs") == pytest.approx(1, abs=1e-5)
    embedder: Any = foveate.load(folder)
    assert float(embedder.embed(["bad dogs"])[0] @ vector(folder, "great story bad dogs")) == pytest.approx(1, abs=1e-5)
    inner.write_text(json.dumps({"max_seq_length": 6, "do_lower_case": True}))
    assert cosine("BAD Dogs", "great story bad dogs") == pytest.approx(1, abs=1e-5)
    short = json.loads(inner.read_text())
    assert [foveate.load(folder).run(text).long for text in ("bad dogs", "bad dogs bad dogs")] == [False, True]
    inner.write_text(json.dumps(short | {"max_seq_length": "long"}))
    with pytest.raises(UserError, match="has max_seq_length 'long', which cannot be"):
        foveate.load(folder)
    inner.unlink()
    for values, wrong in (
        ({"default_prompt_name": "none"}, "has default_prompt_name 'none', but no such prompt"),
        ({"truncate_dim": 8}, "has truncate_dim 8, which foveate does not obey"),
    ):
        settings.write_text(json.dumps(values))
        with pytest.raises(UserError, match=wrong):
            foveate.load(folder)
