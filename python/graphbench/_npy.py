"""Files of NumPy's format, without NumPy."""

import torch

# As .npy files have them; types that NumPy lacks are stored as their bits.
_NPY = {
    "f32": "<f4",
    "s32": "<i4",
    "s64": "<i8",
    "s8": "|i1",
    "bf16": "<u2",
    "f16": "<u2",
}


def save_npy(path, dtype, shape, data):
    """A file of version 1.0 of NumPy's format; data: bytes in row-major order."""
    sizes = "".join(f"{size}, " for size in shape)
    descriptor = _NPY.get(dtype, "|u1")
    header = f"{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({sizes}), }}"
    padding = -(10 + len(header) + 1) % 64
    header = header.encode() + b" " * padding + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)


def row_major_bytes(tensor):
    """The elements of a tensor, whatever its layout."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
