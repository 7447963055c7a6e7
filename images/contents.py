"""What each of our images has in it. The Dockerfiles and scripts/image both take it from here."""

import json
import pathlib
import re
import subprocess
import tempfile

from images import bill, debian, oci

REPO = pathlib.Path(__file__).resolve().parents[1]
USER = 65532  # Nobody's on any machine; the number, so that Kubernetes can tell that it is not root.
BASE = "debian:12"  # The files that are not ours are those of Debian's packages.
HOMEPAGE = "https://sandfleet.dev"
BILL = "/usr/share/doc/sandfleet/bill-of-materials.cdx.json"
IMAGES = {
    # All that a cluster runs, so that one upgrade moves it at once. The executor is sent to templates that lack it.
    "controller": (["sandfleet-controller", "sandfleet-agentd", "sandfleet-executor"],
                   "Keeps Sandbox resources and E2B sandboxes in step, and carries harnesses' sessions into them"),
    "executor": (["sandfleet-executor"], "What Sandfleet runs inside a sandbox, to be copied into templates"),
}

# What a release takes at most, unpacked and as a tar: a look at what grew is due before a bound does.
MIB_MAX = {"controller": (54, 21), "executor": (14, 5)}


def version():
    text = (REPO / "libs/base/version.h").read_text()
    return re.search(r'kVersion\w* = "([^"]+)"', text).group(1)


def image(kind, programs_folder):
    """(files, OCI config, labels, bill of materials) of one of IMAGES."""
    names, about = IMAGES[kind]
    programs = {name: pathlib.Path(programs_folder) / name for name in names}
    libraries = {name: debian.shared_libraries(program) for name, program in programs.items()}
    tree, ours, packages = oci.Tree(), {}, {}
    for name, program in programs.items():
        data = stripped(program)
        tree.add(f"/usr/bin/{name}", data, 0o755)
        parts = {package: "compiled-in" for package in bill.compiled_in(program)}
        parts |= {debian.owner(path): "shared-library" for path in libraries[name]}
        components = {package: bill.package(package, how) for package, how in parts.items()}
        packages.update(components)
        ours[name] = (data, [each["bom-ref"] for each in components.values()])
    if any(libraries.values()):
        system = _add_system(tree, sorted({path for each in libraries.values() for path in each}))
        packages.update({package: bill.package(package, "data") for package in system})
    tree.add("/usr/share/doc/sandfleet/copyright", (REPO / "LICENSE").read_bytes())
    for package in packages:
        tree.add(f"/usr/share/doc/{package}/copyright", debian.copyright_file(package).read_bytes())
    whole = bill.document(f"sandfleet-{kind}", version(), ours, list(packages.values()))
    tree.add(BILL, json.dumps(whole, indent=1, sort_keys=True) + "\n")
    labels = {"org.opencontainers.image.title": f"sandfleet-{kind}", "org.opencontainers.image.description": about,
              "org.opencontainers.image.version": version(), "org.opencontainers.image.licenses": "Apache-2.0",
              "org.opencontainers.image.url": HOMEPAGE, "org.opencontainers.image.base.name": BASE}
    config = {"Entrypoint": [f"/usr/bin/{names[0]}"], "User": f"{USER}:{USER}", "WorkingDir": "/", "Labels": labels,
              "Env": ["PATH=/usr/bin"], "StopSignal": "SIGTERM"}
    return tree, config, labels, whole


def single_file(path):
    """(files, OCI config) of an image with one program in it, and what the loader maps for that one."""
    path = pathlib.Path(path)
    tree = oci.Tree()
    tree.add(f"/usr/bin/{path.name}", stripped(path), 0o755)
    if libraries := debian.shared_libraries(path):
        _add_system(tree, libraries)
    return tree, {"Entrypoint": [f"/usr/bin/{path.name}"], "WorkingDir": "/", "Env": ["PATH=/usr/bin"]}


def stripped(program):
    with tempfile.NamedTemporaryFile() as to:
        subprocess.run(["llvm-strip-19", "-o", to.name, program], check=True)
        return pathlib.Path(to.name).read_bytes()


def _add_system(tree, libraries):
    """What programs with shared libraries want of a system, and no more: no shell, no package manager. Returns the
    packages of what is not a library."""
    tree.link("/lib", "usr/lib")
    tree.link("/lib64", "usr/lib64")
    for path in libraries:
        if path.startswith("/lib64/"):
            loader = str(pathlib.Path(path).resolve())
            tree.link(path, loader)
            path = loader
        tree.add(path, pathlib.Path(path).read_bytes(), 0o755)
    # Of the package itself, for a machine's own bundle may hold authorities that are its owner's alone.
    authorities = sorted(pathlib.Path("/usr/share/ca-certificates/mozilla").glob("*.crt"))
    assert authorities, "ca-certificates is not installed"
    tree.add("/etc/ssl/certs/ca-certificates.crt", b"".join(each.read_bytes().rstrip() + b"\n" for each in authorities))
    tree.link("/usr/lib/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt")
    tree.link("/usr/lib/ssl/certs", "/etc/ssl/certs")
    tree.add("/usr/lib/os-release", pathlib.Path("/usr/lib/os-release").read_bytes())
    tree.link("/etc/os-release", "../usr/lib/os-release")
    tree.add("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    tree.add("/etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nsandfleet:x:{USER}:{USER}:sandfleet:/:/sbin/nologin\n")
    tree.add("/etc/group", f"root:x:0:\nsandfleet:x:{USER}:\n")
    tree.folder("/tmp", 0o1777)
    data = {"ca-certificates", "base-files"}
    for package in sorted(data | {debian.owner(path) for path in libraries}):
        tree.add(f"/var/lib/dpkg/status.d/{package}", debian.stanza(package))  # Where scanners look in such images.
    return data
