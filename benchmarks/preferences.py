"""Learning from preferences, beside trl: DPO of one GPT on the same pairs, in the same order, with the same settings.

python benchmarks/preferences.py foveate trl    # trl: in an environment that has it, with transformers and datasets

Prints, for each, the mean margin (beta times how much more probable the better text became than the worse one) at the
first and last steps, the share of pairs that are told apart, and the time of a step.
"""

import argparse
import time
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import torch

import foveate
from foveate.data.dataset import Dataset
from foveate.data.sources import open_source
from foveate.data.text.preferences import Preference, PreferenceBatching
from foveate.data.tokens.tokenizers import TRAINERS
from foveate.interop.public_folder import write_folder
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.tuning.rollouts import ReferenceBatches
from foveate.training import Training
from foveate.training.objectives.preferences import DirectPreference
from foveate.training.update import Updater

BETA, RATE, PAIRS = 0.1, 1e-3, 16
SIZES = {"width": 128, "heads": 4, "feedforward": 512, "layers": 3, "max_length": 96, "dropout": 0.0}


def prepared(steps: int) -> tuple[list[Preference], Any, Any]:
    """Pairs of film reviews, a tokenizer that was made of them, and a GPT that has learned nothing."""
    pairs = list(open_source("movie-preferences", task="dpo").train)[: PAIRS * steps]
    tokenizer = TRAINERS["subwords"]([text for one in pairs for text in (one.better, one.worse)], 2000, False)
    torch.manual_seed(1)
    return pairs, tokenizer, foveate.create("gpt-tiny", vocabulary=len(tokenizer), **SIZES)


def by_foveate(steps: int) -> tuple[list[float], list[float], list[float]]:
    """The margin, the share of pairs told apart and the seconds of each step."""
    pairs, tokenizer, model = prepared(steps)
    processor = PreferenceBatching(tokenizer, None)
    texts, batches = processor.prepare(Dataset("pairs", pairs, "pairs")), []
    for begin in range(0, len(texts), PAIRS):
        batches.append(processor.batch(texts[begin : begin + PAIRS], None))
    settings = Training(device="cpu", precision="float32", clip=None, weight_decay=0.0)
    base = foveate.create("gpt-tiny", vocabulary=len(tokenizer), **SIZES).eval()
    base.load_state_dict(model.state_dict())
    updater = Updater(model.train(), DirectPreference(BETA), settings)
    margins, right, seconds = [], [], []
    for step, batch in enumerate(batches, 1):
        begin = time.process_time()
        (known,) = ReferenceBatches(Listed([batch]), base, model).epoch(0)
        sums = updater([known], RATE, step).sums
        seconds.append(time.process_time() - begin)
        margins.append(sums["margin"] / PAIRS)
        right.append(sums["accuracy"] / PAIRS)
    return margins, right, seconds


class Listed:
    """Batches that are there."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def epoch(self, number: int, skip: int = 0) -> Any:
        yield from self.batches


def by_trl(steps: int) -> tuple[list[float], list[float], list[float]]:
    """The same by trl's DPOTrainer, from the same weights."""
    from datasets import Dataset as Table
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import DPOConfig, DPOTrainer

    pairs, tokenizer, model = prepared(steps)
    seconds: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.begin = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds.append(time.process_time() - self.begin)

    class InOrder(DPOTrainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    with TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, "gpt", model, {})
        public_tokenizer(tokenizer, []).write_folder(folder)
        own = AutoTokenizer.from_pretrained(folder)
        begin = own.convert_ids_to_tokens(tokenizer.special.start)
        rows = [{"prompt": begin, "chosen": one.better, "rejected": one.worse} for one in pairs]
        settings = DPOConfig(
            output_dir=f"{name}/out",
            beta=BETA,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            adam_beta2=0.98,
            max_grad_norm=0.0,
            weight_decay=0.0,
            max_steps=steps,
            per_device_train_batch_size=PAIRS,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        )
        policy, first = (AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32) for _ in range(2))
        trainer = InOrder(policy, first, settings, train_dataset=Table.from_list(rows), processing_class=own)
        trainer.add_callback(Clock())
        trainer.train()
    log = [row for row in trainer.state.log_history if "rewards/margins" in row]
    return [row["rewards/margins"] for row in log], [row["rewards/accuracies"] for row in log], seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="+", choices=("foveate", "trl"))
    parser.add_argument("--steps", type=int, default=40)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("| by | margin, steps 1 to 5 | last 5 | pairs told apart, last 5 | processor seconds a step, median |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way in chosen.ways:
        margins, right, seconds = {"foveate": by_foveate, "trl": by_trl}[way](chosen.steps)
        parts = (mean(margins[:5]), mean(margins[-5:]), mean(right[-5:]))
        print(f"| {way} | " + " | ".join(f"{one:.4f}" for one in parts) + f" | {median(seconds):.3f} |", flush=True)


if __name__ == "__main__":
    main()
