"""What dpkg knows of this machine's files: whose they are, in which version, under which licence."""

import functools
import gzip
import os
import pathlib
import re
import subprocess

DATABASE = pathlib.Path("/var/lib/dpkg")
BOOST = "libboost1.81-dev"  # scripts/bootstrap unpacks this one, for it cannot be installed; so dpkg knows nothing of it.
UNPACKED = re.compile(r"(.*/boost-1\.81)/usr/")


@functools.cache
def _owners():
    """{path: package} of all installed files."""
    return {path: listing.stem.split(":")[0] for listing in DATABASE.glob("info/*.list")
            for path in listing.read_text(errors="replace").splitlines()}


def owner(path):
    """The package that brought a file, or None. /usr is one with / now, but dpkg has names from before."""
    if UNPACKED.match(str(path)):
        return BOOST
    names = [str(path), os.path.realpath(path)]
    names += [name.removeprefix("/usr") for name in names] + ["/usr" + name for name in names]
    return next((_owners()[name] for name in names if name in _owners()), None)


@functools.cache
def record(package):
    """Its fields, as in dpkg's status: Version, Architecture, Source, ..."""
    if package == BOOST:
        return _boost_record()
    return dict(re.findall(r"^(\S+): (.*)$", stanza(package), flags=re.MULTILINE))


def _boost_record():
    (changes,) = _boost_folder().glob(f"usr/share/doc/{BOOST}/changelog.Debian.gz")
    version = re.match(r"\S+ \(([^)]+)\)", gzip.decompress(changes.read_bytes()).decode()).group(1)
    architecture = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    return {"Version": version, "Architecture": architecture}


def _boost_folder():
    return pathlib.Path.home() / ".cache/sandfleet/boost-1.81"


@functools.cache
def release():
    """The number of this Debian, such as 12."""
    return re.search(r'^VERSION_ID="?([\d.]+)', pathlib.Path("/etc/os-release").read_text(), flags=re.MULTILINE).group(1)


def stanza(package):
    """That record as text, for scanners of images."""
    return subprocess.run(["dpkg-query", "--status", package], capture_output=True, text=True, check=True).stdout


def copyright_file(package):
    root = _boost_folder() if package == BOOST else pathlib.Path("/")
    return root / f"usr/share/doc/{package}/copyright"


def licences(package):
    """The short names in a machine-readable copyright file; of another, none."""
    text = copyright_file(package).read_text(errors="replace")
    return sorted({name.strip() for name in re.findall(r"^License: *(\S.*)$", text, flags=re.MULTILINE)}) \
        if text.startswith("Format:") else []


def shared_libraries(program):
    """Paths of all that the loader maps for it, the loader itself included; none for a static one."""
    shown = subprocess.run(["ldd", program], capture_output=True, text=True)
    if shown.returncode != 0 and ("not a dynamic executable" in shown.stderr + shown.stdout or
                                  "statically linked" in shown.stdout):
        return []
    assert shown.returncode == 0, f"ldd {program}: {shown.stdout}{shown.stderr}"
    assert "not found" not in shown.stdout, shown.stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", shown.stdout)))
