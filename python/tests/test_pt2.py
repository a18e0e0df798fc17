"""Archives of torch.export as cases of graph-bench: every partition of every model passes."""

import os
import subprocess

import pytest
import torch

import graphbench
import zoo

GRAPH_BENCH = os.environ.get("GRAPH_BENCH")
pytestmark = pytest.mark.skipif(not GRAPH_BENCH, reason="GRAPH_BENCH does not name the program")


def export(name, folder, dynamic=False, decomposed=False):
    """The path of an archive of a small model; with dynamic=True its batch is from 1 to 64."""
    model, inputs = zoo.make(name, batch=2 if dynamic else 1, small=True)
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = tuple({0: batch} for _ in inputs) if dynamic else None
    with torch.no_grad():
        program = torch.export.export(model, inputs, dynamic_shapes=shapes)
        if decomposed:
            program = program.run_decompositions()
    path = folder / f"{name}.pt2"
    torch.export.save(program, path)
    return path


def graph_bench(*arguments):
    run = subprocess.run([GRAPH_BENCH, "--mode=C", *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("decomposed", [False, True], ids=["exported", "decomposed"])
@pytest.mark.parametrize("name", zoo.MODELS)
def test_all_partitions_pass(name, decomposed, tmp_path):
    path = export(name, tmp_path, decomposed=decomposed)
    status, text = graph_bench(f"--case={path}")
    assert status == 0 and "passed:1" in text, text
    # One partition of hundreds of ops: bounds may be as large as values, and then the verdict says so.
    status, text = graph_bench("--policy=max", f"--case={path}")
    assert status == 0 and ("passed:1" in text or "mistrusted:1" in text), text


@pytest.mark.parametrize("name", zoo.MODELS)
def test_minibatch(name, tmp_path):
    path = export(name, tmp_path, dynamic=True)
    status, text = graph_bench("--mb=1,3", f"--case={path}")
    assert status == 0 and "passed:2" in text, text
    status, text = graph_bench("--mb=65", f"--case={path}")
    assert status != 0 and "from 1 to 64, not 65" in text, text


def test_a_fixed_batch_stays(tmp_path):
    path = export("squeezenet", tmp_path)
    status, text = graph_bench("--mb=3", f"--case={path}")
    assert status != 0 and "--mb: dim 0 of all inputs is fixed" in text, text


def test_recorded_inputs(tmp_path):
    """The values of a run in PyTorch, also where nodes outside make them: here embeddings."""
    path, folder = export("bert", tmp_path, dynamic=True), tmp_path / "recorded"
    _, inputs = zoo.make("bert", batch=3, small=True)
    files = graphbench.record(path, inputs, folder)
    assert any(file.stat().st_size > 4 * 3 * 16 * 64 for file in files)
    arguments = "--mb=3", f"--load-tensors={folder}", f"--case={path}"
    status, text = graph_bench(*arguments)
    assert status == 0 and "passed:1" in text, text
    files[0].unlink()
    status, text = graph_bench(*arguments)
    assert status != 0 and f"{files[0].name}: cannot be opened" in text, text


class Columns(torch.nn.Module):
    """Two sizes, and others that follow from them."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 4)

    def forward(self, x, y):
        rows, columns = x.shape[0], x.shape[1]
        made = torch.relu(self.linear(x)).reshape(rows * columns * 2, 2)
        wide = torch.nn.functional.interpolate(y, scale_factor=1.5)
        return torch.softmax(made, 1) * 2, torch.tanh(wide) + wide, torch.cat([x, x], 1) * 3


def test_shapes_of_inputs(tmp_path):
    path = tmp_path / "columns.pt2"
    sizes = torch.export.Dim.AUTO
    program = torch.export.export(
        Columns().eval(),
        (torch.randn(4, 5, 6), torch.randn(1, 2, 4, 4)),
        dynamic_shapes=({0: sizes, 1: sizes}, {2: sizes}),
    )
    torch.export.save(program, path)
    x, y = (spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT")
    status, text = graph_bench("--explain", f"--case={path}")
    lines = [line.split() for line in text.splitlines() if line.startswith("  input: ")]
    ids = {words[1].rstrip(","): int(words[3].rstrip(",")) for words in lines}
    for shapes, fault in (
        (f"{ids[x]}:3x7x6", None),
        (f"{ids[x]}:3x7x6+{ids[y]}:1x2x9x4", None),
        (f"{ids[x]}:3x7x5", "dim 2 of input x"),
        (f"{ids[y]}:1x3x9x4", "dim 1 of input y"),
        (f"{ids[y]}:1x2x9", "has 4 dims"),
    ):
        status, text = graph_bench(f"--in-shapes={shapes}", f"--case={path}")
        assert status == 0 if fault is None else status != 0 and fault in text, text
