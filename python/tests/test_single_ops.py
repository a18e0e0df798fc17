"""Which single ops are groups: what the table of bridge/single_ops.c says, for each node that its benchmark knows."""

import sys
from pathlib import Path

import pytest
import torch

import graphbench  # noqa: F401: by its name
from graphbench._backend import Options
from graphbench._report import compile_and_run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import single_ops

SPEEDS = single_ops.table()
# The smallest size of all nodes, and all sizes of a few.
PLACES = [(name, "f32", 0) for name in single_ops.OPS]
PLACES += [(name, dtype, size) for name in ("gelu", "tanh", "cat") for dtype in single_ops.DTYPES for size in (1, 2)]


def test_the_table_is_what_was_measured():
    assert set(SPEEDS) == {op[0] for op in single_ops.OPS.values()}
    assert all(len(speeds) == single_ops.SIZES * len(single_ops.DTYPES) for speeds in SPEEDS.values())


@pytest.mark.parametrize("name, dtype, size", PLACES)
def test_single_ops(name, dtype, size):
    kind, call, inputs = single_ops.make_call(name, dtype, size)
    torch._dynamo.reset()
    compiler, _ = compile_and_run(call, inputs, False, Options(opaque=False))
    speed = SPEEDS[kind][list(single_ops.DTYPES).index(dtype) * single_ops.SIZES + size]
    [program] = compiler.programs
    if any(len(call.group.info["ops"]) > 1 for call in program.calls):
        return  # a node that is several ops, which are not judged
    if speed >= single_ops.ENOUGH:
        assert len(program.calls) == 1
        return
    assert program.calls == []
    reasons = {entry["reason"] for entry in program.bridge.description["outside"]}
    assert any(reason.startswith("a single op:") and f"{speed / 100:.2f}" in reason for reason in reasons), reasons
