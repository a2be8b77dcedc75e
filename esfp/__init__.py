"""ESFP: Epistemic Stance Flexibility Probing, a behavioural benchmark for language models."""

__version__ = "0.1.0"
