"""speechbrain's attentional decoder, without torchaudio, which its package imports but the decoder does not need."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

INSTALLED = importlib.util.find_spec("speechbrain") is not None


def attentional_decoder() -> Any:
    """The class of the decoder."""
    found = importlib.util.find_spec("speechbrain")
    assert found is not None
    stubs = {"torchaudio": [], "speechbrain": list(found.submodule_search_locations or [])}
    before = {name: sys.modules.get(name) for name in stubs}
    try:
        for name, path in stubs.items():
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name])["__path__"] = path
        return importlib.import_module("speechbrain.nnet.RNN").AttentionalRNNDecoder
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module
