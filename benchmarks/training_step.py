"""A step of training beside transformers' Trainer and nanoGPT: a GPT-2 of four layers learns from 512 tokens.

    python benchmarks/training_step.py [--layers 4] [--length 512] [--steps 6] [--nanogpt FOLDER]

FOLDER is a checkout of nanoGPT; without it, Trainer is the only peer. The same weights and tokens; all clip the
gradient and use AdamW, without dropout. Ours is the step of `foveate train`, theirs that of `Trainer.train` and of
nanoGPT's train.py. Each runs in a process of its own, by turns, with one thread. The times are CPU times of a step, of
which the fastest counts, and the memory is the most that the process held. Needs accelerate.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.pytorch_utils import Conv1D

from foveate.contracts import IGNORE, label_batch
from foveate.interop.public_folder import read_folder
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

RATE, CLIP, BETAS = 1e-4, 1.0, (0.9, 0.999)


def write_model(folder: Path, layers: int, length: int) -> None:
    torch.manual_seed(0)
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    GPT2LMHeadModel(GPT2Config(n_layer=layers, n_positions=length, **dropout)).save_pretrained(folder)


def texts(length: int, steps: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randint(1, 50_000, (length,), generator=generator) for _ in range(steps)]


def ours(folder: Path, length: int, steps: int) -> tuple[list[float], list[float]]:
    """The seconds and the loss of each step."""
    model = read_folder(folder).model.train()
    update = Updater(model, CrossEntropy(0.0), Training(device="cpu", precision="float32", clip=CLIP, betas=BETAS))
    times, losses = [], []
    for number, text in enumerate(texts(length, steps), 1):
        batch = label_batch({"tokens": text[None, :-1]}, text[None, 1:], "text")
        begin = time.process_time()
        found = update([batch], RATE, number)
        times.append(time.process_time() - begin)
        losses.append(found.sums["loss"] / found.weight)
    return times, losses


class Watch(TrainerCallback):
    """The times of Trainer's steps."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.begin = 0.0

    def on_step_begin(self, *arguments: object, **more: object) -> None:
        self.begin = time.process_time()

    def on_step_end(self, *arguments: object, **more: object) -> None:
        self.times.append(time.process_time() - self.begin)


def theirs(folder: Path, length: int, steps: int) -> tuple[list[float], list[float]]:
    model, watch = GPT2LMHeadModel.from_pretrained(folder), Watch()
    with tempfile.TemporaryDirectory() as out:
        settings = TrainingArguments(
            out,
            max_steps=steps,
            per_device_train_batch_size=1,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            max_grad_norm=CLIP,
            adam_beta2=BETAS[1],
            weight_decay=Training().weight_decay,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        # Trainer divides the loss by the number of labels, and nothing predicts the first token.
        first = torch.tensor([IGNORE])
        data = [{"input_ids": text, "labels": torch.cat([first, text[1:]])} for text in texts(length, steps)]
        trainer = Trainer(model, settings, train_dataset=data, callbacks=[watch])
        trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(data)  # type: ignore[method-assign]
        trainer.train()
    return watch.times, [row["loss"] for row in trainer.state.log_history if "loss" in row]


def nanogpt(folder: Path, length: int, steps: int) -> tuple[list[float], list[float]]:
    """nanoGPT's model and optimizer; model.py is found in Python's path."""
    from model import GPT, GPTConfig

    sizes = GPT2Config.from_pretrained(folder)
    with contextlib.redirect_stdout(None):
        own = GPTConfig(length, sizes.vocab_size, sizes.n_layer, sizes.n_head, sizes.n_embd)
        model = GPT(own).train()
        optimizer = model.configure_optimizers(Training().weight_decay, RATE, BETAS, "cpu")
    source = GPT2LMHeadModel.from_pretrained(folder)
    weights = source.state_dict()
    for name, module in source.named_modules():
        if isinstance(module, Conv1D):  # a linear layer with its weight transposed
            weights[f"{name}.weight"] = module.weight.detach().t()
    model.load_state_dict(weights)
    del source, weights
    times, losses = [], []
    for text in texts(length, steps):
        begin = time.process_time()
        loss = model(text[None, :-1], text[None, 1:])[1]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.process_time() - begin)
        losses.append(loss.item())
    return times, losses


PROGRAMS = {"foveate": ours, "transformers' Trainer": theirs, "nanoGPT": nanogpt}


def child(which: str, folder: Path, length: int, steps: int) -> None:
    """Print what one of them measured."""
    torch.set_num_threads(1)
    times, losses = PROGRAMS[which](folder, length, steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": min(times[1:]), "losses": losses, "bytes": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nanogpt", type=Path, metavar="FOLDER")
    parser.add_argument("--only", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        child(given.only, given.folder, given.length, given.steps)
        return
    with tempfile.TemporaryDirectory() as place:
        write_model(Path(place), given.layers, given.length)
        sizes = ["--length", str(given.length), "--steps", str(given.steps), "--folder", place]
        programs = [name for name in PROGRAMS if given.nanogpt or name != "nanoGPT"]
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), given.nanogpt and str(given.nanogpt))))
        best: dict[str, dict] = {}
        for _ in range(given.rounds):
            for which in programs:
                command = [sys.executable, __file__, "--only", which, *sizes]
                environment = {**os.environ, "PYTHONPATH": path}
                run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                found = json.loads(run.stdout.splitlines()[-1])
                best[which] = min(found, best.get(which, found), key=lambda one: one["seconds"])
    print("| a step of training | tokens/s | foveate is faster | losses differ by | peak memory, GB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    own = best["foveate"]
    for name, one in best.items():
        apart = max(abs(ours - theirs) for ours, theirs in zip(own["losses"], one["losses"], strict=True))
        ratio = one["seconds"] / own["seconds"]
        print(
            f"| {name} | {given.length / one['seconds']:,.0f} | {ratio:.2f} | {apart:.1e} | {one['bytes'] / 1e9:.2f} |"
        )


if __name__ == "__main__":
    main()
