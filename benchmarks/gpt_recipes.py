"""A small GPT by three recipes in equal time: that of foveate's docs, nanoGPT's, and transformers' Trainer.

    python benchmarks/gpt_recipes.py --nanogpt FOLDER [--seconds 300] [--out runs/recipes]

FOLDER is a checkout of nanoGPT. Five blocks of width 256, 4,096 tokens a step, one thread, the 5,000 subwords that
foveate learns from the text. foveate has the command of docs/language.md (Muon, passages of 256 words). nanoGPT runs
its own train.py with the settings that it has for small networks, and Trainer those of its authors' course on
language models from nothing; both read the passages as one stream, in rows of 512. Each first runs for a few steps,
to see how many fit into this many seconds of the processor. All are measured on the same passages of the test part,
every fourth one.
Needs accelerate.
"""

import argparse
import os
import pickle
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import foveate
from foveate.cli import main as main_of_foveate
from foveate.contracts import Output
from foveate.metrics.perplexity import perplexity, scores
from foveate.tasks.language_model import LanguageModel
from foveate.tasks.learning import Lesson

LAYERS, WIDTH, HEADS, ROW, ROWS = 5, 256, 4, 512, 8
RECIPES = ("foveate", "nanoGPT", "Trainer")
PROBE = 8
"""A run of this many steps tells what one takes."""

OURS = (
    "train language prose --model gpt-tiny --architecture.layers 5 --architecture.dropout 0 --architecture.no-bias "
    "--architecture.positions rotary --architecture.norm-kind rms --passage-words 256 --vocabulary 5000 "
    "--batch 4096 --optimizer muon --learning-rate 0.006 --schedule linear --precision float32 --threads 1 "
    "--average 1 --validation-examples 20"
)


def ours(out: Path, steps: int) -> list[str]:
    """The words of the command for this many steps. Batches of whole passages have fewer than 4,096 tokens."""
    often = ["--validate-every", str(steps), "--save-every", str(steps), "--warmup", str(min(50, steps // 4))]
    kept = ["--out", str(out / f"foveate-{steps}")]
    return [*OURS.split(), "--steps", str(steps), *often, *kept]


def nanogpt(out: Path, steps: int) -> list[str]:
    """train.py with config/train_shakespeare_char.py's rates, for our sizes."""
    settings = {
        "dataset": str(out.resolve() / "stream"),
        "out_dir": str(out.resolve() / f"nanogpt-{steps}"),
        "device": "cpu",
        "compile": False,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_embd": WIDTH,
        "block_size": ROW,
        "batch_size": ROWS,
        "gradient_accumulation_steps": 1,
        "dropout": 0.0,
        "learning_rate": 1e-3,
        "min_lr": 1e-4,
        "beta2": 0.99,
        "warmup_iters": min(100, steps // 4),
        "max_iters": steps,
        "lr_decay_iters": steps,
        "eval_interval": steps,
        "eval_iters": 1,
        "log_interval": 100,
    }
    return [f"--{name}={value}" for name, value in settings.items()]


def train_trainer(out: Path, steps: int) -> None:
    """What the course at Hugging Face has for a GPT-2 from nothing: AdamW, 5e-4, cosine, weight decay of 0.1."""
    torch.manual_seed(1)
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    words = int(np.load(out / "vocabulary.npy"))
    sizes = {"n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS, "n_positions": ROW, "vocab_size": words}
    stream = np.memmap(out / "stream" / "train.bin", dtype=np.uint16, mode="r")
    rows = [torch.from_numpy(stream[at : at + ROW].astype(np.int64)) for at in range(0, len(stream) - ROW, ROW)]
    settings = TrainingArguments(
        str(out / f"trainer-{steps}"),
        max_steps=steps,
        per_device_train_batch_size=ROWS,
        learning_rate=5e-4,
        lr_scheduler_type="cosine",
        warmup_steps=min(100, steps // 4),
        weight_decay=0.1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    data = [{"input_ids": row, "labels": row} for row in rows]
    learner = Trainer(GPT2LMHeadModel(GPT2Config(**sizes, **dropout)), settings, train_dataset=data)
    learner.train()
    learner.model.save_pretrained(out / f"trainer-{steps}")


def train(name: str, out: Path, nano: Path, steps: int) -> None:
    """Train by one recipe in this process, and print the seconds of the processor from its first step to its last."""
    times: list[float] = []
    register_optimizer_step_post_hook(lambda *_: times.append(time.process_time()))
    if name == "foveate":
        main_of_foveate(ours(out, steps))
    elif name == "nanoGPT":
        sys.argv, sys.path[0] = ["train.py", *nanogpt(out, steps)], str(nano)
        os.chdir(nano)
        runpy.run_path("train.py", run_name="__main__")
    else:
        train_trainer(out, steps)
    print((times[-1] - times[0]) * steps / (steps - 1))


def seconds(name: str, out: Path, nano: Path, steps: int) -> float:
    """What this many steps take of the processor, in a process of their own."""
    asked = ["--only", name, "--steps", str(steps), "--out", str(out.resolve()), "--nanogpt", str(nano.resolve())]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, __file__, *asked], env=environment, check=True, stdout=subprocess.PIPE)
    return float(run.stdout.split()[-1])


def write_stream(out: Path, skill: LanguageModel) -> None:
    """The training passages, each with its start and end, as nanoGPT reads them."""
    tokenizer, (train, _) = skill.reads.words, Lesson(skill.task, skill.recipe).open()
    special = tokenizer.special
    rows = tokenizer.encode([passage.text for passage in train])
    found = [token for row in rows for token in (special.start, *row, special.end)]
    (out / "stream").mkdir(exist_ok=True)
    for name, part in (("train", found), ("val", found[: 100 * ROW])):
        np.array(part, np.uint16).tofile(out / "stream" / f"{name}.bin")
    (out / "stream" / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(tokenizer)}))
    np.save(out / "vocabulary.npy", len(tokenizer))


class Public(nn.Module):
    """A model of another library that `scores` can call."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, lengths: Tensor) -> Output:
        found = self.model(tokens) if isinstance(self.model, GPT2LMHeadModel) else None
        return Output(found.logits if found is not None else self.model(tokens, tokens)[0])


def trained(out: Path, nano: Path, steps: dict[str, int]) -> Iterator[tuple[str, nn.Module]]:
    """The three models."""
    yield "foveate", foveate.load(out / f"foveate-{steps['foveate']}").model
    sys.path.insert(0, str(nano))
    from model import GPT, GPTConfig  # type: ignore[import-not-found]

    kept = torch.load(out / f"nanogpt-{steps['nanoGPT']}" / "ckpt.pt", weights_only=True)
    model = GPT(GPTConfig(**kept["model_args"]))
    model.load_state_dict(kept["model"])
    yield "nanoGPT", Public(model)
    yield "Trainer", Public(GPT2LMHeadModel.from_pretrained(out / f"trainer-{steps['Trainer']}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nanogpt", type=Path)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"))
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.only:
        train(given.only, given.out, given.nanogpt, given.steps)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    steps, took = {}, {}
    for name in RECIPES:
        each = seconds(name, given.out, given.nanogpt, PROBE) / PROBE
        if name == "foveate":
            skill = foveate.load(given.out / f"foveate-{PROBE}")
            write_stream(given.out, skill)
        steps[name] = round(given.seconds / each)
        took[name] = seconds(name, given.out, given.nanogpt, steps[name])
        print(f"{name}: {steps[name]} steps in {took[name]:.0f} s of the processor", flush=True)
    test = list(skill.task.open_source("prose", skill.recipe).test)[::4]
    lengths = [len(row) for row in skill.reads.words.encode([one.text for one in test])]
    test = [one for one, length in zip(test, lengths, strict=True) if length < ROW]
    print(f"{len(test):,} of {len(lengths):,} passages, a quarter of all, have fewer than {ROW} tokens")
    print("| recipe | parameters | steps | seconds | bits per byte |\n| --- | ---: | ---: | ---: | ---: |")
    for name, model in trained(given.out, given.nanogpt, steps):
        found = perplexity(scores(model.eval(), test, skill.in_order(test, 4096)))
        size = sum(each.numel() for each in model.parameters())
        print(f"| {name} | {size:,} | {steps[name]} | {took[name]:.0f} | {found.bits_per_byte:.3f} |", flush=True)


if __name__ == "__main__":
    main()
