"""The Hygon backend of clover-ops: a plugin library, its manifest and its HIP sources, which the core finds by itself."""
