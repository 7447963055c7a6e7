"""The bill of materials of an image, as CycloneDX 1.6: every Debian package whose files are in it or were compiled
into our programs."""

import hashlib
import json
import pathlib
import subprocess
import urllib.parse
import uuid

from images import debian

OURS = uuid.UUID("6f1f3c1e-7d0b-4d56-9d5f-0f4f5d1a8c55")  # The namespace of our serial numbers.
LICENCE_BYTES_MAX = 256  # Some copyright files have a sentence where a name should be.


def compiled_in(program):
    """Packages whose headers, objects or static libraries went into a program of a build folder."""
    program = pathlib.Path(program)
    inputs = _ninja(program, "inputs", f"bin/{program.name}")
    objects, used = {line for line in inputs if line.endswith(".o")}, set(inputs)
    current = None
    for line in _ninja(program, "deps"):
        if not line.startswith(" "):
            current = line.split(":")[0]
        elif current in objects:
            used.add(line.strip())
    if not debian.shared_libraries(program):  # What a compiler adds by itself.
        used |= {_of_compiler(program, name) for name in ("libc.a", "libstdc++.a", "libgcc.a")}
    found = {path for path in used if path.startswith("/") and ("/include/" in path or path.endswith((".a", ".o")))}
    return sorted({owner for owner in map(debian.owner, found) if owner})


def _ninja(program, tool, *arguments):
    done = subprocess.run(["ninja", "-C", program.parent.parent, "-t", tool, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
    return [line for line in done.stdout.splitlines() if not line.startswith("ninja: ")]


def _of_compiler(program, name):
    cache = (program.parent.parent / "CMakeCache.txt").read_text()
    compiler = next(line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:"))
    return subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()


def package(name, use):
    """A component for one package; `use` says what of it is there: shared-library, compiled-in or data."""
    record = debian.record(name)
    version = urllib.parse.quote(record["Version"], safe=".~-")
    purl = f"pkg:deb/debian/{name}@{version}?arch={record['Architecture']}&distro=debian-{debian.release()}"
    return {"type": "data" if use == "data" else "library", "bom-ref": purl, "name": name, "version": record["Version"],
            "purl": purl, "licenses": [{"license": {"name": each[:LICENCE_BYTES_MAX]}} for each in debian.licences(name)],
            "properties": [{"name": "sandfleet:use", "value": use}]}


def document(image, version, programs, packages):
    """`programs`: {name: (bytes, refs of what it is made of)}; `packages`: components."""
    ours = [{"type": "application", "bom-ref": name, "name": name, "version": version,
             "licenses": [{"license": {"id": "Apache-2.0"}}],
             "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}]}
            for name, (data, _) in sorted(programs.items())]
    components = ours + sorted(packages, key=lambda each: (each["name"], each["bom-ref"]))
    whole = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": "image", "name": image, "version": version}},
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": sorted(programs)}] + [
            {"ref": name, "dependsOn": sorted(made_of)} for name, (_, made_of) in sorted(programs.items())],
    }
    return {**whole, "serialNumber": f"urn:uuid:{uuid.uuid5(OURS, json.dumps(whole, sort_keys=True))}"}
