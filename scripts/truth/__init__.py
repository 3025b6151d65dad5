"""What is measured of networks, and the tables of it; truth.networks is in tests/truth."""
import os

__path__.append(os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/truth")))
