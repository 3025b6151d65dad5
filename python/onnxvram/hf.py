"""python -m onnxvram.hf ID_OR_FOLDER: a network of transformers by the name it has on the hub, or by its config.json.

transformers builds it on the meta device, so that no weights are read or made; onnxvram.record() writes its program, and
the program answers. An id needs a network connection for config.json alone, a folder needs none.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional, Sequence

from .__main__ import find_program
from ._errors import OnnxvramError, RecordingError, UsageError
from ._record import needed_torch, record

FAILED, USAGE = 1, 2
TASKS = {"causal-lm": "AutoModelForCausalLM", "masked-lm": "AutoModelForMaskedLM", "seq2seq-lm": "AutoModelForSeq2SeqLM",
         "sequence-classification": "AutoModelForSequenceClassification",
         "token-classification": "AutoModelForTokenClassification", "question-answering": "AutoModelForQuestionAnswering",
         "image-classification": "AutoModelForImageClassification", "ctc": "AutoModelForCTC",
         "speech-seq2seq": "AutoModelForSpeechSeq2Seq", "features": "AutoModel"}
SEQUENCE, SAMPLES = 512, 16000  # tokens; samples of sound: a second


def needed_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UsageError("hf needs transformers, and it is not installed: pip install transformers") from error
    return transformers


def build(source: str, task: Optional[str], dtype: Optional[str]) -> Any:
    """The network on the meta device, in the type that its config names."""
    torch, transformers = needed_torch(), needed_transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(source)
    except Exception as error:  # of the hub's client, of JSON, of files
        raise UsageError(f"cannot read the config of '{source}': {first_line(error)}; expected a folder with config.json, or an id "
                         f"of the hub and a connection to it") from error
    kind = getattr(transformers, (config.architectures or [""])[0], None)
    if task is not None:
        kind = getattr(transformers, TASKS[task])
    made = getattr(torch, dtype) if dtype else getattr(config, "dtype", None) or torch.float32
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(made)
        with torch.device("meta"):
            if kind is None or task is not None:
                return (kind or transformers.AutoModel).from_config(config)
            return kind(config)
    except Exception as error:
        raise UsageError(f"transformers {transformers.__version__} cannot build '{source}': {first_line(error)}") from error
    finally:
        torch.set_default_dtype(before)


def first_line(error: BaseException) -> str:
    lines = str(error).strip().split("\n")
    return f"{type(error).__name__}: {lines[0]}"


def add_lora(model: Any, rank: int) -> Any:
    """Adapters where peft puts them for this kind of network; on all linear layers where it knows none."""
    try:
        import peft
    except ImportError as error:
        raise UsageError("--lora needs peft, and it is not installed: pip install peft") from error
    try:
        return peft.get_peft_model(model, peft.LoraConfig(r=rank))
    except ValueError:  # no layers are named for this kind
        return peft.get_peft_model(model, peft.LoraConfig(r=rank, target_modules="all-linear"))


def forward_of(model: Any) -> Any:
    import inspect
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return inspect.signature(base.forward).parameters


def example(model: Any, batch: int, sequence: int, train: bool) -> Dict[str, Any]:
    """Arguments of forward by name, on the meta device: the main input, what a decoder reads, and labels for training."""
    import torch
    config, names = model.config, forward_of(model)
    vision = getattr(config, "vision_config", config)

    def of(*shape: int, dtype: Any = torch.int64) -> Any:
        return torch.empty(shape, dtype=dtype, device="meta")

    main, floats = model.main_input_name, next(model.parameters()).dtype
    if main == "pixel_values":
        size = getattr(vision, "image_size", 224)
        high, wide = size if isinstance(size, (list, tuple)) else (size, size)
        given = {main: of(batch, getattr(vision, "num_channels", 3), high, wide, dtype=floats)}
    elif main == "input_features":
        given = {main: of(batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=floats)}
    elif main == "input_values":
        given = {main: of(batch, SAMPLES, dtype=floats)}
    elif main == "input_ids":
        given = {main: of(batch, sequence)}
    else:
        raise UsageError(f"expected a network that reads input_ids, pixel_values, input_features or input_values, "
                         f"{type(model).__name__} reads {main}: record it with onnxvram.record()")
    if getattr(config, "is_encoder_decoder", False):
        if getattr(config, "decoder_start_token_id", None) is None:  # which labels are shifted with
            config.decoder_start_token_id = 0
        if not (train and "labels" in names):
            given["decoder_input_ids"] = of(batch, sequence)
    takes_labels = train and "labels" in names and not type(model).__name__.endswith("CTC")  # whose loss looks at values
    if takes_labels:
        per_token = any(part in type(model).__name__ for part in ("LM", "Token", "Conditional", "Peft"))
        given["labels"] = of(batch, sequence) if per_token and main != "pixel_values" else of(batch)
    if train and "start_positions" in names:
        given.update(start_positions=of(batch), end_positions=of(batch))
    return given


def option_of(words: Sequence[str], name: str) -> bool:
    return any(word == name or word.startswith(name + "=") for word in words)


def positive(word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found '{word}'")
    return int(word)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="onnxvram hf", allow_abbrev=False, description=(
        "How much GPU memory a network of transformers takes in PyTorch. Other options are those of onnxvram: --train adamw, "
        "--budget 'RTX 4090', --checkpoint all, --weight-format nf4, --max-batch ..."))
    made.add_argument("source", metavar="ID_OR_FOLDER", help="an id on the hub, or a folder with config.json")
    made.add_argument("--task", choices=sorted(TASKS), help="which head (default: the architecture that the config names)")
    made.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="of the weights (default: the config's)")
    made.add_argument("--lora", type=positive, metavar="RANK", help="train adapters of this rank (needs peft)")
    made.add_argument("-b", "--batch", type=positive, default=1, metavar="N", help="the batch size (default: 1)")
    made.add_argument("--sequence", type=positive, default=SEQUENCE, metavar="N",
                      help=f"tokens of each row, without padding (default: {SEQUENCE})")
    made.add_argument("--save", metavar="FILE", help="keep the program of the network, for onnxvram FILE")
    made.add_argument("--program", help=argparse.SUPPRESS)  # where the program that started this one lies
    return made


def answer(options: argparse.Namespace, rest: List[str]) -> int:
    train = option_of(rest, "--train")
    model = build(options.source, options.task, options.dtype)
    if train:
        model.config.use_cache = False  # as the Trainer of transformers does
    if options.lora is not None:
        model = add_lora(model, options.lora)
    given = example(model, options.batch, options.sequence, train)
    shapes: Optional[Dict[str, Any]] = None
    bindings: List[str] = []
    if option_of(rest, "--max-batch") or option_of(rest, "--max-dim"):
        shapes = {name: {0: "batch"} for name in given}
        for name in ("input_ids", "labels", "decoder_input_ids"):
            if name in given and given[name].dim() == 2:
                shapes[name][1] = "sequence"
        bindings = [] if option_of(rest, "--max-batch") else [f"--batch={options.batch}"]
        if option_of(rest, "--max-batch") and any(1 in axes for axes in shapes.values()):
            bindings = [f"--dim=sequence={options.sequence}"]
    with tempfile.TemporaryDirectory(prefix="onnxvram-") as folder:
        name = os.path.basename(os.path.abspath(options.source)) or "network"
        path = options.save or os.path.join(folder, name + ".program.json")
        record(model, (), given, dynamic_shapes=shapes, path=path, modes=("training" if train else "inference",),
               progress=sys.stderr.isatty())
        sizes = ", ".join(f"{key} {'x'.join(map(str, value.shape))}" for key, value in given.items())
        print(f"onnxvram hf: {type(model).__name__}, {str(next(model.parameters()).dtype).split('.')[-1]}; {sizes}", file=sys.stderr)
        words = [path]
        if option_of(rest, "--weight-format") or option_of(rest, "--weights"):  # which changes a model of ONNX
            from ._estimate import export
            words = [os.path.join(folder, name + ".onnx"), "--program", path]
            with open(words[0], "wb") as file:
                file.write(export(model, (), given, shapes))
        return subprocess.run([find_program(options.program), *words, *bindings, *rest], check=False).returncode


def main(argv: Optional[Sequence[str]] = None) -> int:
    options, rest = parser().parse_known_args(argv)
    try:
        return answer(options, rest)
    except (RecordingError, UsageError, OnnxvramError) as error:
        print(f"onnxvram hf: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else FAILED


if __name__ == "__main__":
    sys.exit(main())
