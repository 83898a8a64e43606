"""Translators beside JoeyNMT's and fairseq's, with the same weights: the greatest difference of the logits.

    pip install --no-deps --target PEERS joeynmt==2.3.0
    pip download --no-deps --only-binary :all: --python-version 3.8 --platform manylinux1_x86_64 fairseq==0.10.2
    unzip -d PEERS fairseq-0.10.2*.whl
    python benchmarks/parity/translators.py PEERS

Both toolkits need older versions of other packages, so that only the files of their layers are imported. What they
import but do not compute with (a registry, TensorBoard) is replaced by stand-ins. The result is in
benchmarks/results/parity.md.
"""

import importlib
import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import foveate

SOURCE = torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 11, 5, 2, 0, 0], [12, 2, 0, 0, 0, 0, 0]])
LENGTHS = torch.tensor([7, 5, 2])
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 10, 11], [1, 9, 9, 4, 5]])
WORDS = {"src_vocab": 17, "tgt_vocab": 13}


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    print("| foveate | beside | greatest logit | greatest difference |\n| --- | --- | ---: | ---: |")
    for cell, score, fed in RECURRENT:
        ours, theirs = recurrent(cell, score, fed)
        show(f"`rnn-seq2seq`, {cell}, {score} score{', input feeding' if fed else ''}", "JoeyNMT 2.3.0", ours, theirs)
    show("`convolutional-seq2seq`, 4 + 3 layers", "fairseq 0.10.2", *convolutional(Path(sys.argv[1])))


def show(name: str, peer: str, ours: Tensor, theirs: Tensor) -> None:
    print(f"| {name} | {peer} | {ours.abs().max():.2f} | {(ours - theirs).abs().max():.1e} |")


RECURRENT = [(cell, score, fed) for cell in ("gru", "lstm") for score in ("additive", "biaffine") for fed in (0, 1)]


def random_model(name: str, **architecture: Any) -> nn.Module:
    """A model in double precision whose weights are all far from 0."""
    torch.manual_seed(1)
    model = foveate.create(name, **WORDS, **architecture).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    return model


@torch.no_grad()
def recurrent(cell: str, score: str, fed: int) -> tuple[Tensor, Tensor]:
    """Logits of ours and of JoeyNMT's recurrent encoder and decoder.

    JoeyNMT gives an LSTM's cell the same first value as its state, where ours has one of its own: both begin in zeros.
    """
    stand_in("torch.utils.tensorboard", SummaryWriter=None)
    sys.modules["importlib_metadata"] = importlib.metadata
    from joeynmt.decoders import RecurrentDecoder
    from joeynmt.encoders import RecurrentEncoder

    ours: Any = random_model("rnn-luong", cell=cell, score=score, input_feeding=bool(fed), embedding=10, width=12)
    encoder = RecurrentEncoder(rnn_type=cell, emb_size=10, hidden_size=6, num_layers=1, bidirectional=True)
    decoder = RecurrentDecoder(
        rnn_type=cell,
        emb_size=10,
        hidden_size=12,
        encoder=encoder,
        attention={"additive": "bahdanau", "biaffine": "luong"}[score],
        vocab_size=WORDS["tgt_vocab"],
        init_hidden="bridge" if cell == "gru" else "zero",
        input_feeding=bool(fed),
    )
    for part in (encoder, decoder):
        part.double().eval()
    encoder.rnn.load_state_dict(ours.encoder.layer.state_dict())
    decoder.rnn.load_state_dict(ours.decoder.recurrent.layer.state_dict())
    decoder.att_vector_layer.load_state_dict(ours.decoder.combine.state_dict())
    decoder.output_layer.weight.copy_(ours.output.weight)
    ours.output.bias.zero_()
    if cell == "gru":
        decoder.bridge_layer.load_state_dict(ours.bridge.state_dict())
    else:
        ours.bridge.weight.zero_()
        ours.bridge.bias.zero_()
    if score == "additive":
        for name in ("query", "key"):
            layer = getattr(ours.decoder.score, name)
            getattr(decoder.attention, f"{name}_layer").weight.copy_(layer.weight)
            if layer.bias is not None:
                layer.bias.zero_()
        decoder.attention.energy_layer.weight.copy_(ours.decoder.score.direction[None])
    else:
        decoder.attention.key_layer.weight.copy_(ours.decoder.score.weight.T)
    mask = (torch.arange(SOURCE.shape[1]) < LENGTHS[:, None])[:, None]
    encoded, last = encoder(ours.source_embedding(SOURCE), LENGTHS, mask)
    theirs, *_ = decoder(ours.target_embedding(TARGET), encoded, last, mask, unroll_steps=TARGET.shape[1])
    return ours(SOURCE, LENGTHS, TARGET).logits, theirs


@torch.no_grad()
def convolutional(peers: Path) -> tuple[Tensor, Tensor]:
    """Logits of ours and of fairseq's convolutional encoder and decoder."""
    fconv = fairseq_layers(peers)
    ours: Any = random_model("convolutional-tiny", embedding=10, width=12, dropout=0.0, max_length=20)
    sizes = {"embed_dim": 10, "max_positions": 21, "dropout": 0.0}
    encoder = fconv.FConvEncoder(Words(WORDS["src_vocab"]), convolutions=((12, 3),) * 4, **sizes)
    decoder = fconv.FConvDecoder(Words(WORDS["tgt_vocab"]), convolutions=((12, 3),) * 3, out_embed_dim=10, **sizes)
    encoder.num_attention_layers = 3
    for theirs, side in ((encoder, "source"), (decoder, "target")):
        theirs.double().eval()
        theirs.embed_tokens.weight.copy_(getattr(ours, f"{side}_embedding").weight)
        theirs.embed_positions.weight[1:].copy_(getattr(ours, f"{side}_positions").positions.table)
    give(encoder.fc1, ours.encoder_input)
    give(encoder.fc2, ours.encoder_output)
    give(decoder.fc1, ours.decoder_input)
    give(decoder.fc2, ours.decoder_output)
    give(decoder.fc3, ours.output)
    for theirs, layers in ((encoder, ours.encoder), (decoder, ours.decoder)):
        for convolution, layer in zip(theirs.convolutions, layers, strict=True):
            give(convolution, layer.convolution.linear, lambda weight: weight.view(24, 3, 12).permute(1, 2, 0))
    for attention, layer in zip(decoder.attention, ours.decoder, strict=True):
        give(attention.in_projection, layer.cross.query)
        give(attention.out_projection, layer.cross.answer)
    theirs, _ = decoder(TARGET, encoder(SOURCE, LENGTHS))
    return ours(SOURCE, LENGTHS, TARGET).logits, theirs


def give(theirs: nn.Module, ours: nn.Linear, arrange: Callable[[Tensor], Tensor] = lambda weight: weight) -> None:
    """Copy a weight into a layer with weight normalisation, whose norms become those of the weight."""
    nn.utils.remove_weight_norm(theirs)
    theirs.weight.data = arrange(ours.weight.data).contiguous()
    theirs.bias.data = ours.bias.data.clone()


class Words:
    """A dictionary of fairseq: how many words there are, and which one is padding."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def pad(self) -> int:
        return 0


def fairseq_layers(peers: Path) -> Any:
    """fairseq's module of convolutional translators."""

    class Part(nn.Module):
        def __init__(self, dictionary: Any) -> None:
            super().__init__()
            self.dictionary = dictionary

    def positions(tokens: Tensor, padding: int, onnx_trace: bool = False) -> Tensor:
        return padding + tokens.ne(padding).long().cumsum(1) * tokens.ne(padding)

    def registered(*names: str) -> Callable[[Any], Any]:
        return lambda thing: thing

    package = stand_in("fairseq", utils=SimpleNamespace(make_positions=positions, get_incremental_state=no_state))
    package.__path__ = [str(peers / "fairseq")]
    stand_in("fairseq.incremental_decoding_utils", with_incremental_state=lambda kind: kind)
    sys.modules["fairseq.utils"] = package.utils
    modules = stand_in("fairseq.modules")
    modules.__path__ = [str(peers / "fairseq/modules")]
    from fairseq.modules.conv_tbc import ConvTBC
    from fairseq.modules.grad_multiply import GradMultiply
    from fairseq.modules.learned_positional_embedding import LearnedPositionalEmbedding
    from fairseq.modules.linearized_convolution import LinearizedConvolution

    for part in (ConvTBC, GradMultiply, LearnedPositionalEmbedding, LinearizedConvolution):
        setattr(modules, part.__name__, part)
    modules.AdaptiveSoftmax = modules.BeamableMM = None
    modules.FairseqDropout = lambda share, module_name: nn.Dropout(share)
    base = dict.fromkeys(("FairseqEncoder", "FairseqIncrementalDecoder", "FairseqEncoderDecoderModel"), Part)
    names = stand_in("fairseq.models", register_model=registered, register_model_architecture=registered, **base)
    names.__path__ = [str(peers / "fairseq/models")]
    return importlib.import_module("fairseq.models.fconv")


def no_state(*_: Any) -> None:
    """What fairseq finds where nothing is decoded step by step."""


def stand_in(name: str, **parts: Any) -> ModuleType:
    """A module of this name that holds these parts."""
    module = ModuleType(name)
    vars(module).update(parts)
    sys.modules[name] = module
    return module


if __name__ == "__main__":
    main()
