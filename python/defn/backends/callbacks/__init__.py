"""The callbacks of a backend, by family, with their defaults."""
