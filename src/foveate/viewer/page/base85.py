"""Base85: four bytes as five characters, a sixteenth less than base64, without characters that HTML escapes."""

import numpy as np

from foveate.errors import UserError

LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#%()*+,-./:;=?@[]^_{|}"

_POWERS = 85 ** np.arange(4, -1, -1, dtype=np.uint64)


def encode(data: bytes) -> str:
    """Encode bytes as text; a last group of n < 4 bytes becomes n + 1 characters."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), ">u4").astype(np.uint64)
    letters = np.frombuffer(LETTERS, np.uint8)[words[:, None] // _POWERS % np.uint64(85)]
    text = letters.tobytes().decode("ascii")
    return text[: len(text) - missing]


def decode(text: str) -> bytes:
    """Decode a text. Raises UserError for a text that `encode` cannot produce."""
    try:
        letters = np.frombuffer(text.encode("ascii"), np.uint8)
    except UnicodeEncodeError:
        raise UserError("the page is damaged: a block has invalid characters") from None
    digits = np.full(256, 255, np.uint64)
    digits[np.frombuffer(LETTERS, np.uint8)] = np.arange(85)
    missing = -len(letters) % 5
    found = np.concatenate([digits[letters], np.full(missing, 84, np.uint64)])
    words = (found.reshape(-1, 5) * _POWERS).sum(1)
    if (found > 84).any() or (words >= 2**32).any() or missing == 4:
        raise UserError("the page is damaged: a block is not valid base85")
    data = words.astype(">u4").tobytes()
    return data[: len(data) - missing]
