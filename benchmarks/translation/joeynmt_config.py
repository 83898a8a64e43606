"""The configuration of JoeyNMT that equals a preset of foveate in sizes, dropout, smoothing and batches."""

from pathlib import Path
from typing import Any

WIDTH = {"transformer-tiny": 128, "rnn-luong": 256}


def config(model: str, data: Path, text: str, out: Path, steps: int, log_every: int) -> dict[str, Any]:
    """For text in `data`, cut into tokens: `dev.*`, `vocabulary.*`, and to learn from "train.*", or "grouped.*", which
    is read in its order."""
    sides = {
        side: {"lang": side, "level": "word", "max_length": 128, "voc_file": str(data / f"vocabulary.{side}")}
        for side in ("src", "trg")
    }
    return {
        "name": model,
        "joeynmt_version": "2.3.0",
        "model_dir": str(out),
        "use_cuda": False,
        "data": {"train": str(data / text), "dev": str(data / "dev"), "dataset_type": "plain", **sides},
        "testing": {"beam_size": 1, "batch_type": "sentence", "batch_size": 20, "eval_metrics": []},
        "training": {
            "random_seed": 1,
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 0.001,
            "scheduling": "noam",
            "learning_rate_min": 0.0,
            "clip_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "loss": "crossentropy",
            "normalization": "tokens",
            "batch_type": "token",
            "batch_size": 4096,
            "updates": steps,
            "validation_freq": 1000 * log_every,
            "logging_freq": log_every,
            "shuffle": text == "train",
            "overwrite": True,
        },
        "model": {"initializer": "xavier_uniform", **(_transformer() if "transformer" in model else _recurrent())},
    }


def _transformer() -> dict[str, Any]:
    side = {
        "type": "transformer",
        "num_layers": 4,
        "num_heads": 4,
        "hidden_size": WIDTH["transformer-tiny"],
        "ff_size": 256,
        "dropout": 0.3,
        "layer_norm": "pre",
        "activation": "relu",
        "embeddings": {"embedding_dim": WIDTH["transformer-tiny"], "scale": True, "dropout": 0.3},
    }
    return {"tied_softmax": True, "encoder": side, "decoder": side}


def _recurrent() -> dict[str, Any]:
    width = WIDTH["rnn-luong"]
    side = {"type": "recurrent", "rnn_type": "lstm", "num_layers": 1, "dropout": 0.3}
    embeddings = {"embeddings": {"embedding_dim": width, "scale": False, "dropout": 0.3}}
    return {
        "encoder": {**side, **embeddings, "hidden_size": width // 2, "bidirectional": True},
        "decoder": {
            **side,
            **embeddings,
            "hidden_size": width,
            "hidden_dropout": 0.3,
            "attention": "luong",
            "input_feeding": True,
            "init_hidden": "bridge",
        },
    }
