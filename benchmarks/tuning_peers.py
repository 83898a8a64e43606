"""A few hundred instructions, then preferences, learned by SmolLM2-135M with low-rank updates: foveate beside trl and
peft.

    python -m venv peers && peers/bin/pip install "torch>=2.11,<2.14" trl peft datasets
    python benchmarks/tuning_peers.py --peers peers/bin/python

The data are names of emoji in English and French, as questions and answers: both sides learn the same texts in the same
order, by batches of 8, with updates of rank 8 of queries and values (scaled by 2), Adam at 5e-4, float32, one thread,
each in a process of its own. First the answers are learned (the loss of their tokens), then, from the merged weights,
to prefer them to another emoji's name (DPO with a beta of 0.1, at 1e-4). Prints the loss, the margin and the share of
held-out pairs whose right answer became more probable, processor seconds of a step, and the memory at the peak.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

ROWS, RANK, BETA = 8, 8, 0.1

RATES = {"answers": 5e-4, "preferences": 1e-4}

HELD_OUT = 32

ASK = "<|im_start|>user\nWhat is the French name of the emoji '{}'?<|im_end|>\n<|im_start|>assistant\n"


def rows_of(count: int) -> list[dict[str, str]]:
    """Questions, each with its answer and with that of another one."""
    from foveate.data.sources import open_source

    examples = [*islice(open_source("emoji", "en", "fr", task="translate").train, count + 1)]
    return [
        {"prompt": ASK.format(name), "chosen": right, "rejected": wrong}
        for (name, right), (_, wrong) in pairwise(examples)
    ]


class Clock:
    """Processor seconds of each step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, run: Callable[[], Any]) -> Any:
        begin = time.process_time()
        found = run()
        self.seconds.append(time.process_time() - begin)
        return found


def by_foveate(stage: str, folder: Path, out: Path, rows: list[dict[str, str]]) -> dict[str, Any]:
    """One stage, and its figures."""
    import torch

    from foveate.data.tokens.public_tokenizer import PublicTokenizer
    from foveate.interop.public_folder import read_folder, write_folder
    from foveate.nn import add_low_rank, merge_low_rank
    from foveate.training import CrossEntropy, Training
    from foveate.training.objectives.preferences import DirectPreference
    from foveate.training.update import Updater

    public, tokenizer = read_folder(folder), PublicTokenizer.load(folder)
    model: Any = public.model
    torch.manual_seed(1)
    add_low_rank(model, RANK, ("query", "value"))
    settings = Training(device="cpu", precision="float32", clip=None, weight_decay=0.0)
    learns = stage == "preferences"
    objective: Any = DirectPreference(BETA) if learns else CrossEntropy()
    updater, clock, logs = Updater(model.train(), objective, settings), Clock(), []
    for step, begin in enumerate(range(0, len(rows) - HELD_OUT, ROWS), 1):
        batch = batch_of(rows[begin : begin + ROWS], tokenizer, learns)
        known = clock(lambda batch=batch: [with_reference(batch, model) if learns else batch])
        update = clock(lambda known=known, step=step: updater(known, RATES[stage], step))
        clock.seconds[-2:] = [sum(clock.seconds[-2:])]
        logs.append({name: value / update.weight for name, value in update.sums.items()})
    figures = figures_of(logs, clock, "loss" if learns else "cross_entropy", "margin")
    if learns:
        right = 0.0
        for begin in range(len(rows) - HELD_OUT, len(rows), ROWS):
            held = with_reference(batch_of(rows[begin : begin + ROWS], tokenizer, True), model)
            with torch.no_grad():
                right += float(objective(model.eval()(**held.inputs), held).log["accuracy"])
        figures["right"] = 100 * right / HELD_OUT
    merge_low_rank(model)
    write_folder(out, public.family, model, {"eos_token_id": 2, "bos_token_id": 1})
    tokenizer.write_folder(out)
    return figures


def with_reference(batch: Any, model: Any) -> Any:
    """A batch of pairs with what the model without its updates makes of them."""
    from dataclasses import replace

    from foveate.nn import without_low_rank
    from foveate.tasks.tuning.rollouts import token_log_probs

    with without_low_rank(model):
        known = token_log_probs(model, batch.inputs, batch.labels, batch.inputs["tokens"].device).sum(1)
    return replace(batch, targets={**batch.targets, "reference": known})


def batch_of(rows: list[dict[str, str]], tokenizer: Any, pairs: bool) -> Any:
    """Rows whose answers alone are labels; of pairs the better text of each first."""
    import torch

    from foveate.contracts import IGNORE, Batch, count_labels
    from foveate.data.ragged import padded
    from foveate.data.text.preferences import PreferenceBatch

    texts, begins = [], []
    for row in rows:
        (asked,) = tokenizer.encode([row["prompt"]])
        for side in ("chosen", "rejected")[: 1 + pairs]:
            texts.append([*tokenizer.encode([row["prompt"] + row[side]])[0], 2])
            begins.append(len(asked))
    tokens, lengths = padded([text[:-1] for text in texts], 2)
    labels, _ = padded([text[1:] for text in texts], IGNORE)
    for number, begin in enumerate(begins):
        labels[number, : begin - 1] = IGNORE
    inputs, targets = {"tokens": tokens, "lengths": lengths}, {"labels": labels}
    if pairs:
        return PreferenceBatch(inputs, targets, torch.ones(len(rows), dtype=torch.long), "")
    return Batch(inputs, targets, count_labels(labels), "")


def by_peers(stage: str, folder: Path, out: Path, rows: list[dict[str, str]]) -> dict[str, Any]:
    """The same by trl's trainers with peft's updates."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    clock, torch_threads = Clock(), torch.set_num_threads(1)
    assert torch_threads is None

    class Timer(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.begin = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.seconds.append(time.process_time() - self.begin)

    shared: dict[str, Any] = {
        "output_dir": str(out / "log"),
        "learning_rate": RATES[stage],
        "lr_scheduler_type": "constant",
        "adam_beta2": 0.98,
        "max_grad_norm": 0.0,
        "weight_decay": 0.0,
        "per_device_train_batch_size": ROWS,
        "per_device_eval_batch_size": ROWS,
        "num_train_epochs": 1,
        "logging_steps": 1,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
    }
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.eos_token = tokenizer.pad_token = tokenizer.convert_ids_to_tokens(2)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    updates = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    train, held = Dataset.from_list(rows[:-HELD_OUT]), Dataset.from_list(rows[-HELD_OUT:])
    more: dict[str, Any] = {"processing_class": tokenizer, "peft_config": updates, "callbacks": [Timer()]}

    def in_order(kind: type[Any]) -> type[Any]:
        def sampler(self: Any, *_: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

        return type("InOrder", (kind,), {"_get_train_sampler": sampler})

    if stage == "answers":
        texts = train.map(lambda row: {"completion": row["chosen"]}, remove_columns=["chosen", "rejected"])
        trainer = in_order(SFTTrainer)(model, SFTConfig(**shared), train_dataset=texts, **more)
    else:
        settings = DPOConfig(**shared, beta=BETA)
        trainer = in_order(DPOTrainer)(model, None, settings, train_dataset=train, eval_dataset=held, **more)
    trainer.train()
    logs = [row for row in trainer.state.log_history if "loss" in row]
    figures = figures_of(logs, clock, "loss", "rewards/margins")
    if stage == "preferences":
        figures["right"] = 100 * trainer.evaluate()["eval_rewards/accuracies"]
    trainer.model.merge_and_unload().save_pretrained(out)
    tokenizer.save_pretrained(out)
    return figures


def figures_of(logs: list[dict[str, float]], clock: Clock, loss: str, margin: str) -> dict[str, Any]:
    """What is printed of a stage."""
    ends = logs[:5], logs[-5:]
    found: dict[str, Any] = {"loss": [mean(row[loss] for row in part) for part in ends]}
    if margin in logs[-1]:
        found["margin"] = mean(row[margin] for row in ends[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**found, "steps": len(logs), "seconds": median(clock.seconds), "megabytes": peak}


def worker(way: str, stage: str, folder: Path, out: Path, data: Path) -> None:
    rows = json.loads(data.read_text(encoding="utf-8"))
    found = {"foveate": by_foveate, "peers": by_peers}[way](stage, folder, out, rows)
    (out / "figures.json").write_text(json.dumps(found), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="python of an environment with trl and peft")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--steps", type=int, nargs=2, default=(40, 20), help="of answers, and of preferences")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        way, stage, *places = chosen.worker
        worker(way, stage, *map(Path, places))
        return
    from foveate.interop.pretrained import locate

    ways = {"foveate": sys.executable, **({"peers": chosen.peers} if chosen.peers else {})}
    print("| by | learns | steps | loss, first 5 | last 5 | margin | right | seconds a step | MB |", flush=True)
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with TemporaryDirectory() as place:
        for way, python in ways.items():
            begin = locate(Path(chosen.model))
            for stage, steps in zip(RATES, chosen.steps, strict=True):
                data, out = Path(place) / f"{stage}.json", Path(place) / f"{way}-{stage}"
                data.write_text(json.dumps(rows_of(ROWS * steps + HELD_OUT)), encoding="utf-8")
                out.mkdir()
                command = [python, __file__, "--worker", way, stage, str(begin), str(out), str(data)]
                subprocess.run(command, check=True, stdout=sys.stderr)
                row = json.loads((out / "figures.json").read_text(encoding="utf-8"))
                begin = out
                numbers = [*row["loss"], row.get("margin"), row.get("right"), row["seconds"], row["megabytes"]]
                cells = ["" if one is None else f"{one:.4g}" for one in numbers]
                print(f"| {way} | {stage} | {row['steps']} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
