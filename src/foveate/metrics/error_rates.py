"""How far written answers are from the right ones, in insertions, deletions and substitutions."""

from collections.abc import Sequence
from unicodedata import normalize

from foveate.data.text.scripts import words_of_any_script


def edit_distance(found: Sequence[object], right: Sequence[object]) -> int:
    """The least number of insertions, deletions and substitutions from one to the other (Levenshtein 1966)."""
    row = list(range(len(right) + 1))
    for number, one in enumerate(found, 1):
        diagonal, row[0] = row[0], number
        for place, other in enumerate(right, 1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (one != other))
    return row[-1]


def error_rate(found: Sequence[Sequence[object]], right: Sequence[Sequence[object]]) -> float:
    """Edits over the length of what is right, all answers together, in percent: CER of characters, WER of words.

    It can be above 100; where nothing is right to write, it is 0 or, if something was written, infinite.
    """
    edits = sum(map(edit_distance, found, right))
    length = sum(map(len, right))
    if not length:
        return float("inf") if edits else 0.0
    return 100 * edits / length


def transcript_errors(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """WER, CER and wrong transcripts, in percent. In scripts without spaces each letter is a word."""
    found, right = ([normalize("NFC", text) for text in texts] for texts in (found, right))
    wrong = sum(one != other for one, other in zip(found, right, strict=True))
    return {
        "word_error_rate": error_rate([*map(words_of_any_script, found)], [*map(words_of_any_script, right)]),
        "character_error_rate": error_rate(found, right),
        "wrong_transcripts": 100 * wrong / max(1, len(right)),
    }
