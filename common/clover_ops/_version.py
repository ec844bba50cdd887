"""The version of every distribution, in this one place."""

__version__ = "0.1.0"
