"""Clover's operators in Clover's geometry, timed: what `clover-ops bench` runs and the speed record starts from.

`plan` needs no torch; `works` and `timing` do.
"""
