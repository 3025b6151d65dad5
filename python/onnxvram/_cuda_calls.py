"""Composite operators whose parts depend on the device, divided as PyTorch's CUDA build divides them.

Fake tensors have CUDA's keys, but scaled_dot_product_attention, recurrent layers and batch norm ask for a driver or for
cuDNN, and fall back to other operators without them. `composites()` gives them CUDA's parts while it is entered: those of
devices of compute capability 8.0 and later, with the default switches of torch.backends. By PyTorch's
ATen/native/transformers/attention.cpp and cuda/sdp_utils.cpp, ATen/native/cudnn/RNN.cpp, ATen/native/Normalization.cpp,
GridSampler.cpp and Linear.cpp.
"""
import contextlib
from typing import Any, Iterator, List, Optional, Tuple

import torch
from torch.nn import functional as F

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
CAPABILITY = (9, 0)  # of an H100; networks ask for it, too (grouped products of experts)
# From 2.14 on kernels take heads of keys and values for groups of queries, and tensors without a batch.
TAKES_GROUPS = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 14)


def number(size: Any) -> int:
    """A size, or the one of the example, so that a choice between kernels does not fix a symbol."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def needs_log_sum(*tensors: Any) -> bool:
    return bool(torch.is_grad_enabled() and any(t.requires_grad for t in tensors))


def same_heads(query: Any, key: Any, value: Any, grouped: bool) -> bool:
    sizes = [[number(t.shape[i]) for t in (query, key, value)] for i in (0, 1)]
    return len(set(sizes[0])) == 1 and (grouped or TAKES_GROUPS or len(set(sizes[1])) == 1)


def attention_kernel(query: Any, key: Any, value: Any, mask: Any, grouped: bool) -> str:
    """"flash", "efficient" or "math"."""
    tensors = (query, key, value)
    if any(t.dim() != 4 or number(t.stride(-1)) != 1 and number(t.shape[-1]) != 1 for t in tensors):
        return "math"
    widths = [number(t.shape[-1]) for t in tensors]
    if any(t.dtype != query.dtype for t in tensors) or any(number(t.shape[2]) == 0 for t in tensors):
        return "math"
    if (mask is None and query.dtype in HALVES and len(set(widths)) == 1 and widths[0] <= 256
            and same_heads(query, key, value, grouped)):
        return "flash"
    alignment = 8 if query.dtype in HALVES else 4
    if (query.dtype in (*HALVES, torch.float32) and (TAKES_GROUPS or not grouped) and widths[0] == widths[1]
            and not any(w % alignment for w in widths) and same_heads(query, key, value, False)):
        return "efficient"
    return "math"


def aligned_mask(mask: Any, query: Any, key: Any) -> Any:
    if any(number(s) % 8 for s in mask.stride()[:-1]) or number(mask.stride(-1)) != 1:
        last = mask.shape[-1]
        mask = F.pad(mask, (0, 8 - last % 8))[..., :last]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
              scale: Optional[float] = None, enable_gqa: bool = False) -> Any:
    if TAKES_GROUPS and all(t.dim() == 3 for t in (query, key, value)):
        mask = None if attn_mask is None else attn_mask[(None,) * (4 - attn_mask.dim())]
        batched: Any = attention(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), mask, dropout_p, is_causal, scale=scale,
                                 enable_gqa=enable_gqa)
        return batched.squeeze(0)
    kernel = attention_kernel(query, key, value, attn_mask, enable_gqa)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        outside = torch.scalar_tensor(float("-inf"), dtype=query.dtype, device=attn_mask.device)
        attn_mask = torch.where(attn_mask, 0.0, outside)
    if kernel == "flash":
        width = number(query.shape[-1])
        padded = [F.pad(t, (0, 8 - width % 8)) if width % 8 else t for t in (query, key, value)]
        result = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False,
                                                          scale=width ** -0.5 if scale is None else scale)[0]
        return result[..., :width] if width % 8 else result
    if kernel == "efficient":
        if attn_mask is not None:
            attn_mask = aligned_mask(attn_mask, query, key)
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, needs_log_sum(query, key, value), dropout_p, is_causal, scale=scale)[0]
    grouped = {"enable_gqa": True} if enable_gqa else {}
    return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale,
                                                   **grouped)[0]


def recurrent(mode: int, data: Any, state: Any, cell: Any, params: List[Any], has_biases: bool, layers: int, dropout: float,
              train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Any, ...]:
    if torch.is_autocast_enabled("cuda"):
        with torch.autocast("cuda", enabled=False):
            data, state, cell, *params = (t if t is None else t.to(torch.get_autocast_dtype("cuda")) for t in (data, state, cell, *params))
            return recurrent(mode, data, state, cell, params, has_biases, layers, dropout, train, bidirectional, batch_first)
    hidden, projected = state.shape[2], 0
    if cell is not None and cell.shape[2] != hidden:
        hidden, projected = cell.shape[2], hidden
    results = aten._cudnn_rnn(data, params, (4 if has_biases else 2) + (projected != 0), None, state, cell, mode, hidden,
                              projected, layers, batch_first, dropout, train, bidirectional, [], None)
    return tuple(results[:3])


def corrected(func: Any, args: Any, results: Any) -> Any:
    """What the kernel gives, where the shape function of fake tensors says something else: cuDNN's results of recurrent layers
    are in the order of time, whatever the order of the input; the state of dropout in the efficient attention is on the host."""
    if func is aten._cudnn_rnn.default and args[10] and not args[14]:
        first = results[0]
        return (first.new_empty((first.shape[1], first.shape[0], first.shape[2])).transpose(0, 1), *results[1:])
    if func is aten._scaled_dot_product_efficient_attention.default:
        return (*results[:2], *(torch.empty((), dtype=torch.int64, device="cpu") for _ in range(2)))
    return results


def lstm(data: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
         bidirectional: bool, batch_first: bool) -> Any:
    return recurrent(2, data, hx[0], hx[1], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


def one_state(mode: int) -> Any:
    def layer(data: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
              bidirectional: bool, batch_first: bool) -> Any:
        return recurrent(mode, data, hx, None, params, has_biases, num_layers, dropout, train, bidirectional,
                         batch_first)[:2]
    return layer


def cudnn_normalizes(data: Any, weight: Any, bias: Any, mean: Any, training: bool, eps: float) -> bool:
    if data.dim() < 3 or weight is None or bias is None or data.dtype == torch.bfloat16 or weight.dtype == torch.bfloat16:
        return False
    if data.dtype == torch.float16 and weight.dtype != torch.float32 or (mean is None and not training) or eps < 1e-5:
        return False
    count = 1
    for size in data.shape:
        count *= number(size)
    return number(data.shape[0]) <= (880801 if training else 65535) and count < 2 ** 31 - 1


def batch_norm(data: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
               eps: float, cudnn_enabled: bool) -> Any:
    if not (cudnn_enabled and cudnn_normalizes(data, weight, bias, running_mean, training, eps)):
        return aten.native_batch_norm(data, weight, bias, running_mean, running_var, training, momentum, eps)[0]
    layout = torch.channels_last if data.dim() == 4 and data.is_contiguous(memory_format=torch.channels_last) and \
        not data.is_contiguous() else torch.contiguous_format
    return aten.cudnn_batch_norm(data.contiguous(memory_format=layout), weight.contiguous(), bias.contiguous(), running_mean,
                                 running_var, training, momentum, eps)[0]


def grid_sampler(data: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    if data.dim() == 5:
        return aten.grid_sampler_3d(data, grid, interpolation_mode, padding_mode, align_corners)
    if (interpolation_mode == 0 and padding_mode == 0 and align_corners and number(data.shape[1]) <= 1024
            and data.dtype in (torch.float16, torch.float32, torch.float64)):
        return aten.cudnn_grid_sampler(data, grid)
    return aten.grid_sampler_2d(data, grid, interpolation_mode, padding_mode, align_corners)


def linear(data: Any, weight: Any, bias: Any = None) -> Any:
    """Linear.cpp adds the bias of what is not contiguous in place, unless a dispatch mode, such as the recorder's, is on."""
    if bias is None or data.dim() < 3 or data.is_contiguous():
        return aten.linear.default.decompose(data, weight, bias)
    return torch.matmul(data, weight.t()).add_(bias)


def one_hot(data: Any, num_classes: int = -1) -> Any:
    if num_classes < 0:
        num_classes = int(data.max().item()) + 1  # which a recording refuses
    result = torch.zeros((*data.shape, num_classes), dtype=data.dtype, device=data.device)
    return result.scatter_(-1, data.unsqueeze(-1), 1)


# Their parts are the same on every device, but C++ reads the sizes of the input as numbers, which would fix symbols.
RESIZED = ("upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d", "upsample_nearest2d", "_upsample_nearest_exact2d",
           "upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "upsample_nearest3d",
           "_upsample_nearest_exact3d", "upsample_trilinear3d")


def resize(name: str) -> Any:
    op = getattr(aten, name).default

    def resized(data: Any, output_size: Any, *rest: Any) -> Any:
        *align, factors = rest
        sizes = output_size if output_size is not None else [torch.sym_int(s * f) for s, f in zip(data.shape[2:], factors)]
        return op(data, sizes, *align, *(factors if factors is not None else [None] * len(sizes)))
    return resized


@contextlib.contextmanager
def composites() -> Iterator[None]:
    """Autocast is as on a GPU that has bfloat16, too: without one PyTorch turns it off where a network asks for it. The
    compute capability is CAPABILITY, which cannot be asked for without a driver."""
    library = torch.library.Library("aten", "IMPL")
    common, has_bfloat16 = torch.cuda.amp.common, torch.cuda.is_bf16_supported
    lacks_cuda, capability = common.amp_definitely_not_available, torch.cuda.get_device_capability
    try:
        common.amp_definitely_not_available, torch.cuda.is_bf16_supported = lambda: False, lambda *_, **__: True
        torch.cuda.get_device_capability = lambda *_, **__: CAPABILITY
        for name, parts in {"scaled_dot_product_attention": attention, "lstm.input": lstm, "gru.input": one_state(3),
                            "rnn_tanh.input": one_state(1), "rnn_relu.input": one_state(0), "batch_norm": batch_norm,
                            "grid_sampler": grid_sampler, "linear": linear, "one_hot": one_hot,
                            **{f"{name}.vec": resize(name) for name in RESIZED}}.items():
            library.impl(name, parts, "AutogradCUDA")
        library.impl("cudnn_grid_sampler", lambda data, grid: data.new_empty((*data.shape[:2], *grid.shape[1:3])), "Meta")
        yield
    finally:
        common.amp_definitely_not_available, torch.cuda.is_bf16_supported = lacks_cuda, has_bfloat16
        torch.cuda.get_device_capability = capability
        library._destroy()
