"""Masked language models of Hugging Face folders, each kind by each head: the answers of transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from folders import BERT, FOLDERS, MASKED, scramble

import foveate
from foveate.errors import UserError
from foveate.forms.span import ROW
from foveate.interop.public_folder import read_folder, write_folder
from foveate.tasks.start.weights import open_start

KINDS = [kind for kind, folder in FOLDERS.items() if "span" in folder.heads]

TEXT = "the keeper lit the lamp , counting each dawn up the stairs . the ship came in at nine"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def their_tokenizer(folder: Path, kind: str) -> Any:
    """Transformers' own reading of `tokenizer.json`, by what `tokenizer_config.json` names."""
    special = {name: value for name, value in FOLDERS[kind].special.items() if isinstance(value, str)}
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **special)


def test_words_of_blanks(kind: str, tmp_path: Path) -> None:
    """What the fill-mask pipeline gives."""
    model = FOLDERS[kind].write("words", tmp_path)
    tokenizer = their_tokenizer(tmp_path, kind)
    pipe = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=3)
    expected = pipe(f"the {tokenizer.mask_token} lit")
    (blank,) = foveate.load(tmp_path).run("the [MASK] lit", best=3).blanks
    assert blank.probabilities == pytest.approx([one["score"] for one in expected], abs=2e-5)
    assert [word.strip("·▁") for word in blank.words] == [one["token_str"].strip() for one in expected]


def test_tags_of_words(kind: str, tmp_path: Path) -> None:
    """What the token-classification pipeline gives for the first piece of each word."""
    model = FOLDERS[kind].write("tokens", tmp_path)
    pipe = transformers.pipeline(
        "token-classification",
        model=model,
        tokenizer=their_tokenizer(tmp_path, kind),
        aggregation_strategy="none",
        ignore_labels=[],
    )
    pieces, words, at = pipe("the keeper lit"), ["the", "keeper", "lit"], 0
    expected = []
    for word in words:
        found = [one["entity"] for one in pieces if at <= max(one["start"], at) and one["end"] > at]
        expected.append(found[0])
        at += len(word) + 1
    assert foveate.load(tmp_path).run("the keeper lit").tags == expected


def their_answer(model: Any, tokenizer: Any, text: str, question: str, row: int, longest: int) -> tuple[str, float]:
    """What transformers' question-answering pipeline gave, as long as there was one: of windows that overlap, the span
    with the highest product of probabilities, of whole words."""
    windows = tokenizer(
        question,
        text,
        truncation="only_second",
        max_length=row,
        stride=min(128, row // 2),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    best = ("", -1.0)
    for number, ids in enumerate(windows["input_ids"]):
        encoding = windows.encodings[number]
        types = {"token_type_ids": torch.tensor([encoding.type_ids])} if has_types(model) else {}
        with torch.no_grad():
            output = model(torch.tensor([ids]), **types)
        inside = np.array([one == 1 for one in encoding.sequence_ids])
        allowed = inside.copy()
        allowed[0] = True
        sides = []
        for logits in (output.start_logits[0].numpy(), output.end_logits[0].numpy()):
            logits = np.where(allowed, logits, -10000.0)
            shares = np.exp(logits - logits.max())
            shares /= shares.sum()
            sides.append(np.where(inside, shares, 0.0))
        products = np.tril(np.triu(sides[0][:, None] * sides[1]), longest - 1)
        first, last = np.unravel_index(products.argmax(), products.shape)
        if products[first, last] > best[1]:
            start = encoding.word_to_chars(encoding.token_to_word(int(first)), 1)[0]
            end = encoding.word_to_chars(encoding.token_to_word(int(last)), 1)[1]
            best = text[start:end], float(products[first, last])
    return best


def has_types(model: Any) -> bool:
    return getattr(model.config, "type_vocab_size", 1) > 1


@pytest.mark.parametrize("text", ["the keeper lit", TEXT, " ".join([TEXT] * 3)], ids=["short", "long", "windows"])
def test_spans_of_answers(kind: str, text: str, tmp_path: Path) -> None:
    model = FOLDERS[kind].write("span", tmp_path)
    tokenizer = their_tokenizer(tmp_path, kind)
    tokenizer.backend_tokenizer.post_processor = pair_form(tokenizer)
    row = min(ROW, read_folder(tmp_path).model.config.max_length)
    expected = their_answer(model, tokenizer, text, "who lit", row, 4)
    skill = foveate.load(tmp_path)
    found = skill.run(text, query="who lit", longest=4)
    assert (found.answer, found.probability) == (expected[0], pytest.approx(expected[1], abs=1e-5))
    assert text[found.start : found.end] == found.answer
    assert found.json_values() == {
        "question": "who lit",
        "answer": found.answer,
        "probability": found.probability,
        "start": found.start,
        "end": found.end,
    }
    assert skill.picture(skill.run(f"{text}\twho lit")) is not None


def pair_form(tokenizer: Any) -> Any:
    """`<s> question </s></s> text </s>`, as tokenizers with these names have it."""
    return transformers.tokenization_utils_tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s>:0 $A:0 </s>:0 </s>:0 $B:1 </s>:1",
        special_tokens=[(name, tokenizer.convert_tokens_to_ids(name)) for name in ("<s>", "</s>")],
    )


@pytest.mark.parametrize("head", ["words", "text", "tokens", "span"])
def test_what_is_written_has_the_same_logits(kind: str, head: str, tmp_path: Path) -> None:
    theirs = FOLDERS[kind].write(head, tmp_path / "theirs")
    found = read_folder(tmp_path / "theirs")
    labels = {name: found.values[name] for name in ("id2label", "label2id") if name in found.values}
    pad = theirs.config.pad_token_id
    write_folder(tmp_path / "ours", found.family, found.model, {**labels, "pad_token_id": pad})
    again = getattr(transformers, MASKED[head]).from_pretrained(tmp_path / "ours").eval()
    tokens = torch.randint(3, 50, (2, 11))
    with torch.no_grad():
        for own, expected in zip(again(tokens).values(), theirs(tokens).values(), strict=True):
            torch.testing.assert_close(own, expected, atol=FOLDERS[kind].close, rtol=0)
    assert read_folder(tmp_path / "ours").model.config == found.model.config


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
def test_vectors_of_sentences(kind: str, pooling: str, tmp_path: Path) -> None:
    """A folder of sentence-transformers: the mean of a text's tokens, or the first."""
    model = FOLDERS[kind].write("none", tmp_path)
    names = ("Transformer", ""), ("Pooling", "1_Pooling")
    modules = [{"type": f"sentence_transformers.models.{name}", "path": path} for name, path in names]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    tokens = their_tokenizer(tmp_path, kind)("the keeper lit", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        hidden = model(tokens).last_hidden_state[0]
    expected = hidden.mean(0) if pooling == "mean_tokens" else hidden[0]
    found = foveate.load(tmp_path).run("the keeper lit")
    torch.testing.assert_close(torch.tensor(found.vector), expected, atol=2e-5, rtol=0)


DISTANCES = {
    "content to position": ("deberta", {"pos_att_type": ["c2p"], "max_relative_positions": -1}),
    "position to content": ("deberta", {"pos_att_type": ["p2c"], "position_biased_input": True}),
    "no products with positions": ("deberta-v2", {"pos_att_type": []}),
    "without buckets": ("deberta-v2", {"position_buckets": -1, "max_relative_positions": 7}),
    "projections of its own": ("deberta-v2", {"share_att_key": False, "position_biased_input": False}),
    "token types and no norm": ("deberta-v2", {"norm_rel_ebd": "none", "type_vocab_size": 2}),
}


@pytest.mark.parametrize(("kind", "changes"), DISTANCES.values(), ids=DISTANCES)
def test_ways_to_compare_distances(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    config = type(FOLDERS[kind].config).from_dict({**FOLDERS[kind].config.to_dict(), **changes})
    theirs = scramble(transformers.AutoModelForMaskedLM.from_config(config)).eval()
    theirs.save_pretrained(tmp_path)
    tokens = torch.randint(3, 50, (2, 23))
    with torch.no_grad():
        found = read_folder(tmp_path).model(tokens).logits
        torch.testing.assert_close(found, theirs(tokens).logits, atol=5e-5, rtol=0)


REFUSED = {
    "a convolution": ("deberta-v2", {"conv_kernel_size": 3}, "conv_kernel_size 3; foveate's models have 0 only"),
    "no distances": ("deberta-v2", {"relative_attention": False}, "relative_attention False"),
    "a newer head": ("deberta-v2", {"legacy": False}, "legacy False"),
    "narrow words": ("deberta", {"embedding_size": 12}, "embedding_size 12"),
    "talking heads": ("deberta", {"talking_head": True}, "talking_head True"),
    "unknown products": ("deberta", {"pos_att_type": "p2p"}, "pos_att_type 'p2p'"),
    "waves": ("distilbert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds True"),
    "other buckets": ("mpnet", {"relative_attention_num_buckets": 8}, "relative_attention_num_buckets 8"),
    "layers of no kind": ("modernbert", {"layer_types": ["full_attention"]}, "layer_types"),
    "some biases": ("modernbert", {"mlp_bias": True}, "mlp_bias True"),
    "a discriminator": ("electra", {"architectures": ["ElectraForPreTraining"]}, "is a ElectraForPreTraining"),
}


@pytest.mark.parametrize(("kind", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(kind: str, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    FOLDERS[kind].write("none", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(UserError, match=message):
        read_folder(tmp_path)


def test_a_discriminator_is_a_body_to_begin_from(tmp_path: Path) -> None:
    """ELECTRA's tells which words were exchanged, which nothing here asks."""
    theirs = scramble(transformers.ElectraForPreTraining(FOLDERS["electra"].config)).eval()
    theirs.save_pretrained(tmp_path)
    FOLDERS["electra"].write_tokenizer(tmp_path)
    start = open_start(tmp_path)
    words = theirs.electra.embeddings.word_embeddings.weight
    torch.testing.assert_close(start.body["embedding.weight"], words.detach())


def test_an_older_file_of_modernbert(tmp_path: Path) -> None:
    """It names the bases of its rotations, and every which layer sees all."""
    theirs = FOLDERS["modernbert"].write("words", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    older = {name: value for name, value in config.items() if name not in ("layer_types", "rope_parameters")}
    older |= {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3}
    (tmp_path / "config.json").write_text(json.dumps(older))
    found = read_folder(tmp_path).model.config
    assert (found.window, found.window_layers, BERT["vocab_size"]) == (3, (False, True, True, False), found.vocabulary)
    assert (found.rotary_base, found.window_rotary_base) == (160000.0, 10000.0)
    assert theirs.config.layer_types.count("full_attention") == 2
