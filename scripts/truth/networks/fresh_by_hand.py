"""The fresh networks written by hand."""
from . import fresh_pictures, fresh_sequences

NETWORKS = fresh_pictures.NETWORKS + fresh_sequences.NETWORKS
