"""The second set of fresh networks written by hand. Run once on the CPU to find errors of typing; listed before one was exported or predicted."""
from . import practice_pictures, practice_sequences

NETWORKS = practice_pictures.NETWORKS + practice_sequences.NETWORKS
