"""The NVIDIA backend of clover-ops: a plugin library and its manifest, which the core finds by itself."""
