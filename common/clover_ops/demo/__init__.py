"""A small Clover network that decodes text block by block and proves, as it goes, what the operators promise."""
