"""The tap sees every attention call, and there is no attention beside it."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

import foveate
from foveate.attention import Attended, attend, attend_full, causal, hooks, intercept
from foveate.attention.call import Call
from foveate.attention.hooks import Interceptor
from foveate.attention.kernels import Kernel


def test_the_tap_makes_every_call_with_the_kernel_that_was_chosen() -> None:
    q, k, v = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 13)
    seen: list[tuple[Call, Kernel, Attended]] = []

    def make(call: Call, kernel: Kernel) -> Attended:
        seen.append((call, kernel, kernel.attend(call)))
        return seen[-1][-1]

    attend(q, k, v)
    assert hooks.interceptor is None
    with intercept(make):
        output = attend(q, k, v, mask=causal())
        attended = attend_full(q, k, v, dropout=0.5, kernel="blocked")
    attend(q, k, v)
    assert hooks.interceptor is None
    (first, its_kernel, its_result), (second, other_kernel, other_result) = seen
    assert (its_kernel.name, other_kernel.name) == ("few", "blocked")
    assert its_result.output is output
    assert other_result is attended
    assert first.queries is q
    assert first.keys.data_ptr() == k.data_ptr()
    assert first.values.data_ptr() == v.data_ptr()
    assert (first.mask, first.full, first.dropout) == (causal(), False, 0.0)
    assert (second.mask, second.full, second.dropout) == (None, True, 0.5)


def test_an_interceptor_inside_another_has_it_for_a_kernel() -> None:
    order: list[str] = []

    def named(name: str) -> Interceptor:
        def note(call: Call, kernel: Kernel) -> Attended:
            order.append(name)
            return kernel.attend(call)

        return note

    outer, given = named("outer"), torch.randn(3, 5, 7)
    expected = attend(given, given, given)
    with intercept(outer):
        with intercept(named("inner")):
            assert torch.equal(attend(given, given, given), expected)
        assert order == ["inner", "outer"]
        assert hooks.interceptor is outer
    with pytest.raises(KeyError), intercept(outer):
        raise KeyError
    assert hooks.interceptor is None


ALONE = {
    "scaled_dot_product": {
        "attention/kernels/sdpa.py",
        "attention/single_query.py",
        # Name it, to count its operations:
        "experiments/flops.py",
        "experiments/size.py",
    },
    "MultiheadAttention": set(),
    "multi_head_attention_forward": set(),
    "Softmax": {
        "training/objectives/set_matching.py",  # SoftmaxClasses, an objective
        # SoftmaxPlusOne, a rule of weights:
        "attention/__init__.py",
        "attention/weighings.py",
        "nn/named_weighings.py",
    },
    "softmax": {
        "attention/selection.py",
        "attention/single_query.py",
        # Over the words of a vocabulary or over classes, not over keys:
        "training/objectives/cross_entropy.py",
        "decoding/beam.py",
        "decoding/ranking.py",
        "decoding/sampling.py",
        "decoding/acting.py",
        "decoding/ensemble.py",
        "decoding/unmasking.py",
        "training/objectives/ctc.py",
        "training/objectives/set_matching.py",
        "forms/pixels.py",
        "forms/label.py",
        "forms/matched_texts.py",
        "forms/public_match.py",
        "forms/blanks.py",
        "forms/ctc.py",
        "forms/span.py",
        "forms/scored.py",
        "forms/tagged_words.py",
        "tasks/export/ctranslate2.py",
        "tasks/completion/choices.py",
        "tasks/completion/measures.py",
        "forms/boxes.py",
        "tasks/hf/model_alone.py",
        "tasks/viewers/one_pass.py",
        "experiments/elmo_features.py",
        "tasks/viewers/texts.py",
        # Over the patches of a picture, of the similarity of each by itself:
        "tasks/image_matcher.py",
        # The weights of points from the scores of a record:
        "sight/points.py",
        # Attention in the operators that ONNX has, in exported graphs alone:
        "interop/onnx.py",
        # Over the layers of a model (ELMo's mix), or over its words:
        "models/text/elmo.py",
        # Over the places of a view, by their distance from a learned one, whatever is there:
        "models/multimodal/darqn.py",
    },
}
"""The only files whose code may use what has this in its name, but for those that see how other libraries attend."""

SEEING = ("sight/adapters/", "sight/untraced.py")


def test_one_place_attends() -> None:
    root = Path(foveate.__file__).parent
    found: dict[str, set[str]] = {name: set() for name in ALONE}
    for path in root.rglob("*.py"):
        if path.relative_to(root).as_posix().startswith(SEEING):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            used = str(getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None))
            for name in (name for name in ALONE if name in used):
                found[name].add(path.relative_to(root).as_posix())
    assert found == ALONE


def test_every_layer_that_attends_says_so() -> None:
    """`foveate.nn.attends` asks for nothing else."""
    root, silent = Path(foveate.__file__).parent, []
    for path in [*root.glob("nn/*.py"), *root.glob("models/*/*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for layer in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            calls = [node.func for node in ast.walk(layer) if isinstance(node, ast.Call)]
            names = {getattr(node, "id", None) or getattr(node, "attr", None) for node in ast.walk(layer)}
            if {getattr(call, "id", None) for call in calls} & {"attend", "attend_full"} and "attends" not in names:
                module = import_module(".".join(("foveate", *path.relative_to(root).with_suffix("").parts)))
                if not getattr(getattr(module, layer.name), "attends", False):  # Not inherited either.
                    silent.append(f"{path.name}: {layer.name}")
    assert silent == []


def test_an_attention_call_is_compiled_as_a_whole() -> None:
    """In a process of its own, since the shapes that tests check cannot be compiled."""
    code = """if True:
        import torch
        from foveate.attention import attend, causal
        q, k, v = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 11)
        compiled = torch.compile(attend, fullgraph=True, backend="eager")
        with torch.no_grad():
            for kernel in ("auto", "eager", "sdpa", "blocked"):
                found, expected = (each(q, k, v, mask=causal(), kernel=kernel) for each in (compiled, attend))
                torch.testing.assert_close(found, expected)
    """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
