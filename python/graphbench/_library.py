"""The bridge's shared library: where it is, its functions (bridge/graphbench_bridge.h), its errors."""

import ctypes
import ctypes.util
import json
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32
from ctypes import c_uint64, c_void_p
from pathlib import Path
from struct import Struct

import torch  # first: its OpenMP is then the one that the library uses, too

from ._rewrite import Group

MAX_NDIMS = 12
NAME = "libgraphbench_bridge.so.0"
UNIMPLEMENTED = 3
POLICIES = {"fusion": 1, "max": 3}
FPMATH = {"strict": 0, "bf16": 1, "f16": 2, "any": 3, "tf32": 4}
NONE = c_size_t(-1).value
_address = torch.Tensor.data_ptr

DTYPES = {
    torch.float16: 1,
    torch.bfloat16: 2,
    torch.float32: 3,
    torch.int32: 4,
    torch.int8: 5,
    torch.uint8: 6,
    torch.bool: 8,
    torch.float8_e5m2: 9,
    torch.float8_e4m3fn: 10,
    torch.int64: 16,
}
TORCH_DTYPES = {code: dtype for dtype, code in DTYPES.items()}


class LibraryError(RuntimeError):
    """A call of the bridge failed; `status` is its gb_status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Tensor(ctypes.Structure):
    """gb_bridge_tensor."""

    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int32),
        ("ndims", c_int32),
        ("dims", c_int64 * MAX_NDIMS),
        ("strides", c_int64 * MAX_NDIMS),
        ("layout_id", c_uint64),
        ("size", c_uint64),
    ]

    @classmethod
    def of(cls, tensor):
        """Describes a torch.Tensor, which may be a fake one."""
        self = cls(dtype=DTYPES[tensor.dtype], ndims=tensor.dim())
        self.dims[: tensor.dim()] = tuple(tensor.shape)
        self.strides[: tensor.dim()] = tensor.stride()
        return self


class Options(ctypes.Structure):
    """gb_bridge_options."""

    _fields_ = [
        ("size", c_size_t),
        ("policy", c_int),
        ("constant_parameters", c_uint8),
        ("keep_single_ops", c_uint8),
        ("opaque_outputs", c_uint8),
        ("kernels_per_group", c_uint32),
        ("disabled_ops", c_char_p),
        ("fpmath", c_int),
    ]


_HANDLE = c_void_p
_FUNCTIONS = {
    "gb_bridge_graph_create_from_json": [POINTER(_HANDLE), c_char_p, c_size_t],
    "gb_bridge_graph_create_from_pt2": [POINTER(_HANDLE), c_char_p],
    "gb_bridge_graph_destroy": [_HANDLE],
    "gb_bridge_module_create": [POINTER(_HANDLE), _HANDLE, POINTER(Options)],
    "gb_bridge_module_destroy": [_HANDLE],
    "gb_bridge_module_set_threads": [_HANDLE, c_int],
    "gb_bridge_module_renew_constants": [_HANDLE],
    "gb_bridge_module_get_graph": [_HANDLE, c_size_t, POINTER(_HANDLE)],
    "gb_bridge_group_prepare": [
        _HANDLE,
        c_size_t,
        c_size_t,
        POINTER(Tensor),
        c_size_t,
        POINTER(Tensor),
        POINTER(_HANDLE),
    ],
    "gb_bridge_kernel_execute": [_HANDLE, c_size_t, c_void_p, c_size_t, c_void_p],
    "gb_graph_save_json": [_HANDLE, c_char_p],
    "gb_graph_get_constant": [_HANDLE, c_size_t, POINTER(c_void_p), POINTER(c_size_t)],
    "gb_graph_destroy": [_HANDLE],
}


def _candidates():
    """Paths of the library, in the order in which they are tried."""
    given = os.environ.get("GRAPHBENCH_LIB")
    if given:  # a file, or the folder that it is in; then nothing else is tried
        return [str(Path(given) / NAME) if Path(given).is_dir() else given]
    packaged = Path(__file__).resolve().parent / "lib" / NAME
    return [str(packaged)] if packaged.exists() else [NAME]


def _load_path(path):
    # A wheel has the library beside the bridge, where the dynamic linker need not look.
    beside = Path(path).parent / "libgraphbench.so.0"
    if beside.exists():
        ctypes.CDLL(str(beside))
    return ctypes.CDLL(path)


_library = None


def load():
    """The library with the types of its functions set. OSError when there is none."""
    global _library
    if _library is not None:
        return _library
    problems = []
    for path in _candidates():
        try:
            library = _load_path(path)
            break
        except OSError as error:
            problems.append(str(error))
    else:
        raise OSError(
            f"{NAME} was not found: install a wheel that holds it, or name its file or folder in "
            f"GRAPHBENCH_LIB ({'; '.join(problems)})"
        )
    for name, types in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, c_int
    for name, types in (
        ("gb_bridge_last_error", []),
        ("gb_bridge_module_describe", [_HANDLE]),
        ("gb_bridge_kernel_get_name", [_HANDLE]),
        ("gb_bridge_module_get_value_name", [_HANDLE, c_size_t]),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = types, c_char_p
    library.gb_bridge_kernel_get_inplace_input.argtypes = [_HANDLE, c_size_t]
    library.gb_bridge_kernel_get_inplace_input.restype = c_size_t
    _library = library
    return library


def _check(status):
    if status != 0:
        raise LibraryError(status, load().gb_bridge_last_error().decode())


class Kernel:
    """What runs a group for one set of shapes; `outputs` describes what it makes."""

    __slots__ = ("module", "handle", "outputs", "n_inputs", "_execute", "_inputs", "_outputs")

    def __init__(self, module, handle, outputs, n_inputs):
        self.module = module  # keeps the kernel alive
        self.handle, self.outputs, self.n_inputs = handle, outputs, n_inputs
        self._execute = load().gb_bridge_kernel_execute
        # Lists of addresses as bytes: they are made faster than arrays of ctypes.
        self._inputs, self._outputs = (Struct(f"{n}P").pack for n in (n_inputs, len(outputs)))

    def execute(self, inputs, outputs):
        """inputs, outputs: lists of tensors. Returns when all is done."""
        status = self._execute(
            self.handle,
            self.n_inputs,
            self._inputs(*map(_address, inputs)),
            len(self.outputs),
            self._outputs(*map(_address, outputs)),
        )
        if status != 0:
            _check(status)

    def input_of(self, output):
        """The index of the input in whose memory an output may be written, or None."""
        index = load().gb_bridge_kernel_get_inplace_input(self.handle, output)
        return None if index == NONE else index

    @property
    def name(self):
        """The kernels that run."""
        return load().gb_bridge_kernel_get_name(self.handle).decode()


class Module:
    """A graph after the bridge's passes: its groups, and what stays outside of them and why."""

    def __init__(self, source, **options):
        """source: the graph as JSON, or the Path of a .pt2 archive. options: those of
        gb_bridge_options, by name."""
        library = load()
        self._handle, graph = _HANDLE(), _HANDLE()
        if isinstance(source, Path):
            _check(library.gb_bridge_graph_create_from_pt2(byref(graph), os.fsencode(source)))
        else:
            encoded = source.encode()
            _check(library.gb_bridge_graph_create_from_json(byref(graph), encoded, len(encoded)))
        try:
            settings = Options(size=ctypes.sizeof(Options), **options)
            _check(library.gb_bridge_module_create(byref(self._handle), graph, byref(settings)))
        finally:
            library.gb_bridge_graph_destroy(graph)
        self.description = json.loads(library.gb_bridge_module_describe(self._handle).decode())
        self.groups = [
            Group(
                entry["id"],
                entry["nodes"],
                [port["name"] for port in entry["inputs"]],
                [port["name"] for port in entry["outputs"]],
                entry,
            )
            for entry in self.description["groups"]
        ]

    def __del__(self):
        if getattr(self, "_handle", None):
            load().gb_bridge_module_destroy(self._handle)

    def set_threads(self, threads):
        """For kernels that are prepared from now on."""
        _check(load().gb_bridge_module_set_threads(self._handle, threads))

    def renew_constants(self):
        """The contents of constants have changed. Not while the module executes."""
        _check(load().gb_bridge_module_renew_constants(self._handle))

    def prepare(self, group, inputs, n_outputs):
        """The Kernel of a group for inputs as these Tensor describe them.

        LibraryError with status UNIMPLEMENTED: the framework is to run the group itself.
        """
        handle, outputs = _HANDLE(), (Tensor * n_outputs)()
        array = (Tensor * len(inputs))(*inputs)
        _check(
            load().gb_bridge_group_prepare(
                self._handle, group, len(inputs), array, n_outputs, outputs, byref(handle)
            )
        )
        return Kernel(self, handle, list(outputs), len(inputs))

    def save_graph(self, group, path):
        """Writes the ops of a group as a case of graph-bench.

        Returns the contents that constants of the bridge's own have, such as scalars: bytes by the
        tensor's id.
        """
        library, graph = load(), _HANDLE()
        _check(library.gb_bridge_module_get_graph(self._handle, group, byref(graph)))
        try:
            status = library.gb_graph_save_json(graph, os.fsencode(path))
            if status != 0:
                raise LibraryError(status, f"{path} could not be written")
            ids = {
                tensor["id"]
                for op in json.loads(Path(path).read_text())["graph"]
                for tensor in op["inputs"]
                if tensor["property_type"] == "constant"
            }
            contents = {id: _constant_bytes(library, graph, id) for id in ids}
            return {id: data for id, data in contents.items() if data}
        finally:
            library.gb_graph_destroy(graph)

    def value_name(self, id):
        """The name of the value that a tensor of a saved graph has the contents of, or None."""
        name = load().gb_bridge_module_get_value_name(self._handle, id)
        return name.decode() if name else None


def _constant_bytes(library, graph, id):
    data, size = c_void_p(), c_size_t()
    status = library.gb_graph_get_constant(graph, id, byref(data), byref(size))
    return ctypes.string_at(data, size.value) if status == 0 and data.value else None
