"""Packs the crates that are published, and checks what was packed.

    tools/packages.py PLACE TARGET

The first is a folder for the packages, the second a target folder. The crate `defn` must compile
with no feature, with each alone, and with two together. The names of the features are those of the
crate's manifest. Warnings are errors. Clippy checks all of them together.

`cargo package` would build each crate again, in a new place and in another profile. The checks of
the unpacked crates share their dependencies with clippy's, and find what they are for: files and
dependencies that the packages lack.

Also checks that the tests build the extension's crates with the features that the extension has:
otherwise each is built twice, which takes minutes.
"""

import glob
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The published crates, in the order of their dependencies.
PUBLISHED = ("defn-core", "defn-cpu", "defn-pjrt", "defn-derive", "defn")


def pack(place):
    """Packs the crates and unpacks them into a workspace. Returns its manifest."""
    shutil.rmtree(place, ignore_errors=True)
    command = ["cargo", "package", "--quiet", "--locked", "--allow-dirty", "--no-verify"]
    command += [part for name in PUBLISHED for part in ("-p", name)]
    if subprocess.run([*command, "--target-dir", place], cwd=ROOT).returncode != 0:
        sys.exit("the crates could not be packed")
    members = []
    for archive in sorted(glob.glob(os.path.join(place, "package", "*.crate"))):
        with tarfile.open(archive) as files:
            # Python 3.11.4 has the filter.
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            files.extractall(place, **safe)
        member = os.path.basename(archive).removesuffix(".crate")
        # The files in an archive have a constant time, and cargo finds changes by the time.
        for source in glob.glob(os.path.join(place, member, "**", "*"), recursive=True):
            os.utime(source)
        members.append(member)
    if len(members) != len(PUBLISHED):
        sys.exit(f"cargo package left {members}, and {PUBLISHED} are published")
    patches = [
        f'{name} = {{ path = "{member}" }}'
        for member in members
        for name in PUBLISHED
        if re.fullmatch(rf"{name}-\d.*", member)
    ]
    manifest = os.path.join(place, "Cargo.toml")
    with open(manifest, "w", encoding="utf-8") as file:
        file.write(f'[workspace]\nresolver = "3"\nmembers = {json.dumps(members)}\n')
        file.write("[patch.crates-io]\n" + "\n".join(patches) + "\n")
    # Without packages that only the repository's other crates need, the lock would not be --locked.
    shutil.copy(os.path.join(ROOT, "Cargo.lock"), place)
    return manifest


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


def main(place, target):
    manifest = pack(place)
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
