"""What PyTorch gives the partitions of an exported model, as data for graph-bench."""

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
    groups = _library.Module(Path(path), keep_single_ops=True).description["groups"]
    made = {port["name"] for group in groups for port in group["outputs"]}
    ports = {port["name"]: port for group in groups for port in group["inputs"] if port["name"] not in made}
    recorder = _Recorder(program.graph_module, set(ports))
    with torch.no_grad():
        recorder.run(*_arguments(program, inputs))
    paths = []
    for name, value in recorder.seen.items():
        port = ports[name]
        paths.append(folder / f"in_{port['id']}.{port['dtype']}.npy")
        save_npy(paths[-1], port["dtype"], value.shape, row_major_bytes(value))
    return paths
