"""What PyTorch gives the partitions of an exported model, as data for graph-bench."""

import json
from pathlib import Path

import torch
from torch.export.graph_signature import InputKind

from . import _library
from ._npy import row_major_bytes, save_npy


class _Recorder(torch.fx.Interpreter):
    """Keeps the tensors that some nodes make, as they are when they are made."""

    def __init__(self, module, names):
        super().__init__(module)
        self.names, self.seen = names, {}

    def run_node(self, n):
        value = super().run_node(n)
        if n.name in self.names and isinstance(value, torch.Tensor):
            self.seen[n.name] = value.detach().clone(memory_format=torch.contiguous_format)
        return value


def _arguments(program, inputs):
    """Values of the graph's placeholders: the model's own, then what the caller gave."""
    given = iter(torch.utils._pytree.tree_leaves(inputs))
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            yield next(given)
        elif spec.target in program.state_dict:
            yield program.state_dict[spec.target]
        else:
            yield program.constants[spec.target]


def record(path, inputs, folder):
    """Runs the model of a .pt2 archive in PyTorch, and writes what its partitions are given there.

    inputs: the arguments, a tuple or one tensor. folder: made when it is not there; it gets a file
    in_ID.TYPE.npy for each input of the case that graph-bench makes of the archive, so that

        graph-bench --mode=C --case=model.pt2 --load-tensors=folder

    computes with the values of this run, also where nodes outside of partitions make them. Inputs of
    another batch than the archive's need its --mb, too. Returns the paths of the files.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    program = torch.export.load(path)
    model = program.state_dict.keys() | program.constants.keys()
    own = {spec.arg.name for spec in program.graph_signature.input_specs if spec.target in model}
    names = {tensor: name for tensor, name in _case_inputs(Path(path), folder).items() if name not in own}
    recorder = _Recorder(program.graph_module, set(names.values()))
    with torch.no_grad():
        recorder.run(*_arguments(program, inputs))
    paths = []
    for (id, dtype), name in names.items():
        value = recorder.seen[name]
        paths.append(folder / f"in_{id}.{dtype}.npy")
        save_npy(paths[-1], dtype, value.shape, row_major_bytes(value))
    return paths


def _case_inputs(path, folder):
    """From (id, data type) of the tensors that the archive's case reads and does not make to the names of values."""
    module, case = _library.Module(path, keep_single_ops=True), folder / "case.json"
    module.save_graph(_library.NONE, case)
    ops = json.loads(case.read_text())["graph"]
    case.unlink()
    made = {tensor["id"] for op in ops for tensor in op["outputs"]}
    read = {(tensor["id"], tensor["dtype"]) for op in ops for tensor in op["inputs"] if tensor["id"] not in made}
    names = {(id, dtype): module.value_name(id) for id, dtype in sorted(read)}
    return {tensor: name for tensor, name in names.items() if name is not None}
