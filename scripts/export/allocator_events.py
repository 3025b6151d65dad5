#!/usr/bin/env python3
"""What PyTorch's caching allocator did in a small training, for tests/alloc/test_recorded.c.

    python scripts/export/allocator_events.py tests/alloc/recorded.csv

Two iterations of a network under FSDP, which has three streams, then a request that the process may have no memory for
until what is cached is given back.  Needs the CUDA build of PyTorch and a device.
"""

import sys

import sharing

KINDS = {"alloc": "a", "free_completed": "f", "segment_alloc": "s", "segment_free": "r"}


def main():
    import torch
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=1000000)
    row = ("tower_wide", 1, "adamw", {"fsdp": True, "world": 4})
    model, x = sharing.build(row)
    step, state = sharing.Step(model, row[2], row[3]), {}
    for _ in range(2):
        step.zero()
        sharing.pass_of(model, x, row[3], state)
        state["loss"].backward()
        step.run()
    step.zero()
    state.clear()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (380 << 20)) / total)
    kept = torch.empty(400 << 20, dtype=torch.uint8, device="cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)
    again = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (512, 1 << 20, (1 << 20) + 1, 9 << 20, 11 << 20)]
    events = [e for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] in KINDS]
    del kept, again
    lowest, streams = min(e["addr"] for e in events), {0: 0}
    with open(sys.argv[1], "w") as file:
        file.write(f"# PyTorch {torch.__version__}, two iterations of FSDP, then a request beyond what the process may have\n")
        for e in events:
            kind, line = KINDS[e["action"]], f"{KINDS[e['action']]},{e['addr'] - lowest}"
            stream = streams.setdefault(e["stream"], len(streams))
            file.write(line + ("" if kind == "f" else f",{e['size']}") +
                       (f",{stream}" if kind == "a" and stream else "") + "\n")


if __name__ == "__main__":
    main()
