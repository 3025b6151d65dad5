"""Runs of the real thing on a GPU, each in a process of its own: PyTorch or ONNX Runtime, and what they took.

    python _runs.py torch|onnxruntime TASK.json

reads what is asked for, and writes what was measured to the file that the task names ("result"). Bytes. This file needs
nothing of the package, so that scripts/gpu-check takes it along.
"""
import ctypes
import importlib
import inspect
import json
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

NO_GPU = 77  # exit status of a run


class NoGpu(Exception):
    """There is none; the message says why."""


# --- The device -------------------------------------------------------------------------------------------------------

class Driver:
    """What the CUDA driver says of the first GPU that is visible."""

    def __init__(self) -> None:
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoGpu(f"the CUDA driver cannot be loaded: {error}") from error
        count, version, self.device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if self.lib.cuInit(0) != 0 or self.lib.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
            raise NoGpu("the CUDA driver shows no GPU")
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        name, uuid = ctypes.create_string_buffer(128), ctypes.create_string_buffer(16)
        self.call("cuDeviceGetName", name, 128, self.device)
        self.call("cuDeviceGetUuid", uuid, self.device)
        numbers = [ctypes.c_int(), ctypes.c_int()]
        for number, attribute in zip(numbers, (75, 76)):  # compute capability, major and minor
            self.call("cuDeviceGetAttribute", ctypes.byref(number), attribute, self.device)
        self.name, self.uuid = name.value.decode(errors="replace"), uuid.raw.hex()
        self.version = f"{version.value // 1000}.{version.value % 1000 // 10}"
        self.capability = f"{numbers[0].value}.{numbers[1].value}"

    def call(self, name: str, *args: Any) -> None:
        status = getattr(self.lib, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name} failed with status {status}")

    def make_context(self) -> None:
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def held(self) -> int:
        """Bytes of the device that are in use, by whomever. Needs a context."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value


def nvml_used() -> Dict[str, int]:
    """Bytes in use by UUID, as NVML counts, which needs no context; empty without NVML."""
    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    used: Dict[str, int] = {}
    try:
        lib, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint()
        if lib.nvmlInit_v2() != 0 or lib.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return used
        for index in range(count.value):
            handle, memory, uuid = ctypes.c_void_p(), Memory(), ctypes.create_string_buffer(96)
            if (lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
                    and lib.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
                    and lib.nvmlDeviceGetUUID(handle, uuid, 96) == 0):
                used[uuid.value.decode().replace("GPU-", "").replace("-", "")] = memory.used
    except (OSError, AttributeError):  # there is none, or one that lacks a function
        return {}
    return used


# --- PyTorch ----------------------------------------------------------------------------------------------------------

def find(name: str, batch: Optional[int]) -> Tuple[Any, Sequence[Any], Dict[str, Any]]:
    """What MODULE:FUNCTION gives, as `python -m onnxvram.record` takes it: a model, its arguments, its keywords. FUNCTION
    may take the batch size as `batch`."""
    module, _, function = name.partition(":")
    sys.path.insert(0, os.getcwd())
    if module.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        module = os.path.basename(module)[:-3]
    make = getattr(importlib.import_module(module), function)
    takes_batch = "batch" in inspect.signature(make).parameters
    model, args, kwargs = (*(make(batch=batch) if takes_batch and batch else make()), None)[:3]
    return model, args, kwargs or {}


def tensors_of(results: Any) -> List[Any]:
    import torch
    from torch.utils import _pytree
    results = results.to_tuple() if hasattr(results, "to_tuple") else results
    return [r for r in _pytree.tree_flatten(results)[0] if isinstance(r, torch.Tensor) and r.requires_grad]


class Loss:
    """The sum of the losses of all results, as the program has it; targets are made with the first ones and stay."""

    def __init__(self, kind: str) -> None:
        self.kind, self.targets = kind, None  # type: str, Optional[List[Any]]

    def __call__(self, results: Any) -> Any:
        outputs = tensors_of(results)
        if self.targets is None:
            self.targets = [self.target(o) for o in outputs]
        losses = [self.one(o, t) for o, t in zip(outputs, self.targets)]
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        return total

    def target(self, output: Any) -> Any:
        import torch
        if self.kind == "none":
            return None
        if self.kind == "mse":
            return torch.zeros_like(output, requires_grad=False)
        shape = (output.shape[0] * output.shape[1],) if output.dim() == 3 else (output.shape[0], *output.shape[2:])
        return torch.zeros(shape, dtype=torch.int64, device=output.device)

    def one(self, output: Any, target: Any) -> Any:
        from torch.nn import functional
        if self.kind == "none":
            return output
        if self.kind == "mse":
            return functional.mse_loss(output, target)
        return functional.cross_entropy(output.reshape(-1, output.shape[-1]) if output.dim() == 3 else output, target)


def make_optimizer(torch: Any, name: str, parameters: Any, implementation: Optional[str]) -> Any:
    how = {"fused": {"fused": True}, "for-loop": {"foreach": False}, "foreach": {"foreach": True}}.get(implementation or "", {})
    plain = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop,
             "adagrad": torch.optim.Adagrad, "adafactor": getattr(torch.optim, "Adafactor", None)}
    momentum = {"momentum": False, "nesterov": True}
    if name in momentum:
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, nesterov=momentum[name], **how)
    if plain.get(name) is None:
        raise ValueError(f"PyTorch {torch.__version__} has no optimizer '{name}': verify runs sgd, momentum, nesterov, adam, adamw, "
                         f"rmsprop, adagrad and adafactor")
    return plain[name](parameters, lr=1e-4, **how)


def choose_attention(torch: Any, kernel: Optional[str]) -> None:
    """One kernel alone, as --attention says."""
    if kernel in (None, "auto"):
        return
    cuda = torch.backends.cuda
    cuda.enable_flash_sdp(kernel == "flash")
    cuda.enable_mem_efficient_sdp(kernel == "efficient")
    cuda.enable_math_sdp(kernel == "math")
    if hasattr(cuda, "enable_cudnn_sdp"):
        cuda.enable_cudnn_sdp(False)
    if kernel == "math" and hasattr(torch.backends, "mha"):
        torch.backends.mha.set_fastpath_enabled(False)


def make_step(torch: Any, task: Dict[str, Any], model: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Callable[[], None]:
    """One iteration of training, or one run. The network goes to the task's device."""
    from torch.utils import _pytree
    device = task.get("device", "cuda")
    if task.get("precision"):
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[task["precision"]]
        model = model.to(dtype)
        args, kwargs = _pytree.tree_map(lambda x: x.to(dtype) if getattr(x, "is_floating_point", bool)() else x, (args, kwargs))
    if task.get("channels_last"):
        model = model.to(memory_format=torch.channels_last)
        args, kwargs = _pytree.tree_map(lambda x: x.to(memory_format=torch.channels_last) if getattr(x, "ndim", 0) == 4 else x,
                                        (args, kwargs))
    model = model.to(device)
    args, kwargs = _pytree.tree_map(lambda x: x.to(device) if isinstance(x, torch.Tensor) else x, (tuple(args), kwargs))
    amp = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(task.get("amp") or "")
    autocast = torch.autocast(device, dtype=amp, enabled=amp is not None)
    state: Dict[str, Any] = {}
    if not task.get("train"):
        model.eval()

        def run() -> None:
            state.clear()
            with torch.no_grad(), autocast:
                state["results"] = model(*args, **kwargs)
        return run
    model.train()
    optimizer = make_optimizer(torch, task["train"], model.parameters(), task.get("optimizer_impl"))
    loss = Loss(task["loss"])

    def iterate() -> None:
        if task.get("zero_grad") != "before-backward":
            optimizer.zero_grad(set_to_none=task.get("zero_grad") != "keep")
        for batch in range(int(task.get("accumulate") or 1)):
            with autocast:
                state["results"] = model(*args, **kwargs)
                state["loss"] = loss(state["results"])
            if task.get("zero_grad") == "before-backward" and batch == 0:
                optimizer.zero_grad()
            state["loss"].backward()
        optimizer.step()
    return iterate


def run_torch(task: Dict[str, Any]) -> Dict[str, Any]:
    """The allocator's peaks of the fourth iteration, as predicted, and a snapshot of the fifth."""
    before = nvml_used()
    import torch
    if not torch.cuda.is_available():
        raise NoGpu(f"PyTorch {torch.__version__} sees no GPU")
    choose_attention(torch, task.get("attention"))
    torch.backends.cudnn.benchmark = bool(task.get("cudnn_benchmark"))
    if task.get("no_tf32"):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    step = make_step(torch, task, *find(task["function"], task.get("batch")))
    for _ in range(4):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        step()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    reserved, driver = torch.cuda.memory_reserved(), Driver()
    used = nvml_used()
    torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=1 << 22)
    step()
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(task["snapshot"])
    torch.cuda.memory._record_memory_history(enabled=None)
    beside = used[driver.uuid] - before[driver.uuid] - reserved if driver.uuid in used and driver.uuid in before else None
    return {"allocated_bytes": stats["allocated_bytes.all.peak"], "reserved_bytes": stats["reserved_bytes.all.peak"],
            "beside_bytes": beside, "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                                                 "cudnn": str(torch.backends.cudnn.version())}}


# --- ONNX Runtime -----------------------------------------------------------------------------------------------------

SESSION_OPTIONS = {"enable_mem_pattern": "enable_mem_pattern", "enable_mem_reuse": "enable_mem_reuse"}


def run_onnxruntime(task: Dict[str, Any]) -> Dict[str, Any]:
    """What a session and its runs take of the device, beyond the context."""
    before = nvml_used()
    driver = Driver()
    driver.make_context()
    start = driver.held()
    import numpy
    import onnxruntime
    provider = "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise NoGpu(f"onnxruntime {onnxruntime.__version__} has no {provider}: python3 -m pip install onnxruntime-gpu")
    options, of_provider = onnxruntime.SessionOptions(), {}
    for pair in task["ort"]:
        key, _, value = pair.partition("=")
        if key == "graph_optimization_level":
            levels = onnxruntime.GraphOptimizationLevel
            options.graph_optimization_level = {"all": levels.ORT_ENABLE_ALL, "extended": levels.ORT_ENABLE_EXTENDED,
                                                "basic": levels.ORT_ENABLE_BASIC, "disabled": levels.ORT_DISABLE_ALL}[value]
        elif key in SESSION_OPTIONS:
            setattr(options, SESSION_OPTIONS[key], value not in ("0", "false", "False"))
        elif "." in key:
            options.add_session_config_entry(key, value)
        else:
            of_provider[key] = value
    session = onnxruntime.InferenceSession(task["model"], options, providers=[(provider, of_provider), "CPUExecutionProvider"])
    if provider not in session.get_providers():
        raise NoGpu(f"the session runs on {session.get_providers()}")
    feeds = {i["name"]: numpy.zeros(i["shape"], numpy.dtype(i["dtype"])) for i in task["inputs"]}
    held = [driver.held() - start]
    for _ in range(3):
        session.run(None, feeds)
        held.append(driver.held() - start)
    used = nvml_used()
    beside = used[driver.uuid] - before[driver.uuid] - held[-1] if driver.uuid in used and driver.uuid in before else None
    return {"session_bytes": held, "beside_bytes": beside, "versions": {"onnxruntime": onnxruntime.__version__}}


def main() -> int:
    with open(sys.argv[2], encoding="utf-8") as file:
        task = json.load(file)
    try:
        result = {"torch": run_torch, "onnxruntime": run_onnxruntime}[sys.argv[1]](task)
    except NoGpu as error:
        print(error, file=sys.stderr)
        return NO_GPU
    with open(task["result"], "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
