"""Transformers whose weights are made by other rules than the softmax."""

from dataclasses import MISSING, fields

import pytest
import torch

import foveate
from foveate import models
from foveate.errors import UserError
from foveate.inference.cpu import optimize_for_cpu
from foveate.interop.public_folder import layout_for
from foveate.nn import MultiHeadAttention
from foveate.nn.named_weighings import WEIGHINGS, weighing


@pytest.mark.parametrize("name", WEIGHINGS)
def test_every_way_to_make_weights_of_scores(name: str) -> None:
    """A target token by token has the logits of the whole, and where it looks is what the rule says."""
    torch.manual_seed(0)
    sizes = {"src_vocab": 11, "tgt_vocab": 13, "width": 16, "heads": 2, "feedforward": 16, "weights": name}
    if name == "top-k":
        sizes["top_keys"] = 3
    model = foveate.create("transformer-tiny", **sizes, encoder_layers=1, decoder_layers=2).eval()
    source, lengths, target = torch.randint(1, 11, (2, 7)), torch.tensor([7, 4]), torch.randint(1, 13, (2, 5))
    with torch.inference_mode(), foveate.look(model) as sight:
        whole = model(source, lengths, target).logits
    rule = type(weighing(model.config))
    assert all(type(layer.select) is rule for layer in model.modules() if isinstance(layer, MultiHeadAttention))
    cross = sight["decoder.0.cross"].weights()
    assert (cross[1, ..., 4:] == 0).all()
    if name == "top-k":
        assert ((cross[0] > 0).sum(-1) == 3).all()
    if name == "softmax-plus-one":
        assert (cross.sum(-1) < 1).all()
    elif name != "sigmoid":
        torch.testing.assert_close(cross.sum(-1), torch.ones(2, 2, 5))
    with torch.inference_mode():
        state = model.start(source, lengths)
        rows = [model.step(column, state) for column in target.unbind(1)]
    torch.testing.assert_close(torch.stack(rows, 1), whole, rtol=0, atol=1e-5)
    optimized = optimize_for_cpu(model)  # with joint projections
    with torch.inference_mode():
        torch.testing.assert_close(optimized(source, lengths, target).logits, whole, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "detr", "gpt", "llama", "transformer", "vit", "xlnet"])
@pytest.mark.parametrize("field", ["weights", "mixing", "head_score"])
def test_what_other_libraries_lack_has_no_public_layout(family: str, field: str) -> None:
    kind = models.config_class(family)
    learned = {part.name: 11 for part in fields(kind) if part.default is MISSING}
    value = {"weights": "entmax", "mixing": "talking", "head_score": "cosine"}[field]
    with pytest.raises(UserError, match=f"this model has the {field} {value}"):
        layout_for(family, kind(**learned, **{field: value}))
