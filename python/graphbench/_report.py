"""What became of a model: groups, what is outside of them and why, times beside eager's."""

import json
import time
import types
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ._backend import Compiler, Options
from ._flops import flops_of
from ._npy import row_major_bytes, save_npy
from ._writer import is_getitem, target_name

ROUNDS = 5  # each times the library and PyTorch in turn; the best of each is told


@dataclass
class Partition:
    """A group of nodes that runs as one call. Times are in seconds. Where several groups make the
    results of a node, each is compared with the whole node."""

    graph: str  # inference, forward or backward
    id: int
    nodes: list
    kernels: str
    flops: int
    seconds: float = None
    eager_seconds: float = None


@dataclass
class Report:
    """Of a model and inputs. str() of it is for people."""

    graphs: int = 0  # more than one forward graph: the model has graph breaks
    partitions: list = field(default_factory=list)
    outside: list = field(default_factory=list)  # (graph, node, op, reason)
    flops: int = 0
    group_flops: int = 0
    seconds: float = None
    eager_seconds: float = None

    @property
    def share(self):
        """Of the floating-point operations, how many are in partitions: 0 to 1."""
        return self.group_flops / self.flops if self.flops else 1.0

    def __str__(self):
        lines = [
            f"{len(self.partitions)} partitions, {len(self.outside)} nodes outside, "
            f"{100 * self.share:.1f} % of {self.flops / 1e9:.3f} GFLOP in partitions, "
            f"{self.graphs} graphs",
            f"whole model: {_ms(self.seconds)}, eager {_ms(self.eager_seconds)}"
            f"{_ratio(self.seconds, self.eager_seconds)}",
            "",
        ]
        for p in self.partitions:
            lines.append(
                f"{p.graph} {p.id}: {_ms(p.seconds)}, eager {_ms(p.eager_seconds)}"
                f"{_ratio(p.seconds, p.eager_seconds)}, {p.flops / 1e6:.1f} MFLOP, {p.kernels}: "
                f"{_shortened(p.nodes)}"
            )
        if self.outside:
            lines += ["", "outside:"]
        counts = Counter((graph, op, reason) for graph, _, op, reason in self.outside)
        for (graph, op, reason), count in sorted(counts.items(), key=lambda item: -item[1]):
            lines.append(f"{graph}: {count} x {op}: {reason}")
        return "\n".join(lines)


def _ms(seconds):
    return "not timed" if seconds is None else f"{seconds * 1e3:.3f} ms"


def _ratio(ours, theirs):
    return f" ({theirs / ours:.2f}x)" if ours and theirs else ""


def _shortened(nodes, limit=8):
    rest = len(nodes) - limit
    return " ".join(nodes[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _as_tuple(inputs):
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _loss(result):
    """A number that depends on all results, to start the backward pass from."""
    leaves = torch.utils._pytree.tree_leaves(result)
    return sum(x.float().sum() for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad)


def _runner(function, inputs, train):
    def run():
        if train:
            _loss(function(*inputs)).backward()
        else:
            with torch.no_grad():
                function(*inputs)

    return run


def _seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _interleaved(ours, theirs):
    """The best of some rounds, each of which times both."""
    ours(), theirs()
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def _observe(programs, run):
    """What each group was given when the model ran: (call, inputs)."""
    seen = []
    calls = [call for program in programs for call in program.calls]
    for call in calls:
        call.observer = lambda call, inputs: seen.append((call, inputs))
    try:
        run()
    finally:
        for call in calls:
            call.observer = None
    return {call: inputs for call, inputs in seen}


def _eager_inputs(call, inputs):
    """Inputs for the group's sub-graph in PyTorch; where the library chose how a value lies, or does
    not need it, as many random ones."""
    given = dict(zip(call.group.inputs, inputs))
    made = []
    for node in call.fallback.graph.find_nodes(op="placeholder"):
        value, tensor = node.meta["val"], given.get(node.name)
        if tensor is None or tensor.shape != value.shape or tensor.dtype != value.dtype:
            tensor = torch.rand(value.shape)
        if tensor.dtype != value.dtype or tensor.stride() != value.stride():
            tensor = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(tensor)
        made.append(tensor)
    return made


def _time_partition(call, inputs):
    eager_inputs = _eager_inputs(call, inputs)
    call.observer = lambda call, inputs: None  # inputs stay for the next round
    try:
        with torch.no_grad():
            return _interleaved(lambda: call(*inputs), lambda: call.fallback(*eager_inputs))
    finally:
        call.observer = None


def _with_code_of_its_own(model):
    """A function that calls the model, for which nothing was compiled before: torch.compile keeps
    what it made by the code of functions, and only so many for each."""

    def call(*inputs):
        return model(*inputs)

    return types.FunctionType(call.__code__.replace(), globals(), "call", None, call.__closure__)


def compile_and_run(model, inputs, train, options):
    """(compiler, run): the compiled graphs of a model, and a function that runs it once more."""
    compiler = Compiler(options)
    compiled = torch.compile(_with_code_of_its_own(model), backend=compiler)
    run = _runner(compiled, inputs, train)
    run()
    return compiler, run


def report(model, inputs, train=False, time_partitions=True, **options):
    """Compiles a model for these inputs and tells what became of it: a Report, made to be printed.

    inputs: the arguments, a tuple or one tensor. train: the backward pass, too (of the sum of what
    the model returns; gradients are added to those of the parameters). options: see Options.
    """
    inputs, result = _as_tuple(inputs), Report()
    compiler, run = compile_and_run(model, inputs, train, Options(**options))
    programs = compiler.programs
    result.graphs = sum(graph.kind != "backward" for graph in programs + compiler.refused)
    if time_partitions:
        result.seconds, result.eager_seconds = _interleaved(run, _runner(model, inputs, train))
        seen = _observe(programs, run)
    for program in programs:
        nodes = {node.name: node for node in program.original.graph.nodes}
        result.flops += sum(flops_of(node) for node in nodes.values())
        grouped = {name for call in program.calls for name in call.group.nodes}
        result.group_flops += sum(flops_of(nodes[name]) for name in grouped)
        for call in program.calls:
            inner = call.fallback.graph.nodes
            partition = Partition(
                program.kind,
                call.group.id,
                call.group.nodes,
                call.kernel.name,
                sum(flops_of(node) for node in inner),
            )
            if time_partitions and call in seen:
                times = _time_partition(call, seen[call])
                partition.seconds, partition.eager_seconds = times
            result.partitions.append(partition)
        result.outside += _outside(program)
    for refused in compiler.refused:
        result.flops += sum(map(flops_of, refused.module.graph.nodes))
        result.outside += _outside_of_refused(refused)
    return result


def _outside(program):
    """(graph, node, op, reason) of each node that PyTorch runs."""
    rows = [
        (program.kind, entry["node"], entry["target"].removeprefix("torch.ops."), entry["reason"])
        for entry in program.bridge.description["outside"]
    ]
    for group, reason in program.refused.items():
        for name in program.bridge.groups[group].nodes:
            rows.append((program.kind, name, "group without a kernel", reason))
    return rows


def _outside_of_refused(refused):
    """(graph, node, op, reason) of each node of a graph that PyTorch runs as a whole."""
    return [
        (refused.kind, node.name, target_name(node).removeprefix("torch.ops."), refused.reason)
        for node in refused.module.graph.nodes
        if node.op == "call_function" and not is_getitem(node)
    ]


def _save_tensors(call, inputs, contents, path, folder):
    """What a group was given, as in_ID.TYPE.npy; contents: of the bridge's own constants."""
    folder.mkdir(exist_ok=True)
    given = {
        port["id"]: (tensor.shape, row_major_bytes(tensor))
        for port, tensor in zip(call.group.info["inputs"], inputs)
    }
    for op in json.loads(path.read_text())["graph"]:
        for tensor in op["inputs"]:
            id, dtype = tensor["id"], tensor["dtype"]
            if id in given:
                save_npy(folder / f"in_{id}.{dtype}.npy", dtype, *given[id])
            elif id in contents:
                save_npy(folder / f"in_{id}.{dtype}.npy", dtype, tensor["shape"], contents[id])


def export(model, inputs, folder, tensors=False, train=False, **options):
    """Writes each partition of a model as a case of graph-bench; returns the paths of the files.

    folder: made when it is not there. Besides the cases it gets `batch`, a batch file that runs all.
    tensors: also the data that each partition is given, for --load-tensors; the batch file names it.
    inputs, train, options: as of report().
    """
    folder, inputs = Path(folder), _as_tuple(inputs)
    folder.mkdir(parents=True, exist_ok=True)
    compiler, run = compile_and_run(model, inputs, train, Options(opaque=False, **options))
    programs = compiler.programs
    seen = _observe(programs, run) if tensors else {}
    paths, lines = [], []
    counts = Counter()
    for program in programs:
        number = counts[program.kind]
        counts[program.kind] += 1
        for call in program.calls:
            path = folder / f"{program.kind}{number}_group{call.group.id}.json"
            contents = program.bridge.save_graph(call.group.id, path)
            paths.append(path)
            line = f"--reset --policy={program.options.policy} --expected-n-partitions=0"
            if tensors:
                line += " --load-tensors="
            if call in seen:
                data = path.with_suffix("")
                _save_tensors(call, seen[call], contents, path, data)
                line += str(data.resolve())
            lines.append(f"{line} --case={path.name}")
    (folder / "batch").write_text("\n".join(lines) + "\n")
    return paths
