"""The toolchains that ci/build_device_code.py compiles with: `nvcc` for CUDA, `hip` for Hygon's DCUs."""
