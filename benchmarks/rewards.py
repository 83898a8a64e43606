"""Learning from a reward, beside trl: RLOO of one GPT from the same prompts, in the same order, by the same settings.

python benchmarks/rewards.py foveate trl    # trl: in an environment that has it, with transformers and datasets

A text is worth ten times its share of letters that are "e". Prints, for each, the mean reward of the texts that are
written at the first and last steps, how far the model is from the first one (KL, in nats a token), and the time of a
step. What is drawn differs; where it goes must not.
"""

import argparse
import time
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from preferences import SIZES, prepared

import foveate
from foveate.forms.tuned import first_words
from foveate.interop.public_folder import write_folder
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.tuning.rollouts import RolloutBatches, WritingPrompt
from foveate.training import Training
from foveate.training.objectives.preferences import PolicyGradient
from foveate.training.update import Updater

RATE, KL_WEIGHT, PROMPTS, TEXTS, TOKENS = 1e-3, 0.05, 4, 8, 16

Steps = list[tuple[float, float, float]]
"""The mean reward, the nats a token and the seconds of each step."""


def worth(text: str) -> float:
    """The reward of a text."""
    return 10 * text.count("e") / max(1, len(text))


def prompts_of(pairs: Any, steps: int) -> list[str]:
    """The first two words of as many reviews as the steps need."""
    return [first_words(one.better, 2) for one in pairs][: PROMPTS * steps]


def by_foveate(steps: int, seed: int) -> Steps:
    pairs, tokenizer, model = prepared(steps)
    base = foveate.create("gpt-tiny", vocabulary=len(tokenizer), **SIZES).eval()
    base.load_state_dict(model.state_dict())
    settings = Training(device="cpu", precision="float32", clip=None, weight_decay=0.0)
    updater, found = Updater(model.train(), PolicyGradient(), settings), []
    beginnings = tokenizer.encode(prompts_of(pairs, steps))
    prompts = [WritingPrompt([tokenizer.special.start, *tokens]) for tokens in beginnings]
    wide = PROMPTS, TEXTS, TOKENS, KL_WEIGHT
    for step in range(steps):
        begin, own = time.process_time(), prompts[PROMPTS * step : PROMPTS * (step + 1)]
        batches = RolloutBatches(
            model, base, tokenizer, lambda texts: [*map(worth, texts)], own, *wide, seed=1000 * seed + step
        )
        (batch,) = batches.epoch(0)
        sums = updater([batch], RATE, step + 1).sums
        found.append((sums["reward"] / PROMPTS / TEXTS, sums["kl"] / sums["length"], time.process_time() - begin))
    return found


def by_trl(steps: int, seed: int) -> Steps:
    """The same by trl's RLOOTrainer, from the same weights."""
    from datasets import Dataset as Table
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import RLOOConfig, RLOOTrainer

    pairs, tokenizer, model = prepared(steps)
    seconds: list[float] = []

    class Clock(TrainerCallback):
        """From the end of a step to that of the next: texts are written before a step begins."""

        begin = 0.0

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.begin = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds.append(time.process_time() - self.begin)
            self.begin = time.process_time()

    with TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, "gpt", model, {})
        public_tokenizer(tokenizer, []).write_folder(folder)
        own = AutoTokenizer.from_pretrained(folder)
        special = {one: own.convert_ids_to_tokens(getattr(tokenizer.special, one)) for one in ("start", "end", "pad")}
        own.eos_token, own.pad_token = special["end"], special["pad"]
        rows = [{"prompt": special["start"] + one} for one in prompts_of(pairs, steps)]

        def reward(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
            asked = (one.removeprefix(special["start"]) for one in prompts)
            return [worth(before + text) for before, text in zip(asked, completions, strict=True)]

        settings = RLOOConfig(
            output_dir=f"{name}/out",
            seed=seed,
            beta=KL_WEIGHT,
            num_generations=TEXTS,
            max_completion_length=TOKENS,
            shuffle_dataset=False,
            disable_dropout=True,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            adam_beta2=0.98,
            max_grad_norm=0.0,
            weight_decay=0.0,
            max_steps=steps,
            per_device_train_batch_size=PROMPTS * TEXTS,
            gradient_accumulation_steps=1,
            steps_per_generation=1,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        )
        policy = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        table = Table.from_list(rows)
        trainer = RLOOTrainer(policy, reward, settings, train_dataset=table, processing_class=own)
        trainer.add_callback(Clock())
        trainer.train()
    log = [row for row in trainer.state.log_history if "rewards/reward/mean" in row]
    return [(row["rewards/reward/mean"], row["kl"], each) for row, each in zip(log, seconds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="+", choices=("foveate", "trl"))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each, which draw other texts")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("| by | reward, steps 1 to 5 | last 5 | KL a token, last 5 | processor seconds a step, median |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way in chosen.ways:
        train = {"foveate": by_foveate, "trl": by_trl}[way]
        found = [train(chosen.steps, seed) for seed in range(chosen.seeds)]
        first, last = ([one for each in found for one in each[part]] for part in (slice(5), slice(-5, None)))
        figures = (mean(one[0] for one in first), mean(one[0] for one in last), mean(one[1] for one in last))
        seconds = [one[2] for each in found for one in each]
        print(f"| {way} | " + " | ".join(f"{one:.3f}" for one in figures) + f" | {median(seconds):.2f} |", flush=True)


if __name__ == "__main__":
    main()
