"""What torch.compile calls: a re-written graph whose groups run on the library."""

import logging
import operator
import threading
import weakref

import torch
from torch.fx import Node
from torch.fx.graph import _BoxedCodeGen
from torch.multiprocessing.reductions import StorageWeakRef

from . import _library
from ._rewrite import Group, merge_getitems, replace_groups, specialise
from ._writer import graph_to_json, is_getitem, tensor_of

log = logging.getLogger("graphbench")

# Sizes for which a graph with symbolic sizes is compiled; for more, PyTorch runs it.
MAX_SPECIALISATIONS = 16


def _empty(sizes, strides, dtype):
    return torch.empty_strided(sizes, strides, dtype=dtype)


# What PyTorch's own compiler calls: a third of the time, where this version has it.
_empty = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", _empty)


class GroupCall:
    """One group as a function: takes its inputs, allocates its outputs, runs the kernel.

    One output is returned as it is, several as a tuple. Inputs and outputs are not copied.
    """

    def __init__(self, group, fallback, values, from_outside):
        """values: (fake) tensors by name. from_outside: names of values that ops of PyTorch make, of
        this graph or, for a backward one, of the forward graph: these do not always lie in memory as
        their meta says, nor are of its type."""
        self.__name__ = self.__qualname__ = f"group_{group.id}"
        self.__module__ = "graphbench"
        self.group, self.fallback = group, fallback
        self.kernel = None
        self._checks = [
            (index, tuple(values[name].stride()), values[name].dtype)
            for index, name in enumerate(group.inputs)
            if name in from_outside
        ]
        self.outputs = []  # how they lie: (sizes, strides, dtype) of each
        self.values = values
        self.observer = None  # called with (self, inputs) before each run, which keeps its inputs
        self.reused = []  # for each output the input whose memory it takes, or None; []: none does

    def set_kernel(self, kernel):
        """The kernel for the shapes of the graph; how outputs are allocated follows from it."""
        self.kernel, self.outputs = kernel, []
        for port, made in zip(self.group.info["outputs"], kernel.outputs):
            value = self.values[port["name"]]
            sizes, strides = tuple(value.shape), tuple(value.stride())
            if made.layout_id:
                self.outputs.append(((made.size,), (1,), torch.uint8))
            elif port.get("opaque"):  # only groups read it: it lies as the library likes
                self.outputs.append((sizes, tuple(made.strides[: made.ndims]), value.dtype))
            elif _lies_like(made, value):
                self.outputs.append((sizes, strides, value.dtype))
            else:
                raise RuntimeError(
                    f"{self.__name__}: {port['name']} lies otherwise than its meta: "
                    f"{list(made.strides[: made.ndims])}, not {list(strides)}"
                )

    def reuse(self, dying):
        """Writes outputs where inputs are that nobody reads afterwards.

        dying: by their index, how these inputs lie: (sizes, strides, dtype).
        """
        reused, free = [], dict(dying)
        for position, description in enumerate(self.outputs):
            index = self.kernel.input_of(position)
            fits = index is not None and free.get(index) == description
            reused.append(index if fits else None)
            if fits:
                del free[index]
        self.reused = reused if any(index is not None for index in reused) else []

    def __call__(self, *inputs):
        for index, strides, dtype in self._checks:
            if inputs[index].stride() != strides or inputs[index].dtype != dtype:
                inputs = self._as_meta_says(inputs)
                break
        if self.observer is not None:
            self.observer(self, inputs)
        if self.reused and self.observer is None:
            outputs = [
                _empty(*description) if index is None else inputs[index]
                for description, index in zip(self.outputs, self.reused)
            ]
        else:
            outputs = [_empty(*description) for description in self.outputs]
        self.kernel.execute(inputs, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _as_meta_says(self, inputs):
        inputs = list(inputs)
        for index, strides, dtype in self._checks:
            tensor = inputs[index]
            if tensor.stride() != strides or tensor.dtype != dtype:
                copy = torch.empty_strided(tensor.shape, strides, dtype=dtype)
                inputs[index] = copy.copy_(tensor)
        return inputs


def _made_by(node):
    """(GroupCall, position) of the output that a node of a re-written graph is, or None."""
    call, position = node, 0
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        call, position = node.args
    is_tuple = call is not node
    if isinstance(call.target, GroupCall) and is_tuple == (len(call.target.outputs) > 1):
        return call.target, position
    return None


def _reuse_memory(graph):
    """Calls take the memory of what other calls have made for them alone."""
    for node in graph.nodes:
        if not isinstance(node.target, GroupCall):
            continue
        dying = {}
        for index, source in enumerate(node.args):
            made = _made_by(source)
            if made is not None and list(source.users) == [node] and node.args.count(source) == 1:
                call, position = made
                dying[index] = call.outputs[position]
        if dying:
            node.target.reuse(dying)


def _lies_like(made, value):
    sizes, strides = tuple(value.shape), value.stride()
    if tuple(made.dims[: made.ndims]) != sizes:
        return False
    return 0 in sizes or all(
        size == 1 or made.strides[i] == strides[i] for i, size in enumerate(sizes)
    )


class Contents:
    """What some tensors hold: told by the tensors, the memory that they lie in, and their version
    counters. Addresses alone do not tell: memory that was freed comes again."""

    def __init__(self, tensors):
        self._tensors = [weakref.ref(tensor) for tensor in tensors]
        self._versions = [tensor._version for tensor in tensors]
        # While these are held, no other memory has the same number.
        self._memory = [StorageWeakRef(tensor.untyped_storage()) for tensor in tensors]
        self._places = [memory.cdata for memory in self._memory]

    def are_in(self, tensors):
        """Whether these tensors are the same ones, unchanged as far as they tell."""
        return (
            [tensor._version for tensor in tensors] == self._versions
            and all(map(operator.is_, [tensor() for tensor in self._tensors], tensors))
            and [tensor.untyped_storage()._cdata for tensor in tensors] == self._places
        )


class Program:
    """A graph with fixed sizes, its groups on the library. Called with a list of inputs."""

    def __init__(self, module, constants, options, kind):
        """module: each node has meta["val"]; changed. constants: indices of inputs whose contents
        rarely change. options: Options. kind: "inference", "forward" or "backward", for reports."""
        merge_getitems(module.graph)
        self.kind, self.options, self.original = kind, options, module
        self.placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        written = _written_inputs(module.graph)
        self.constants = [
            i
            for i in constants
            if self.placeholders[i] not in written and tensor_of(self.placeholders[i]) is not None
        ]
        self._lock = threading.Lock()
        self._prepared = None  # Contents of the constants that kernels have prepared
        self._build_best()

    def _build_best(self):
        self.refused = {}  # group id -> why the library has no kernel for it
        names = [self.placeholders[i].name for i in self.constants]
        self._text = graph_to_json(self.original, names)
        if not self._build(opaque=self.options.opaque):
            self._build(opaque=False)
        self._used_constants = self._find_used_constants()

    def _build(self, opaque):
        """Makes groups and their kernels. False: a group was refused whose inputs were opaque."""
        options = self.options
        self.bridge = _library.Module(
            self._text,
            policy=_library.POLICIES[options.policy],
            constant_parameters=bool(self.constants),
            keep_single_ops=options.keep_single_ops,
            opaque_outputs=opaque,
            disabled_ops=",".join(options.disabled_ops).encode() or None,
            fpmath=_library.FPMATH[options.fpmath],
        )
        values = {n.name: v for n in self.original.graph.nodes if (v := tensor_of(n)) is not None}
        kernels = self._prepare(values)
        if opaque and self.refused:
            self.refused = {}
            return False
        trusted = {name for group in self.bridge.groups for name in group.outputs}
        if self.kind != "backward":  # what PyTorch calls these graphs with is as it said
            trusted |= {node.name for node in self.placeholders}
        self.calls = []

        def make_call(group, fallback):
            call = GroupCall(group, fallback, values, set(group.inputs) - trusted)
            call.set_kernel(kernels[group.id])
            self.calls.append(call)
            return call

        self.module = replace_groups(self.original, self._order(), make_call)
        _reuse_memory(self.module.graph)
        self.module.graph.set_codegen(_BoxedCodeGen())  # inputs can go as soon as they were read
        self.module.recompile()
        self._run = self.module.forward
        return True

    def _prepare(self, values):
        """Kernels by the id of their group. Those that the library refuses go to self.refused.

        For the threads of now: torch.compile compiles anew when their number changes.
        """
        self.bridge.set_threads(torch.get_num_threads())
        kernels, made = {}, {}
        for entry in self.bridge.description["order"]:
            if "group" not in entry:
                continue
            group = self.bridge.groups[entry["group"]]
            inputs = [made.get(name) or _library.Tensor.of(values[name]) for name in group.inputs]
            try:
                kernel = self.bridge.prepare(group.id, inputs, len(group.outputs))
            except _library.LibraryError as error:
                if error.status != _library.UNIMPLEMENTED:
                    raise
                self.refused[group.id] = str(error)
                log.info("group %d stays with PyTorch: %s", group.id, error)
                continue
            kernels[group.id] = kernel
            made.update(zip(group.outputs, kernel.outputs))
        return kernels

    def _order(self):
        """What is executed; the nodes of a group that was refused run one by one."""
        order = []
        for entry in self.bridge.description["order"]:
            if "node" in entry:
                order.append(entry["node"])
            elif entry["group"] in self.refused:
                order.extend(self.bridge.groups[entry["group"]].nodes)
            else:
                order.append(self.bridge.groups[entry["group"]])
        return order

    def _find_used_constants(self):
        read = {
            port["name"]
            for call in self.calls
            for port in call.group.info["inputs"]
            if port["constant"]
        }
        return [i for i in self.constants if self.placeholders[i].name in read]

    def __call__(self, arguments):
        if self._used_constants:
            if self._prepared is None:
                self._keep_counted_constants(arguments)
            tensors = [arguments[i] for i in self._used_constants]
            if self._prepared is None or not self._prepared.are_in(tensors):
                self._renew(tensors)
        return self._run(arguments)

    def _renew(self, tensors):
        with self._lock:
            if self._prepared is not None and not self._prepared.are_in(tensors):
                self.bridge.renew_constants()
            self._prepared = Contents(tensors)

    def _keep_counted_constants(self, arguments):
        """Before the first run: tensors made in inference mode do not tell when they change."""
        with self._lock:
            counted = [i for i in self.constants if not arguments[i].is_inference()]
            if self._prepared is None and counted != self.constants:
                self.constants = counted
                self._build_best()


class DynamicProgram:
    """A graph with symbolic sizes: a Program for each set of sizes it is called with."""

    def __init__(self, module, constants, options, kind, made, refused):
        """made: called with each Program. refused: called with the exception where there is none,
        and PyTorch runs the graph."""
        self.module, self.constants, self.options, self.kind = module, constants, options, kind
        self._made, self._refused = made, refused
        self._programs, self._lock = {}, threading.Lock()

    def __call__(self, arguments):
        key = tuple(
            (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
            for value in arguments
        )
        program = self._programs.get(key)
        if program is None:
            program = self._specialise(key, arguments)
        if program is None:
            return self.module(*arguments)
        return program(arguments)

    def _specialise(self, key, arguments):
        with self._lock:
            if key in self._programs:
                return self._programs[key]
            if len(self._programs) >= MAX_SPECIALISATIONS:
                return None
            self._programs[key] = None
            try:
                special = specialise(self.module, arguments)
                program = Program(special, self.constants, self.options, self.kind)
            except Exception as error:
                self._refused(error)
                return None
            self._programs[key] = program
            self._made(program)
            return program


def boxed(program):
    """A program as AOTAutograd calls it: a function that takes a list, which it empties."""

    def run(arguments):
        return program(arguments)

    run._boxed_call = True
    return run


def _written_inputs(graph):
    """Placeholders that an op of the graph writes to."""
    written = set()
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        for argument, value in zip(schema.arguments, node.args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                if isinstance(value, Node) and value.op == "placeholder":
                    written.add(value)
    return written


def has_symbols(module):
    """Whether sizes of the graph are symbols."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder":
            continue
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return True
        if isinstance(value, torch.Tensor):
            if any(not isinstance(n, int) for n in (*value.shape, *value.stride())):
                return True
    return False
