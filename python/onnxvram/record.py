"""python -m onnxvram.record MODULE:FUNCTION: a recording from the command line. In Python: onnxvram.record()."""
import sys

from ._record import main

if __name__ == "__main__":
    sys.exit(main())
