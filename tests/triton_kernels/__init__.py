"""The Triton kernels in Triton's interpreter, on the CPU, against the float64 reference."""
