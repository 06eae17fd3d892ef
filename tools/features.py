"""Checks that the crate `defn` compiles with no feature, and with each alone.

The names of the features are those of its manifest. Warnings are errors. Clippy checks all of
them together.
"""

import os
import subprocess
import sys
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def names():
    """The features of the crate."""
    with open(os.path.join(ROOT, "crates", "defn", "Cargo.toml"), "rb") as file:
        return sorted(set(tomllib.load(file)["features"]) - {"default", "full"})


def compiles(features):
    """Whether the crate compiles with these features and no others."""
    command = ["cargo", "check", "--release", "--locked", "--quiet", "-p", "defn"]
    command += ["--no-default-features", "--features", features]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    # With a flag that makes warnings errors, every dependency would be compiled again.
    return done.returncode == 0 and "warning" not in done.stderr


def main():
    failed = []
    for features in ["", *names()]:
        start = time.monotonic()
        if not compiles(features):
            failed.append(features or "none")
        print(f"{features or 'none':10} {time.monotonic() - start:5.1f} s", flush=True)
    if failed:
        sys.exit(f"`defn` does not compile with these features alone: {', '.join(failed)}")


if __name__ == "__main__":
    main()
