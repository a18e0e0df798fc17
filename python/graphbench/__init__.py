"""Runs PyTorch models on libgraphbench: torch.compile(model, backend="graphbench")."""

from importlib.metadata import entry_points

from torch._dynamo import register_backend

from ._backend import Options, graphbench
from ._record import record
from ._report import Report, export, report

__all__ = ["Options", "Report", "export", "record", "report"]
__version__ = "0.1.0"

# An installed package has an entry point, by which torch.compile finds the name itself.
if not any(point.name == "graphbench" for point in entry_points(group="torch_dynamo_backends")):
    register_backend(compiler_fn=graphbench, name="graphbench")
