"""Written by common/declgen from the operator schema."""
