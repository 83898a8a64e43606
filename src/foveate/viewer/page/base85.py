"""Bytes as text: five letters for four bytes, a sixteenth less than base64, of letters that mean nothing to HTML."""

import numpy as np

from foveate.errors import UserError

LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#%()*+,-./:;=?@[]^_{|}"

_POWERS = 85 ** np.arange(4, -1, -1, dtype=np.uint64)


def encode(data: bytes) -> str:
    """The text of some bytes; a last group of n < 4 bytes takes n + 1 letters."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), ">u4").astype(np.uint64)
    letters = np.frombuffer(LETTERS, np.uint8)[words[:, None] // _POWERS % np.uint64(85)]
    text = letters.tobytes().decode("ascii")
    return text[: len(text) - missing]


def decode(text: str) -> bytes:
    """The bytes of a text. Raises UserError for one that `encode` did not make."""
    try:
        letters = np.frombuffer(text.encode("ascii"), np.uint8)
    except UnicodeEncodeError:
        raise UserError("the page is damaged: a block holds letters that no block has") from None
    digits = np.full(256, 255, np.uint64)
    digits[np.frombuffer(LETTERS, np.uint8)] = np.arange(85)
    missing = -len(letters) % 5
    found = np.concatenate([digits[letters], np.full(missing, 84, np.uint64)])
    words = (found.reshape(-1, 5) * _POWERS).sum(1)
    if (found > 84).any() or (words >= 2**32).any() or missing == 4:
        raise UserError("the page is damaged: a block is no text of bytes")
    data = words.astype(">u4").tobytes()
    return data[: len(data) - missing]
