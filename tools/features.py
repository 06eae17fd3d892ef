"""Checks that the crate `defn` compiles with no feature, with each alone, and with two together.

    tools/features.py MANIFEST TARGET

The first is the manifest of a workspace with the crate, the second its target folder. The names of
the features are those of the crate's manifest. Warnings are errors. Clippy checks all of them
together.

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


def compiles(features, manifest, target):
    """Whether the crate compiles with these features and no others."""
    command = ["cargo", "check", "--release", "--offline", "--quiet", "-p", "defn"]
    command += ["--manifest-path", manifest, "--target-dir", target]
    command += ["--no-default-features", "--features", features]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    # With a flag that makes warnings errors, every dependency would be compiled again.
    return done.returncode == 0 and "warning" not in done.stderr


def built(selection):
    """The crates of a build, each with its features."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--no-dedupe", "-f", "{p}|{f}"]
    done = subprocess.run([*command, *selection], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return set(done.stdout.splitlines())


def main(manifest, target):
    everything = runpy.run_path(os.path.join(ROOT, "dev"), run_name="features")["EVERYTHING"]
    tests = built(word for word in everything if word not in ("--release", "--locked"))
    apart = built(["-p", "defn-python", "-e", "normal,build"]) - tests
    if apart:
        sys.exit("only the extension has these features: " + ", ".join(sorted(apart)))
    failed = []
    # Code for devices that needs the CPU's backend is in neither alone.
    for features in ["", *names(), "cpu,pjrt"]:
        start = time.monotonic()
        if not compiles(features, manifest, target):
            failed.append(features or "none")
        print(f"{features or 'none':10} {time.monotonic() - start:5.1f} s", flush=True)
    if failed:
        sys.exit(f"`defn` does not compile with these features alone: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
