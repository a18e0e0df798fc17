"""The backend of torch.compile."""

import contextlib
import functools
import logging
import threading
from dataclasses import dataclass, fields

import torch
from torch._C import DispatchKey
from torch._decomp import get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from ._joint import partition
from ._library import FPMATH, POLICIES, load
from ._runtime import DynamicProgram, Program, boxed, has_symbols

log = logging.getLogger("graphbench")


@dataclass
class Options:
    """What torch.compile(..., options={...}) may name.

    policy: "fusion" (a partition for each pattern) or "max" (partitions as large as can be).
    opaque: values between groups may lie as the library likes.
    keep_single_ops: groups of a single op, whatever the op.
    disabled_ops: ops that stay with PyTorch, such as "aten.relu.default".
    fpmath: "strict", or what products of f32 may be computed in: "bf16", "f16", "tf32", "any".
    constants: without gradients, weights are prepared once (and again when they change).
    """

    policy: str = "max"
    opaque: bool = True
    keep_single_ops: bool = False
    disabled_ops: tuple = ()
    fpmath: str = "strict"
    constants: bool = True

    def __post_init__(self):
        if self.policy not in POLICIES:
            raise ValueError(f"policy {self.policy!r}: one of {', '.join(POLICIES)}")
        if self.fpmath not in FPMATH:
            raise ValueError(f"fpmath {self.fpmath!r}: one of {', '.join(FPMATH)}")


def _options(given):
    names = {field.name for field in fields(Options)}
    unknown = set(given or {}) - names
    if unknown:
        raise ValueError(f"no such option: {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    return Options(**(given or {}))


_aten = torch.ops.aten
# Ops that the library runs in parts, and that PyTorch does not take apart by itself. Ops that the
# library has as one (attention, norms, interpolation) stay whole.
DECOMPOSED = [_aten.addcmul, _aten.addcdiv]
# Ops that PyTorch's tracing takes apart whatever the table above says, into many small ones with
# indices: resizing, which its own kernel does better.
KEPT_WHOLE = [
    getattr(getattr(_aten, name), overload)
    for name in (
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "upsample_linear1d",
        "upsample_bilinear2d",
        "upsample_trilinear3d",
    )
    for overload in ("vec", "default")
]
_TAKES_APART = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)
_keeping = threading.RLock()


@contextlib.contextmanager
def _kept_whole():
    """While this holds, tracing records KEPT_WHOLE as they are."""
    with _keeping:
        removed = []
        for op in KEPT_WHOLE:
            for key in _TAKES_APART:
                if key in op.py_kernels:
                    removed.append((op, key, op.py_kernels.pop(key)))
            op._dispatch_cache.clear()
        try:
            yield
        finally:
            for op, key, function in removed:
                op.py_kernels[key] = function
                op._dispatch_cache.clear()


def _static_inputs(count):
    """Indices of the inputs that are parameters and buffers, as AOTAutograd found them."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    found = getattr(metadata, "static_input_indices", None) or []
    return [index for index in found if index < count]


def _is_plain(inputs):
    """Whether all tensors are ordinary ones in the memory of the CPU."""
    return all(
        tensor.device.type == "cpu" and tensor.layout is torch.strided
        for tensor in inputs
        if isinstance(tensor, torch.Tensor)
    )


@dataclass
class Refused:
    """A graph that could not be described or compiled, and that PyTorch runs as a whole."""

    kind: str
    module: torch.fx.GraphModule
    reason: str


class Compiler:
    """Compiles the graphs of one torch.compile(); `programs` holds what was made, in that order,
    `refused` the graphs of which nothing was made, or not for all sizes."""

    def __init__(self, options):
        self.options, self.programs, self.refused = options, [], []

    def _compile(self, module, inputs, kind):
        if not _is_plain(inputs):
            return make_boxed_func(module.forward)
        load()  # that there is no library is told, whatever the graph
        constants = []
        if kind == "inference" and self.options.constants:
            constants = [i for i in _static_inputs(len(inputs)) if not inputs[i].is_inference()]
        refuse = functools.partial(self._refuse, module, kind)
        if has_symbols(module):
            return boxed(
                DynamicProgram(
                    module, constants, self.options, kind, self.programs.append, refuse
                )
            )
        try:
            program = Program(module, constants, self.options, kind)
        except Exception as error:
            refuse(error)
            return make_boxed_func(module.forward)
        self.programs.append(program)
        return boxed(program)

    def _refuse(self, module, kind, error):
        if any(refused.module is module for refused in self.refused):
            return
        reason = f"{type(error).__name__}: {error}"
        self.refused.append(Refused(kind, module, reason))
        log.warning("a graph (%s) runs in PyTorch as a whole: %s", kind, reason)
        log.debug("where it was refused", exc_info=error)

    def __call__(self, module, inputs):
        compile_graph = aot_autograd(
            fw_compiler=lambda graph, given: self._compile(graph, given, "forward"),
            bw_compiler=lambda graph, given: self._compile(graph, given, "backward"),
            inference_compiler=lambda graph, given: self._compile(graph, given, "inference"),
            decompositions=get_decompositions(DECOMPOSED),
            partition_fn=functools.partial(partition, disabled=self.options.disabled_ops),
            keep_inference_input_mutations=True,
        )
        with _kept_whole():
            return compile_graph(module, inputs)


def graphbench(module, inputs, *, options=None, **_):
    """Backend for torch.compile(model, backend="graphbench", options={...}); see Options."""
    return Compiler(_options(options))(module, inputs)
