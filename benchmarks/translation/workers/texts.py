"""Text to token ids and back with the tokenizers of a run folder: what both corpus scripts share."""

from pathlib import Path

from tokenizers import Tokenizer

END = 2


def read(run: Path, source: Path) -> tuple[list[list[int]], Tokenizer]:
    """The sentences as tokens, END last, and the tokenizer of the translations."""
    reader = Tokenizer.from_file(str(run / "source_tokenizer.json"))
    writer = Tokenizer.from_file(str(run / "target_tokenizer.json"))
    lines = source.read_text(encoding="utf-8").splitlines()
    return [[*found.ids, END] for found in reader.encode_batch(lines, add_special_tokens=False)], writer
