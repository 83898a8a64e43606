"""All that is claimed of accelerators, measured by one command in ten minutes, or refuted.

    python benchmarks/gpu.py --out gpu.json
    python benchmarks/gpu.py --device cpu --tiny

Each part runs in a process of its own with a time limit, so that one that fails costs no other its figures: its row
says why. The rows are printed as a table and written as JSON. Weights are random. With `--tiny` all parts run in small,
which tells nothing but that they run. Until this has run on an accelerator, all that is known of foveate on one is what
the tests find on a pretended device.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from foveate.accelerator import accelerator_names, is_accelerator
from foveate.attention import LinearDistance, ScaledDot, Soft, causal, window
from foveate.attention.call import Call
from foveate.attention.kernels import flex as flex_kernel
from foveate.attention.kernels import sdpa as sdpa_kernel
from foveate.contracts import Batch, label_batch
from foveate.decoding import beam, greedy
from foveate.special_tokens import SpecialTokens
from foveate.training import CrossEntropy, Training
from foveate.training.hardware import choose_device
from foveate.training.update import Updater

ROOT = Path(__file__).parents[1]

LIMIT = 60
"""Seconds that a part may take."""

SPECIAL = SpecialTokens({"pad": 0, "start": 1, "end": 2})

VOCABULARY = 50_257

Row = dict[str, Any]


def main() -> None:
    asked = arguments()
    if asked.part:
        print(json.dumps(PARTS[asked.part](choose_device(asked.device), asked.tiny)))
        return
    device = choose_device(asked.device)
    about = {"torch": torch.__version__, "device": str(device), "names": accelerator_names(), "tiny": asked.tiny}
    found: list[Row] = []
    end = time.perf_counter() + 60 * asked.minutes
    for name in asked.only or PARTS:
        found.append({"part": name, **measured(name, asked, end - time.perf_counter())})
        print(line(found[-1]), flush=True)
        if asked.out:  # after each part, so that a run that is stopped has told what it knows
            asked.out.write_text(json.dumps({"about": about, "rows": found}, indent=1) + "\n")


def measured(part: str, asked: argparse.Namespace, left: float) -> Row:
    """The figures of a part, or its "error"; with the "seconds" that it took, at most those that are `left`."""
    if left <= 0:
        return {"error": f"not begun, as {asked.minutes:g} minutes were over", "seconds": 0.0}
    limit = min(left, asked.limit * (4 if part == "tests" else 2 if "compiled" in part else 1))
    begin = time.perf_counter()
    command = [sys.executable, __file__, "--part", part, "--device", asked.device, *["--tiny"] * asked.tiny]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        lines = (ended.stdout if not ended.returncode else ended.stderr).strip().splitlines() or ["it said nothing"]
        figures = {"error": lines[-1]} if ended.returncode else json.loads(lines[-1])
    except subprocess.TimeoutExpired:
        figures = {"error": f"took more than {limit:g} seconds"}
    return {**figures, "seconds": round(time.perf_counter() - begin, 1)}


def line(row: Row) -> str:
    """A row of the table."""
    figures = {name: value for name, value in row.items() if name not in ("part", "seconds")}
    shown = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in figures.items()
    )
    return f"{row['part']:28} {row['seconds']:6.1f} s  {shown}"


# -- time


def seconds(run: Callable[[], object], device: torch.device, tiny: bool) -> float:
    """The best time of a few runs, after one that warms up. The device has done its work when the clock is read."""
    best = float("inf")
    for number in range(2 if tiny else 6):
        wait(device)
        begin = time.perf_counter()
        run()
        wait(device)
        if number:
            best = min(best, time.perf_counter() - begin)
    return best


def wait(device: torch.device) -> None:
    if is_accelerator(device):
        torch.accelerator.synchronize(device)


def able(device: torch.device, tiny: bool) -> float:
    """The operations per second of large matrix products in bfloat16."""
    size = 256 if tiny or not is_accelerator(device) else 8192
    left, right = torch.randn(2, size, size, device=device, dtype=torch.bfloat16)
    return 2 * size**3 / seconds(lambda: left @ right, device, tiny)


# -- training


def gpt(tiny: bool, **values: Any) -> nn.Module:
    return (
        foveate.create("gpt-tiny", vocabulary=97) if tiny else foveate.create("gpt2", vocabulary=VOCABULARY, **values)
    )


def text_batch(tiny: bool) -> Batch:
    rows, length, words = (2, 16, 97) if tiny else (16, 1024, VOCABULARY)
    tokens = torch.randint(words, (rows, length + 1))
    inputs = {"tokens": tokens[:, :-1], "lengths": torch.full((rows,), length)}
    return label_batch(inputs, tokens[:, 1:], "random tokens")


def image_batch(tiny: bool) -> Batch:
    rows, side, classes = (2, 28, 10) if tiny else (128, 224, 1000)
    labels = torch.randint(classes, (rows, 1))
    return label_batch({"pixels": torch.randn(rows, 3, side, side)}, labels, "random images")


def vit(tiny: bool) -> nn.Module:
    return foveate.create("vit-tiny", classes=10, channels=3) if tiny else foveate.create("vit-base-16", classes=1000)


def training(model: nn.Module, batch: Batch, device: torch.device, tiny: bool, compiled: bool) -> Row:
    """Steps of `foveate train` in bfloat16, and the share of what matrix products reach."""
    settings = Training(device=str(device), precision="bfloat16", compile=compiled)
    update = Updater(model.train(), CrossEntropy(), settings)
    with FlopCounterMode(display=False) as counter:  # a compiled pass hides its operations, of which there are as many
        update.placement(**batch.to(device).inputs).logits.sum().backward()
        operations = counter.get_total_flops()
    update.optimizer.zero_grad()
    step = seconds(lambda: update([batch], 1e-4, 2), device, tiny)
    places = next(iter(batch.inputs.values())).numel() if "tokens" in batch.inputs else len(batch.weight)
    share = operations / step / able(device, tiny)
    return {"per_second": places / step, "utilisation": share, **memory(device)}


def memory(device: torch.device) -> Row:
    """The most memory that was in use at once."""
    return {"gigabytes": torch.accelerator.max_memory_allocated(device) / 1e9} if is_accelerator(device) else {}


def transformers_training(device: torch.device, tiny: bool) -> Row:
    """The same of transformers' GPT-2."""
    from transformers import GPT2Config, GPT2LMHeadModel

    small = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 97, "n_positions": 32}
    model = GPT2LMHeadModel(GPT2Config(**small if tiny else {})).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    tokens = text_batch(tiny).inputs["tokens"].to(device)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return {"per_second": tokens.numel() / seconds(step, device, tiny)}


def timm_training(device: torch.device, tiny: bool) -> Row:
    """The same of timm's ViT."""
    try:
        import timm
    except ImportError:  # then where `make test` installs it
        sys.path.append(str(ROOT / "tests"))
        from references import timm

    batch = image_batch(tiny)
    small = {"img_size": 28, "patch_size": 7, "embed_dim": 24, "depth": 2, "num_heads": 2, "num_classes": 10}
    model = timm.create_model("vit_base_patch16_224", **small if tiny else {}).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    pixels, labels = batch.inputs["pixels"].to(device), batch.labels[:, 0].to(device)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(pixels), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return {"per_second": len(labels) / seconds(step, device, tiny)}


# -- looking


def look(device: torch.device, tiny: bool) -> Row:
    """One layer's forward pass over T tokens, while a look is open beside without, and its measures afterwards."""
    found: Row = {}
    for length in (64, 128) if tiny else (2048, 8192, 32_768, 131_072):
        model: Any = nn.TransformerEncoderLayer(64, 4, 64, 0.0, batch_first=True).to(device).eval()
        x = torch.randn(1, length, 64, device=device)

        def looked(model: Any = model, x: Tensor = x) -> None:
            with foveate.look(model) as sight:
                model(x)
            sight[sight.sites[0]].entropy()

        with torch.no_grad():
            without = seconds(lambda model=model, x=x: model(x), device, tiny)
            found[f"{length}"] = seconds(looked, device, tiny) / without
    return found | memory(device)


def one_head(device: torch.device, tiny: bool) -> Row:
    """The map of one head of each layer of transformers' GPT-2, as a multiple of the forward pass alone."""
    model, inputs = transformers_gpt2(device, tiny)

    def looked() -> list[Tensor]:
        with foveate.look(model) as sight:
            model(**inputs)
        return [sight[site].weights(heads=[0]).cpu() for site in sight.sites]

    with torch.no_grad():
        shares = seconds(looked, device, tiny) / seconds(lambda: model(**inputs), device, tiny)
    return {"passes": shares} | memory(device)


def attnread_head(device: torch.device, tiny: bool) -> Row:
    """The same by attnread, which runs attention once more with an identity in the place of the values."""
    from attnread import extract_attention

    model, inputs = transformers_gpt2(device, tiny)
    heads = [(layer, 0) for layer in range(model.config.n_layer)]
    with torch.no_grad():
        taken = seconds(lambda: extract_attention(model, inputs, heads=heads), device, tiny)
        shares = taken / seconds(lambda: model(**inputs), device, tiny)
    return {"passes": shares} | memory(device)


def transformers_gpt2(device: torch.device, tiny: bool) -> tuple[Any, dict[str, Tensor]]:
    """A GPT-2 of transformers whose attention is fused, and a text of 1,024 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    small = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 97, "n_positions": 32} if tiny else {}
    torch.manual_seed(0)
    model: Any = GPT2LMHeadModel(GPT2Config(**small, bos_token_id=1, eos_token_id=2)).to(device).eval()
    return model, {"input_ids": torch.randint(3, 97, (1, model.config.n_positions), device=device)}


# -- decoding


def generation(device: torch.device, tiny: bool) -> Row:
    """Tokens of greedy search after a prompt, for one text and for sixteen."""
    model: Any = gpt(tiny).to(device, torch.bfloat16 if is_accelerator(device) else None).eval()
    steps, found = (4 if tiny else 128), {}
    for rows in (1, 16):
        tokens = torch.randint(3, 97, (rows, 8), device=device)
        inputs = {"tokens": tokens, "lengths": torch.full((rows,), 8, device=device)}
        taken = seconds(lambda inputs=inputs: greedy(model, inputs, SPECIAL, steps), device, tiny)
        found[f"{rows} texts, tokens/s"] = rows * steps / taken
    return found


def transformers_generation(device: torch.device, tiny: bool) -> Row:
    """The same of transformers' GPT-2."""
    from transformers import GPT2Config, GPT2LMHeadModel

    small = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 97, "n_positions": 32}
    model = GPT2LMHeadModel(GPT2Config(**small if tiny else {}, bos_token_id=1, eos_token_id=2)).to(device).eval()
    model = model.to(torch.bfloat16) if is_accelerator(device) else model
    steps, found = (4 if tiny else 128), {}
    for rows in (1, 16):
        tokens = torch.randint(3, 97, (rows, 8), device=device)
        options = {"max_new_tokens": steps, "min_new_tokens": steps, "do_sample": False, "pad_token_id": 0}
        taken = seconds(lambda tokens=tokens, options=options: model.generate(tokens, **options), device, tiny)
        found[f"{rows} texts, tokens/s"] = rows * steps / taken
    return found


def beam_search(device: torch.device, tiny: bool) -> Row:
    """Sentences of a translator by beam search of width 5."""
    name, words = ("transformer-tiny", 97) if tiny else ("transformer-base", 32_000)
    model: Any = foveate.create(name, src_vocab=words, tgt_vocab=words).to(device).eval()
    rows, length = (2, 5) if tiny else (32, 24)
    inputs = {"source": torch.randint(3, words, (rows, length)), "source_lengths": torch.full((rows,), length)}
    own = {part: value.to(device) for part, value in inputs.items()}
    return {"sentences/s": rows / seconds(lambda: beam(model, own, SPECIAL, length, 5), device, tiny)}


# -- kernels


def flex(device: torch.device, tiny: bool) -> Row:
    """The time of FlexAttention, which foveate takes on a GPU, as a share of that of the fused kernel in blocks: for
    a causal window, and for a causal bias of distances. On a CPU it is not compiled."""
    heads, length, width, radius = (2, 256, 16, 31) if tiny else (12, 16_384, 64, 255)
    kind = torch.bfloat16 if is_accelerator(device) else torch.float32
    parts = [part.requires_grad_() for part in torch.randn(3, 1, heads, length, width, device=device, dtype=kind)]
    slopes = torch.rand(heads, device=device)
    cases = {"window": (window(radius) & causal(), None), "bias": (causal(), LinearDistance(slopes))}
    found: Row = {}
    for name, (mask, bias) in cases.items():
        call = Call(*parts, ScaledDot(), mask, bias, Soft(), dropout=0.0, full=False)
        times = {}
        for kernel in (flex_kernel, sdpa_kernel):

            def forward(kernel: Any = kernel, call: Call = call) -> Tensor:
                return kernel.attend(call).output

            with torch.no_grad():
                times[kernel] = [seconds(forward, device, tiny)]
            if is_accelerator(device):
                times[kernel].append(seconds(lambda forward=forward: forward().sum().backward(), device, tiny))
        with torch.no_grad():
            own, other = (kernel.attend(call).output for kernel in times)
        torch.testing.assert_close(own, other, atol=2e-2 if is_accelerator(device) else 1e-5, rtol=1e-2)
        shares = [one / other for one, other in zip(times[flex_kernel], times[sdpa_kernel], strict=True)]
        found |= dict(zip((f"{name}, forward", f"{name}, forward and backward"), shares, strict=False))
    return found


# -- tests


def tests(device: torch.device, tiny: bool) -> Row:
    """The tests of `tests/device` where the device is real."""
    # FlexAttention is a part of its own: each form takes seconds to compile.
    chosen = ["-k", "sums or points"] if tiny else ["tests/device/test_models.py", "-k", "not flex"]
    command = [sys.executable, "-m", "pytest", "tests/device/test_attention.py", *chosen]
    environment = {**os.environ, "FOVEATE_TEST_DEVICE": device.type if is_accelerator(device) else ""}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return {"status": ended.returncode, "said": (ended.stdout.strip().splitlines() or [""])[-1]}


PARTS: dict[str, Callable[[torch.device, bool], Row]] = {
    "tests": tests,
    "train gpt2": lambda device, tiny: training(gpt(tiny), text_batch(tiny), device, tiny, False),
    "train gpt2, compiled": lambda device, tiny: training(gpt(tiny), text_batch(tiny), device, tiny, True),
    "train gpt2, transformers": transformers_training,
    "train vit-base": lambda device, tiny: training(vit(tiny), image_batch(tiny), device, tiny, False),
    "train vit-base, compiled": lambda device, tiny: training(vit(tiny), image_batch(tiny), device, tiny, True),
    "train vit-base, timm": timm_training,
    "look": look,
    "look, one head of gpt2": one_head,
    "look, the same by attnread": attnread_head,
    "generate": generation,
    "generate, transformers": transformers_generation,
    "beam search": beam_search,
    "flex attention": flex,
}
"""What is measured, by name. Each takes at most `LIMIT` seconds, what is compiled twice that, the tests four times."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true", help="run all parts in small")
    parser.add_argument("--only", nargs="*", choices=[*PARTS], help="these parts alone")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a part may take")
    parser.add_argument("--minutes", type=float, default=10, help="minutes that all parts together may take")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--part", choices=[*PARTS], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
