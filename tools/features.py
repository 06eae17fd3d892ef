"""Checks that the crate `defn` compiles with no feature, and with each alone.

    tools/features.py [MANIFEST TARGET]

With the manifest of a workspace, its crates are checked, in a target folder; without, this
repository's. The names of the features are those of the crate's manifest. Warnings are errors.
Clippy checks all of them together.

Also checks that the tests build the extension's crates with the features that the extension has:
otherwise each is built twice, which takes minutes.
"""

import os
import runpy
import subprocess
import sys
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def names():
    """The features of the crate."""
    with open(os.path.join(ROOT, "crates", "defn", "Cargo.toml"), "rb") as file:
        return sorted(set(tomllib.load(file)["features"]) - {"default", "full"})


def compiles(features, manifest=None, target=None):
    """Whether the crate compiles with these features and no others."""
    command = ["cargo", "check", "--release", "--quiet", "-p", "defn"]
    command += ["--no-default-features", "--features", features]
    if manifest is None:
        command += ["--locked"]
    else:
        command += ["--offline", "--manifest-path", manifest, "--target-dir", target]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    # With a flag that makes warnings errors, every dependency would be compiled again.
    return done.returncode == 0 and "warning" not in done.stderr


def built(selection):
    """The crates of a build, each with its features."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--no-dedupe", "-f", "{p}|{f}"]
    done = subprocess.run([*command, *selection], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return set(done.stdout.splitlines())


def main():
    everything = runpy.run_path(os.path.join(ROOT, "dev"), run_name="features")["EVERYTHING"]
    tests = built(word for word in everything if word not in ("--release", "--locked"))
    apart = built(["-p", "defn-python", "-e", "normal,build"]) - tests
    if apart:
        sys.exit("only the extension has these features: " + ", ".join(sorted(apart)))
    failed = []
    for features in ["", *names()]:
        start = time.monotonic()
        if not compiles(features, *sys.argv[1:]):
            failed.append(features or "none")
        print(f"{features or 'none':10} {time.monotonic() - start:5.1f} s", flush=True)
    if failed:
        sys.exit(f"`defn` does not compile with these features alone: {', '.join(failed)}")


if __name__ == "__main__":
    main()
