"""mmocr's SAR. Its base classes, which need mmengine and mmcv, are stood for by small ones."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from torch import nn

INSTALLED = importlib.util.find_spec("mmocr") is not None

RECOGNIZER = "mmocr.models.textrecog"


class Registry:
    """Registers nothing."""

    def register_module(self) -> Any:
        return lambda kind: kind


class Encoder(nn.Module):
    def __init__(self, init_cfg: object = None) -> None:
        super().__init__()


class Decoder(nn.Module):
    def __init__(self, dictionary: SimpleNamespace, max_seq_len: int, **others: object) -> None:
        super().__init__()
        self.dictionary, self.max_seq_len = dictionary, max_seq_len


@contextmanager
def mmocr_sar() -> Iterator[tuple[Any, Any]]:
    """The classes of its encoder and decoder."""
    found = importlib.util.find_spec("mmocr")
    assert found is not None
    assert found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    models = root / "models" / "textrecog"
    stubs: dict[str, dict[str, Any]] = {
        "mmocr": {"__path__": [str(root)]},
        "mmocr.registry": {"MODELS": Registry()},
        "mmocr.structures": {"TextRecogDataSample": SimpleNamespace},
        "mmocr.models": {"__path__": [str(root / "models")]},
        "mmocr.models.common": {"__path__": []},
        "mmocr.models.common.dictionary": {"Dictionary": SimpleNamespace},
        RECOGNIZER: {"__path__": [str(models)]},
        f"{RECOGNIZER}.encoders": {"__path__": [str(models / "encoders")]},
        f"{RECOGNIZER}.encoders.base": {"BaseEncoder": Encoder},
        f"{RECOGNIZER}.decoders": {"__path__": [str(models / "decoders")]},
        f"{RECOGNIZER}.decoders.base": {"BaseDecoder": Decoder},
    }
    for name, values in stubs.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(values)
    pages = [f"{RECOGNIZER}.encoders.sar_encoder", f"{RECOGNIZER}.decoders.sar_decoder"]
    try:
        encoder, decoder = map(importlib.import_module, pages)
        yield encoder.SAREncoder, decoder.ParallelSARDecoder
    finally:
        for name in (*stubs, *pages):
            sys.modules.pop(name, None)
