"""What heads do to a number: estimates against differences, and exact effects against models without the head."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.errors import UserError
from foveate.sight import Knock, Redirect, Scale, change, effects, key_effects

transformers = pytest.importorskip("transformers")


def translator() -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(3)
    model = foveate.create("transformer-tiny", src_vocab=31, tgt_vocab=29).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model, (torch.randint(4, 29, (1, 9)), torch.tensor([9]), torch.randint(4, 29, (1, 7)))


def gpt() -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(3)
    config = transformers.GPT2Config(n_layer=2, n_head=3, n_embd=24, vocab_size=53, n_positions=64)
    return transformers.GPT2LMHeadModel(config).eval(), (torch.randint(3, 53, (1, 9)),)


@pytest.mark.parametrize("made", [translator, gpt])
def test_every_head(made) -> None:
    model, inputs = made()
    model.double()

    def measure() -> Tensor:
        return model(*inputs).logits[0, -1].log_softmax(-1)[5]

    found = effects(model, measure, exact=None)
    whole = float(measure().detach())
    assert found.value == pytest.approx(whole, abs=1e-5)
    heads = [(site, head) for site, part in found.estimates.items() for head in range(len(part))]
    assert found.exact.keys() == set(heads)
    assert all(part.any() for part in found.estimates.values())
    for site, head in heads:
        with torch.no_grad(), change(model, {site: Scale(0.0, head)}):
            assert found.exact[site, head] == pytest.approx(float(measure()) - whole, abs=1e-6)
        small = 1e-6
        with torch.no_grad(), change(model, {site: Scale(1 - small, head)}):
            down = float(measure())
        with torch.no_grad(), change(model, {site: Scale(1 + small, head)}):
            up = float(measure())
        assert found.estimates[site][head] == pytest.approx((down - up) / (2 * small), abs=1e-4)
    sizes = [abs(size) for *_, size in found.largest(5)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == max(map(abs, found.exact.values()))


def test_the_largest_ones_alone_and_whole_sites() -> None:
    model, inputs = translator()

    def measure() -> Tensor:
        return model(*inputs).logits.log_softmax(-1)[0, :, 5].sum()

    found = effects(model, measure, sites="*.cross", exact=2)
    assert len(found.exact) == 2
    assert all(site.endswith(".cross") for site in found.estimates)
    estimated = {(site, head): abs(size) for site, part in found.estimates.items() for head, size in enumerate(part)}
    assert {*found.exact} == {*sorted(estimated, key=lambda place: -float(estimated[place]))[:2]}
    of_sites = effects(model, measure, exact=None, of="sites")
    assert of_sites.exact.keys() == {(site, None) for site in of_sites.estimates}
    assert effects(model, measure, exact=0).exact == {}


def test_numbers_that_cannot_be_used() -> None:
    model, inputs = translator()

    def without_gradients() -> Tensor:
        with torch.no_grad():
            return model(*inputs).logits.sum()

    with pytest.raises(UserError, match="runs the model without gradients"):
        effects(model, without_gradients)
    with pytest.raises(UserError, match=r"gives one number, not a tensor of shape \(1, 7, 29\)"):
        effects(model, lambda: model(*inputs).logits)
    with pytest.raises(UserError, match="no module that attends has a path like third"):
        effects(model, lambda: model(*inputs).logits.sum(), sites="third")


@pytest.mark.parametrize("made", [translator, gpt])
def test_copies_of_a_batch_are_changed_one_by_one(made) -> None:
    model, inputs = made()
    model.double()

    def numbers(count: int) -> Tensor:
        return model(*(torch.cat([one] * count) for one in inputs)).logits[:, -1].log_softmax(-1)[:, 5]

    for of in ("heads", "sites"):
        alone, together = (effects(model, lambda: numbers(1), exact=None, of=of, **way) for way in ways(numbers))
        assert together.exact.keys() == alone.exact.keys()
        assert [*together.exact.values()] == pytest.approx([*alone.exact.values()], abs=1e-6)
    assert max(map(abs, alone.exact.values())) > 1e-3


def ways(numbers) -> list[dict]:
    return [{}, {"copies": numbers, "at_once": 5}]


@pytest.mark.parametrize("made", [translator, gpt])
def test_every_key(made) -> None:
    """Keys against models that do not see them, and estimates against small changes of their weights."""
    model, inputs = made()
    model.double()
    sites = ["*encoder.*", "*.cross"] if len(inputs) > 1 else ["*"]

    def numbers(count: int) -> Tensor:
        return model(*(torch.cat([one] * count) for one in inputs)).logits[:, -1].log_softmax(-1)[:, 5]

    whole = float(numbers(1).detach())
    for way in ways(numbers):
        found = key_effects(model, lambda: numbers(1), sites, exact=None, **way)
        assert found.value == pytest.approx(whole, abs=1e-5)
        assert found.exact.keys() == set(range(9))
        assert found.estimates.any()
        for key, effect in found.exact.items():
            with torch.no_grad(), change(model, dict.fromkeys(sites, Knock(keys=[key]))):
                assert effect == pytest.approx(float(numbers(1)) - whole, abs=1e-5)
        keys, share = [*range(9)], 1 - 1e-6
        for key in keys:
            redirect = Redirect([one for one in keys if one != key], others=share)
            with torch.no_grad(), change(model, dict.fromkeys(sites, redirect)):
                slope = (float(numbers(1)) - whole) / (1 - share)
            assert found.estimates[key] == pytest.approx(slope, abs=1e-3)
