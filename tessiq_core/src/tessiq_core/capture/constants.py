"""The content of what a traced graph carries along: tensors lifted as attributes, script objects, Python objects."""

from __future__ import annotations

import ctypes
import hashlib
import itertools

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.weak import WeakIdKeyDictionary

from tessiq_core.errors import InvalidArgument

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_hashes = WeakIdKeyDictionary()  # tensor -> (version, hash); forgotten with the tensor
_tokens = WeakIdKeyDictionary()  # object -> a number no other object of this process has
_numbers = itertools.count()


def content_hash(tensor: torch.Tensor, name: str) -> str:
    """`sha256:…` over dtype, device, shape, strides and elements of a lifted tensor. `name` is for the error.

    Kept by identity and version while the tensor lives, so a large constant is read once. Tensors whose elements
    cannot be read plainly (sparse, quantized, subclasses) get a token of this process that no other tensor has: two
    equal ones then miss each other, which is safe.

    Raises InvalidArgument for a tensor without elements (a fake one).
    """
    if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.is_meta:
        raise InvalidArgument(
            f"tessiq: constant {name!r} of the traced graph has no elements (it is {type(tensor).__name__} on "
            f"{tensor.device}); a lifted constant must be a real tensor"
        )
    if type(tensor) not in _PLAIN or tensor.layout is not torch.strided or tensor.is_quantized:
        return object_token(tensor)
    version = None if tensor.is_inference() else tensor._version
    if version is not None and tensor in _hashes:
        known_version, known = _hashes[tensor]
        if known_version == version:
            return str(known)
    with _disable_current_modes(), torch.no_grad():
        digest = _digest(tensor)
    if version is not None:
        _hashes[tensor] = (version, digest)
    return digest


def _digest(tensor: torch.Tensor) -> str:
    header = f"{tensor.dtype}|{tensor.device}|{tuple(tensor.shape)}|{tensor.stride()}"
    digest = hashlib.sha256(header.encode())
    elements = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if elements.numel():
        digest.update(ctypes.string_at(elements.data_ptr(), elements.numel() * elements.element_size()))
    return f"sha256:{digest.hexdigest()}"


def object_token(value: object) -> str:
    """A text for an object that means nothing outside this process: the same while it lives, never reused after.

    An object that cannot be referred to weakly gets another text each time, so it equals nothing.
    """
    kind = f"object:{type(value).__module__}.{type(value).__qualname__}"
    if type(value).__weakrefoffset__ == 0:
        return f"{kind}:{next(_numbers)}"
    if value not in _tokens:
        _tokens[value] = next(_numbers)
    return f"{kind}:{_tokens[value]}"
