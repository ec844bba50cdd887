"""From the operator schema to everything that names an operator: `python -m declgen` writes or checks it."""
