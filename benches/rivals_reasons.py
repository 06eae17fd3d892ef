"""Why another Rust library is faster, by workload: `rivals.py` writes it where it still is."""

REASONS: dict[str, str] = {}
