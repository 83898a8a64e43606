"""Linear layers laid out for running: the same function, or one that is rounded no further than it says."""

import copy
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn

import foveate.inference.cpu
import foveate.inference.packed
from foveate import create
from foveate.attention import Biaffine
from foveate.decoding import beam
from foveate.errors import UserError
from foveate.inference.cpu import OneDNNInt8Linear, largest_code, optimize_for_cpu
from foveate.inference.packed import PackedLinear
from foveate.nn import (
    DecoderBlock,
    FeedForward,
    MultiHeadAttention,
    Residual,
    TransformerBlock,
    cpu_has_bfloat16,
)
from foveate.special_tokens import LEARNED

x86 = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available() or not torch.backends.cpu.get_cpu_capability().startswith("AVX"),
    reason="packed layers need an x86 CPU and oneDNN",
)

bfloat16 = pytest.mark.skipif(not cpu_has_bfloat16(), reason="this CPU does not multiply in bfloat16")


@pytest.fixture(scope="module")
def layer() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(257, 263)


@x86
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(7,), (5, 3), (40, 1)])
def test_packed_layers_compute_the_same(bias: bool, shape: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    layer, x = nn.Linear(257, 263, bias=bias), torch.randn(*shape, 257)
    with torch.no_grad():
        torch.testing.assert_close(PackedLinear(layer)(x), layer(x), rtol=0, atol=1e-5)
        # Rounding errs by half a step, 1/254 of the largest, on either side of 257 products.
        error = (OneDNNInt8Linear(layer)(x) - layer(x)).norm() / layer(x).norm()
        assert 1e-4 < error < 0.02


@x86
def test_eight_bits_are_exact_where_eight_bits_suffice() -> None:
    layer, most = nn.Linear(3, 2), largest_code()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[most, -31.0, 1.0], [0.0, -most, 3.0]]))
        layer.bias.copy_(torch.tensor([0.5, -2.0]))
        found = OneDNNInt8Linear(layer)(torch.tensor([[1.0, -127.0, 5.0], [0.0, 0.0, 0.0]]))
    expected = [[most + 31 * 127 + 5 + 0.5, most * 127 + 15 - 2.0], [0.5, -2.0]]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-6, atol=0)


@x86
def test_a_row_of_eight_bits_does_not_depend_on_its_neighbours(layer: nn.Linear) -> None:
    rounded, x = OneDNNInt8Linear(layer), torch.randn(5, 257)
    assert torch.equal(rounded(torch.cat([x, 1e4 * x]))[:5], rounded(x))


@x86
def test_numbers_that_are_none_stay_so(layer: nn.Linear) -> None:
    x = torch.randn(3, 257)
    x[1, 7] = torch.nan
    assert OneDNNInt8Linear(layer)(x).isnan().all(1).tolist() == [False, True, False]


@x86
@pytest.mark.parametrize(("precision", "kind"), [("float32", PackedLinear), ("int8", OneDNNInt8Linear)])
def test_a_packed_model_shares_its_weights_and_leaves_the_model_alone(precision: str, kind: type) -> None:
    sizes = {"src_vocab": 521, "tgt_vocab": 521, "width": 130, "feedforward": 521, "heads": 2}
    model = create("transformer-base", encoder_layers=1, decoder_layers=1, **sizes).eval()
    names = set(model.state_dict())
    faster = optimize_for_cpu(model, precision)
    assert type(faster.output) is type(faster.decoder[0].feedforward.inner) is kind
    assert type(faster.decoder[0].cross.query) is nn.Linear, "a small layer stays as it is"
    assert type(model.output) is nn.Linear
    assert set(model.state_dict()) == names
    assert faster.target_embedding.weight is model.target_embedding.weight


@x86
@pytest.mark.parametrize("kind", [{}, {"attention_dropout": 0.5, "norm": "post"}])
def test_a_packed_model_computes_the_same_at_once_and_in_steps(kind: dict) -> None:
    torch.manual_seed(3)
    sizes = {"src_vocab": 521, "tgt_vocab": 523, "width": 260, "feedforward": 265, "heads": 2}
    model = create("transformer-tiny", encoder_layers=2, decoder_layers=2, **sizes, **kind).eval()
    inputs = {"source": torch.randint(4, 521, (3, 7)), "source_lengths": torch.tensor([7, 4, 1])}
    target = torch.randint(4, 523, (3, 5))
    faster = optimize_for_cpu(model)
    with torch.no_grad():
        expected = model(**inputs, target=target).logits
        torch.testing.assert_close(faster(**inputs, target=target).logits, expected, rtol=1e-4, atol=1e-4)
        state = faster.start(**inputs)
        steps = [faster.step(tokens, state) for tokens in target.unbind(1)]
        torch.testing.assert_close(torch.stack(steps, 1), expected, rtol=1e-4, atol=1e-4)


@x86
def test_keys_without_a_bias_among_queries_with_one() -> None:
    """As in Whisper."""
    torch.manual_seed(3)
    attention = MultiHeadAttention(12, 2, key_bias=False).eval()
    block = TransformerBlock(attention, FeedForward(12, 7), partial(Residual, 12, "pre", 0.0)).eval()
    x = torch.randn(3, 5, 12)
    with torch.no_grad():
        torch.testing.assert_close(optimize_for_cpu(block.eval())(x), block(x), rtol=0, atol=1e-5)


@x86
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_a_packed_feed_forward_layer_bends_as_before(activation: str) -> None:
    torch.manual_seed(4)
    model = nn.Sequential(FeedForward(130, 521, activation), FeedForward(130, 7, activation)).eval()
    faster, x = optimize_for_cpu(model), torch.randn(3, 5, 130)
    assert type(faster[0].inner) is PackedLinear
    assert type(faster[1].inner) is nn.Linear, "a small layer stays as it is"
    with torch.no_grad():
        torch.testing.assert_close(faster(x), model(x), rtol=0, atol=1e-5)


TRANSLATORS = ["transformer-base", "transformer-tiny", "convolutional", "rnn", "rnn-luong", "rnn-bahdanau"]


@x86
@bfloat16
@pytest.mark.parametrize("preset", TRANSLATORS)
def test_a_model_in_bfloat16_writes_as_one_in_full_precision(preset: str) -> None:
    torch.manual_seed(5)
    model = create(preset, src_vocab=521, tgt_vocab=521).eval()
    inputs = {"source": torch.randint(4, 521, (3, 7)), "source_lengths": torch.tensor([7, 4, 1])}
    target = torch.randint(4, 521, (3, 5))
    faster = optimize_for_cpu(model, "bfloat16")
    with torch.no_grad():
        expected, found = (one(**inputs, target=target).logits for one in (model, faster))
        assert found.dtype == torch.float32
        error = (found - expected).norm() / expected.norm()
        assert 1e-4 < error < 0.03, "seven bits behind the first round by 1/256 at most, each time"
        assert [len(each) for each in beam(faster, inputs, LEARNED, 9)] == [1, 1, 1]
    assert all(part.dtype == torch.float32 for part in model.parameters())


@x86
@bfloat16
@pytest.mark.parametrize("width", [64, 256], ids=["layers too small to lay out", "layers laid out"])
@pytest.mark.parametrize("amx", [False, True])
def test_what_a_model_in_bfloat16_attends_to_in_steps(amx: bool, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in full precision, but for the past of self-attention where a CPU has AMX, or says so."""
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"amx_bf16": amx, "avx512_bf16": True, "avx2": True})
    torch.manual_seed(6)
    sizes = {"width": width, "feedforward": 2 * width, "heads": 4, "encoder_layers": 1, "decoder_layers": 1}
    model = create("transformer-tiny", src_vocab=31, tgt_vocab=31, **sizes).eval()
    faster = optimize_for_cpu(model, "bfloat16")
    inputs = {"source": torch.randint(4, 31, (2, 5)), "source_lengths": torch.tensor([5, 3])}
    states = [one.start(**inputs) for one in (model, faster)]
    with torch.no_grad():
        for tokens in torch.randint(4, 31, (3, 2)):
            expected, found = (one.step(tokens, state) for one, state in zip((model, faster), states, strict=True))
            assert (found.float() - expected).norm() / expected.norm() < 0.03
    past, source = (
        {part.dtype for memory in memories for part in (memory.keys, memory.values)}
        for memories in (states[1].past, states[1].source)
    )
    assert past == {torch.bfloat16 if amx else torch.float32}
    assert source == {torch.float32}


@x86
@pytest.mark.parametrize("precision", [pytest.param("bfloat16", marks=bfloat16), "int8"])
def test_a_score_that_is_learned_has_a_memory_of_its_own_type(precision: str) -> None:
    attention = MultiHeadAttention(256, 4, score=Biaffine(64, 64))
    cross, feedforward = MultiHeadAttention(256, 4), FeedForward(256, 512)
    block = DecoderBlock(attention, cross, feedforward, lambda: Residual(256, "post", 0.0)).eval()
    faster, x = optimize_for_cpu(nn.ModuleList([block]), precision)[0], torch.randn(2, 5, 256)
    with torch.no_grad():
        x = x.bfloat16() if precision == "bfloat16" else x
        past = faster.self.memory(x[:, :3])
        assert faster.self(x[:, 3:4], past=past).shape == (2, 1, 256)


@x86
@pytest.mark.parametrize("precision", [pytest.param("bfloat16", marks=bfloat16), "int8"])
def test_any_number_of_rows(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round numbers or not, each row is multiplied, and few programs are written for all of them."""
    has = foveate.inference.packed.cpu_has
    monkeypatch.setattr("foveate.inference.packed.cpu_has", lambda *names: names == ("amx_bf16",) or has(*names))
    linear, seen = nn.Linear(257, 263), set()
    layer = optimize_for_cpu(nn.Sequential(linear), precision)[0]
    rounded = foveate.inference.packed.pad_rows
    for module in ("cpu", "packed"):
        watched = f"foveate.inference.{module}.pad_rows"
        monkeypatch.setattr(watched, lambda rows: seen.add(len(rounded(rows))) or rounded(rows))
    x = torch.randn(700, 257)
    with torch.no_grad():
        expected = linear(x)
        for count in (0, 1, 7, 8, 9, *range(600, 701, 11)):
            found = layer(x[:count].view(1, count, 257))
            assert found.shape == (1, count, 263)
            torch.testing.assert_close(found[0].float(), expected[:count], rtol=0.03, atol=0.05)
    assert seen == {0, 1, 8, 16, 640, 704}


@x86
@pytest.mark.parametrize("preset", ["transformer-tiny", "convolutional", "rnn-luong"])
def test_a_model_in_eight_bits_writes_as_one_in_full_precision(preset: str) -> None:
    """So wide that its layers have 65,536 numbers, below which they stay as they are."""
    torch.manual_seed(5)
    sizes = {"heads": 4, "feedforward": 512} if preset.startswith("transformer") else {"embedding": 256}
    model = create(preset, src_vocab=521, tgt_vocab=521, width=256, **sizes).eval()
    inputs = {"source": torch.randint(4, 521, (3, 7)), "source_lengths": torch.tensor([7, 4, 1])}
    target = torch.randint(4, 521, (3, 5))
    faster = optimize_for_cpu(model, "int8")
    assert any(isinstance(part, OneDNNInt8Linear) for part in faster.modules())
    with torch.no_grad():
        expected, found = (one(**inputs, target=target).logits.log_softmax(-1) for one in (model, faster))
        assert found.dtype == torch.float32
        error = (found - expected).norm() / (expected - expected.mean(-1, keepdim=True)).norm()
        assert 1e-4 < error < 0.05, "rounding errs by half a step, 1/254 of the largest, on either side of each product"
        assert [len(each) for each in beam(faster, inputs, LEARNED, 9)] == [1, 1, 1]
    assert all(part.dtype == torch.float32 for part in model.parameters())


@x86
def test_where_a_cpu_has_no_bfloat16_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.inference.cpu.cpu_has_bfloat16", lambda: False)
    with pytest.raises(UserError, match="precision bfloat16 needs an x86 CPU with AVX512-BF16 or AMX"):
        optimize_for_cpu(nn.Linear(257, 263), "bfloat16")


def test_where_nothing_is_faster_the_model_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: False)
    model = nn.Sequential(nn.Linear(257, 263))
    assert optimize_for_cpu(model) is model
    with pytest.raises(UserError, match="precision int8 needs an x86 CPU"):
        optimize_for_cpu(model, "int8")


@x86
@pytest.mark.parametrize("precision", ["float32", pytest.param("bfloat16", marks=bfloat16), "int8"])
def test_a_packed_model_runs_under_autocast(precision: str) -> None:
    model = optimize_for_cpu(nn.Sequential(nn.Linear(257, 263), nn.Linear(263, 257)), precision).eval()
    x = torch.randn(5, 257)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found = model(x.to(torch.bfloat16))
    with torch.no_grad():
        torch.testing.assert_close(found.float(), model(x).float(), rtol=0, atol=0.1)


@x86
def test_eight_bits_do_not_overflow_where_products_are_added_in_sixteen() -> None:
    """oneDNN told to multiply as older processors do, whose pairs of products saturate."""
    code = """if True:
        import torch
        from foveate.inference.cpu import OneDNNInt8Linear
        torch.cpu.get_capabilities = dict
        layer, x = torch.nn.Linear(257, 263), torch.ones(5, 257)
        with torch.no_grad():
            layer.weight.fill_(1.0)
            print(float((OneDNNInt8Linear(layer)(x) - layer(x)).abs().max()))
    """
    told = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}, capture_output=True, text=True
    )
    assert float(told.stdout) < 1e-3, told.stderr


@x86
def test_a_packed_model_is_not_packed_again_but_copied() -> None:
    model = optimize_for_cpu(nn.Sequential(nn.Linear(257, 263)))
    with pytest.raises(ValueError, match="already optimized"):
        optimize_for_cpu(model, "int8")
    assert torch.equal(copy.deepcopy(model)(torch.ones(1, 257)), model(torch.ones(1, 257)))


@x86
@pytest.mark.parametrize("preset", ["transformer-tiny", "rnn-attentive"])
def test_a_packed_model_is_not_saved(preset: str) -> None:
    """Its weights would be missing."""
    with pytest.raises(ValueError, match="save the original one"):
        optimize_for_cpu(create(preset, src_vocab=2000, tgt_vocab=2000)).state_dict()


@x86
def test_eight_bits_are_made_of_full_precision() -> None:
    with pytest.raises(ValueError, match="needs weights in float32"):
        optimize_for_cpu(nn.Sequential(nn.Linear(257, 263)).bfloat16(), "int8")
