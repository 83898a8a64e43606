"""Language models beside transformers: generation and a step of training, in pairs with the same weights.

    python benchmarks/language_models.py [--tokens 24] [--rounds 3] [--threads 1]

A GPT-2 of 124 million parameters writes after a prompt of 16 tokens, one text and eight; a GPT-2 of four layers learns
from 512 tokens. Rounds alternate, and the fastest counts. Times are CPU times of one thread, which other programs
hardly affect; those of more threads are wall-clock times, for a quiet machine. Both must write the same tokens and have
the same loss. A text that is written alone needs every weight once for each token: what is read in a second is a share
of what as many threads read of a large tensor.
"""

import argparse
import copy
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from foveate.decoding import Decoding, generate, generation
from foveate.inference.columns import store_by_columns
from foveate.inference.cpu import OneDNNInt8Linear
from foveate.inference.half_precision import HalfLinear, in_half_precision
from foveate.inference.int8 import Int8Linear, in_int8
from foveate.inference.lean import lean_copy
from foveate.inference.packed import PackedLinear
from foveate.interop.public_folder import read_folder

PROMPT, LENGTH = 16, 512


def both(layers: int) -> tuple[nn.Module, GPT2LMHeadModel]:
    """The same random weights in foveate and in transformers."""
    torch.manual_seed(0)
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    theirs = GPT2LMHeadModel(GPT2Config(n_layer=layers, bos_token_id=None, eos_token_id=None, **dropout)).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return read_folder(Path(folder)).model.eval(), theirs


def pairs(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The fastest of the alternating rounds of each, in seconds."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):  # the first warms up
        for function, own in zip((first, second), times, strict=True):
            begin = clock()
            function()
            own.append(clock() - begin)
    return min(times[0][1:]), min(times[1][1:])


def writing(
    batch: int, tokens: int, rounds: int, dtype: torch.dtype | None = None, other: str | None = None
) -> tuple[float, float]:
    """Tokens a second of foveate, with linear layers in the precision that is named, and of transformers or of the
    `other`: "blocks", the same without lean steps, or a compute type of CTranslate2."""
    own, theirs = both(12)
    if dtype is None:
        own = lean_copy(own)
        if batch == 1:
            store_by_columns(own)
    elif dtype is torch.int8:
        own = in_int8(own)
    else:
        own = in_half_precision(own, dtype)
    prompts = torch.randint(1, 50_000, (batch, PROMPT), generator=torch.Generator().manual_seed(1))
    settings = Decoding("greedy", max_new_tokens=tokens)

    # Steps are measured; benchmarks/drafts.py has guesses.
    @patch.object(generation, "_takes_drafts", lambda *_: False)
    def ours(model: nn.Module = own) -> list[list[int]]:
        return [one.tokens for one in generate(model, prompts.tolist(), settings, ())]  # type: ignore[arg-type]

    def peer() -> list[list[int]]:
        mask = torch.ones_like(prompts)
        found = theirs.generate(prompts, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0)
        return found[:, PROMPT:].tolist()

    assert dtype or ours() == peer(), "the same weights write other tokens"
    if other == "blocks":
        peer = partial(ours, without_lean_steps(own))
    elif other is not None:
        peer = ctranslate2_writer(theirs, prompts, tokens, other)
    fast, slow = pairs(ours, peer, rounds)
    return batch * tokens / fast, batch * tokens / slow


def without_lean_steps(model: nn.Module) -> nn.Module:
    """A copy with the same packed weights whose blocks step as they are written."""
    found = copy.deepcopy(model)
    for block in found.modules():
        vars(block).pop("forward", None)
    return found


def ctranslate2_writer(model: GPT2LMHeadModel, prompts: Tensor, tokens: int, compute: str) -> Callable[[], object]:
    """CTranslate2 with the same weights; its tokens are named by their numbers."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter
    from ctranslate2.specs import TransformerDecoderModelSpec

    class Converter(TransformersConverter):
        """The library's own converter without a tokenizer, which random weights lack."""

        def _load(self) -> TransformerDecoderModelSpec:
            from ctranslate2.converters.transformers import _MODEL_LOADERS

            spec = _MODEL_LOADERS["GPT2Config"].get_model_spec(model)
            spec.register_vocabulary([str(number) for number in range(model.config.vocab_size)])
            spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = "0"
            return spec

    with tempfile.TemporaryDirectory() as folder:
        Converter("gpt2").convert(f"{folder}/model", quantization=compute, force=True)
        writer = ctranslate2.Generator(f"{folder}/model", compute_type=compute, intra_threads=torch.get_num_threads())
    rows = [[str(number) for number in row] for row in prompts.tolist()]
    settings = {"max_length": tokens, "min_length": tokens, "sampling_topk": 1, "include_prompt_in_result": False}
    return lambda: writer.generate_batch(rows, **settings)


def bandwidth(size: int = 2**28, repeats: int = 5) -> float:
    """Bytes a second that one thread reads: the fastest of several products of a matrix and a vector."""
    matrix, vector = torch.ones(size // 4 // 4096, 4096), torch.ones(4096)
    best = 0.0
    for _ in range(repeats):
        begin = time.process_time()
        matrix @ vector
        best = max(best, 4 * matrix.numel() / (time.process_time() - begin))
    return best


def weights_read(model: nn.Module) -> int:
    """The weights of linear layers, the output layer's too, which every token needs."""
    return sum(layer.weight.numel() for layer in model.modules() if isinstance(layer, nn.Linear))


def learning(rounds: int) -> tuple[float, float]:
    """Tokens a second of a step of training: forward, backward, AdamW."""
    own, theirs = both(4)
    text = torch.randint(1, 50_000, (1, LENGTH + 1), generator=torch.Generator().manual_seed(2))
    inputs, labels = text[:, :-1], text[0, 1:]

    def step(model: nn.Module, logits: Callable[[Tensor], Tensor]) -> Callable[[], float]:
        optimizer = torch.optim.AdamW(model.train().parameters(), 1e-4, fused=True)

        def once() -> float:
            loss = F.cross_entropy(logits(inputs)[0], labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()

        return once

    ours = step(own, lambda tokens: own(tokens).logits)
    peer = step(theirs, lambda tokens: theirs(tokens, use_cache=False).logits)
    assert abs(ours() - peer()) < 1e-4, "the same weights have another loss"
    fast, slow = pairs(ours, peer, rounds)
    return LENGTH / fast, LENGTH / slow


def products(rounds: int, layers: int = 20, width: int = 768, hidden: int = 3072) -> dict[str, float]:
    """Microseconds of the product of one row with a weight of GPT-2's feed-forward layer, by the form of the weight.
    Several weights take turns, so that none stays in the processor's cache."""
    linears = [nn.Linear(width, hidden, bias=False) for _ in range(layers)]
    row, half = torch.randn(1, width), torch.randn(1, width, dtype=torch.bfloat16)

    def by_columns(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
        return partial(F.linear, weight=linear.weight.T.contiguous().T)

    def in_four_bits(linear: nn.Linear, size: int, kind: torch.dtype) -> Callable[[Tensor], Tensor]:
        groups = linear.weight.unflatten(1, (-1, size))
        least, step = groups.amin(2), (groups.amax(2) - groups.amin(2)) / 15
        codes = ((groups - least[..., None]) / step[..., None]).round().to(torch.int32).flatten(1)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
        scales = torch.stack([step, least + 8 * step], -1).transpose(0, 1).contiguous().to(kind)
        return lambda x: torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, size, scales)

    def in_eight_bits(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
        scales = linear.weight.abs().amax(1) / 127
        codes = (linear.weight / scales[:, None]).round().to(torch.int8)
        return lambda x: torch.ops.aten._weight_int8pack_mm(x, codes, scales.bfloat16())

    forms: dict[str, tuple[Callable[[nn.Linear], Callable[[Tensor], Tensor]], Tensor]] = {
        "float32, rows": (lambda linear: linear, row),
        "float32, columns": (by_columns, row),
        "float32, oneDNN": (PackedLinear, row),
        "float16, oneDNN": (lambda linear: HalfLinear(linear, torch.float16), row),
        "8 bits, FBGEMM (int8 of language models)": (Int8Linear, row),
        "8 bits, oneDNN (int8 of translators)": (OneDNNInt8Linear, row),
        "8 bits and bfloat16, _weight_int8pack_mm": (in_eight_bits, half),
    }
    for size, x in ((32, half), (128, half), (256, half), (128, row), (128, row.half())):
        name = f"4 bits in groups of {size} and {str(x.dtype).removeprefix('torch.')}, _weight_int4pack_mm_for_cpu"
        forms[name] = partial(in_four_bits, size=size, kind=x.dtype), x
    found = {}
    with torch.inference_mode():
        for name, (make, x) in forms.items():
            made = [make(linear) for linear in linears]
            once = lambda made=made, x=x: [product(x) for product in made]  # noqa: E731
            found[name] = 1e6 * min(pairs(once, once, rounds)) / layers
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="only the rows whose name has this text")
    parser.add_argument("--products", action="store_true", help="the product of one row alone, by forms of weights")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.products:
        for name, microseconds in products(given.rounds).items():
            print(f"| {name} | {microseconds:,.0f} |", flush=True)
        return
    most, weights = bandwidth(), weights_read(both(12)[0])
    print(f"threads: {given.threads}, which read {most / 1e9:.1f} GB/s\n")
    print("| | foveate, tokens/s | the other | ratio | GB/s | share |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    once = {"float32": 4, "float16": 2, "int8": 1}  # bytes of a number where each token reads all weights
    for name, number, measure in (
        ("GPT-2 124M writes, one text", "float32", lambda: writing(1, given.tokens, given.rounds)),
        ("the same, beside blocks", "float32", lambda: writing(1, given.tokens, given.rounds, None, "blocks")),
        ("GPT-2 124M writes, 8 texts", "", lambda: writing(8, given.tokens, given.rounds)),
        ("the same, one text, float16", "float16", lambda: writing(1, given.tokens, given.rounds, torch.float16)),
        ("the same, 8 texts, bfloat16", "", lambda: writing(8, given.tokens, given.rounds, torch.bfloat16)),
        ("the same, one text, int8", "int8", lambda: writing(1, given.tokens, given.rounds, torch.int8)),
        ("the same, beside blocks", "int8", lambda: writing(1, given.tokens, given.rounds, torch.int8, "blocks")),
        ("the same, 8 texts, int8", "", lambda: writing(8, given.tokens, given.rounds, torch.int8)),
        (
            "one text, int8, beside CTranslate2",
            "int8",
            lambda: writing(1, given.tokens, given.rounds, torch.int8, "int8"),
        ),
        (
            "one text, single precision, beside CTranslate2",
            "float32",
            lambda: writing(1, given.tokens, given.rounds, None, "float32"),
        ),
        ("a step of training, 4 layers, 512 tokens", "", lambda: learning(given.rounds)),
    ):
        if given.only not in name:
            continue
        own, peer = measure()
        read = own * weights * once.get(number, 0)
        share = f"{read / 1e9:.1f} | {read / most:.0%}" if read else " | "
        print(f"| {name} | {own:,.1f} | {peer:,.1f} | {own / peer:.2f} | {share} |", flush=True)


if __name__ == "__main__":
    main()
