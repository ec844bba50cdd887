"""What a release does: build, repair, check and rehearse every distribution. Run with `ci` on PYTHONPATH."""
