"""The numerical suites: every operator, every provider of every active backend, against the float64 reference."""
