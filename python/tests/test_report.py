"""report() and export()."""

import json
import os
import subprocess

import pytest
import torch
from torch import nn

import graphbench


def model():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).eval()


def test_report_tells_partitions_and_what_is_outside():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model()

        def forward(self, x):
            return self.inner(x).cumsum(1)

    result = graphbench.report(Net().eval(), torch.randn(2, 3, 8, 8))
    assert result.graphs == 1
    assert result.partitions and all(p.seconds > 0 and p.eager_seconds > 0 for p in result.partitions)
    assert any(op == "aten.cumsum.default" for _, _, op, _ in result.outside)
    assert result.share == 1.0
    assert result.flops == 2 * (2 * 8 * 36 * 27 + 2 * 8 * 36 * 10)
    text = str(result)
    assert "aten.cumsum.default" in text and "100.0 %" in text


def test_report_of_a_graph_that_is_refused(monkeypatch, caplog):
    def refuse(self, *_, **__):
        raise KeyError("for this test")

    monkeypatch.setattr("graphbench._library.Module.__init__", refuse)
    result = graphbench.report(model(), torch.randn(2, 3, 8, 8), time_partitions=False)
    caplog.clear()
    assert result.graphs == 1 and result.partitions == [] and result.share == 0
    assert ("inference", "aten.convolution.default") in {(graph, op) for graph, _, op, _ in result.outside}
    assert "for this test" in str(result)


def test_report_of_training():
    result = graphbench.report(model(), torch.randn(2, 3, 8, 8), train=True)
    assert {p.graph for p in result.partitions} == {"forward", "backward"}


def graph_bench():
    path = os.environ.get("GRAPH_BENCH")
    return path if path and os.access(path, os.X_OK) else None


@pytest.mark.parametrize("tensors", [False, True])
def test_export(tmp_path, tensors):
    paths = graphbench.export(model(), torch.randn(2, 3, 8, 8), tmp_path / "cases", tensors=tensors)
    assert paths
    for path in paths:
        assert json.loads(path.read_text())["graph"]
    if graph_bench() is None:
        pytest.skip("GRAPH_BENCH does not name the program")
    run = subprocess.run(
        [graph_bench(), "--mode=C", f"--batch={tmp_path}/cases/batch"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed:0" in run.stdout.replace(" ", "")
