"""What an analysis is working on, shown where somebody waits for it."""
import sys
from typing import Any, Callable, Optional, Union


class Shown:
    """One line: by tqdm where that is installed, which knows notebooks, else on standard error."""

    def __init__(self, name: str) -> None:
        self.name, self.bar, self.last = name, None, ""  # type: str, Any, str
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self.bar = tqdm(total=None, bar_format="{desc} [{elapsed}]", desc=name, leave=False)

    def __call__(self, stage: str) -> None:
        if stage == self.last:
            return
        self.last = stage
        if self.bar is not None:
            self.bar.set_description_str(f"{self.name}: {stage}")
        else:
            print(f"{self.name}: {stage}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def teller(progress: Union[bool, Callable[[str], Any], None], name: str) -> Optional[Callable[[str], Any]]:
    if not progress:
        return None
    return progress if callable(progress) else Shown(name)
