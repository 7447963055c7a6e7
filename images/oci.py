"""An OCI image as one tar: a single layer out of files, without a registry or a daemon. The same files make the same
bytes: names are sorted, and nothing carries a time, an owner or a machine's name."""

import dataclasses
import gzip
import hashlib
import io
import json
import os
import platform
import tarfile

LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # As uname and as OCI name them.


@dataclasses.dataclass(frozen=True)
class Entry:
    mode: int
    data: bytes = b""
    link: str = ""  # A symbolic link there, instead of data.


class Tree:
    """What is in an image, by absolute path. Folders that are not named are made, for anybody to enter."""

    def __init__(self):
        self.entries, self.folders = {}, {}

    def add(self, path, data, mode=0o644):
        self._put(path, Entry(mode, data.encode() if isinstance(data, str) else data))

    def link(self, path, target):
        self._put(path, Entry(0o777, link=target))

    def folder(self, path, mode=0o755):
        self.folders[path] = mode

    def _put(self, path, entry):
        path = self.resolved(path)
        assert self.entries.get(path, entry) == entry, f"two different files at {path}"
        self.entries[path] = entry

    def resolved(self, path):
        """Where a file goes whose folders may be links of this tree, as /lib is one to usr/lib."""
        assert path.startswith("/") and ".." not in path.split("/"), path
        name = ""
        for part in path.split("/")[1:-1]:
            name = f"{name}/{part}"
            if name in self.entries:
                name = os.path.normpath(os.path.join(os.path.dirname(name), self.entries[name].link))
        return f"{name}/{path.rsplit('/', 1)[1]}"

    def layer(self):
        """The uncompressed tar."""
        folders = dict(self.folders)
        for path in [*self.entries, *self.folders]:
            while (path := os.path.dirname(path)) != "/":
                folders.setdefault(path, 0o755)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted([*folders, *self.entries]):
                member = tarfile.TarInfo(path.lstrip("/"))
                if path in folders:
                    member.type, member.mode = tarfile.DIRTYPE, folders[path]
                    tar.addfile(member)
                    continue
                entry = self.entries[path]
                member.mode, member.size = entry.mode, len(entry.data)
                if entry.link:
                    member.type, member.linkname = tarfile.SYMTYPE, entry.link
                tar.addfile(member, io.BytesIO(entry.data))
        return buffer.getvalue()


def write(tree, config, annotations, name, output):
    """The image `name` into the file `output`; returns its digest. `config` is OCI's: Entrypoint, User, Labels, ..."""
    layer = tree.layer()
    packed = gzip.compress(layer, 6, mtime=0)
    machine = ARCHITECTURES[platform.machine()]
    blobs = {}

    def blob(content, kind):
        data = content if isinstance(content, bytes) else _json(content)
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    settings = blob({"architecture": machine, "os": "linux", "config": config,
                     "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}},
                    "application/vnd.oci.image.config.v1+json")
    manifest = blob({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": settings,
                     "layers": [blob(packed, LAYER)], "annotations": annotations},
                    "application/vnd.oci.image.manifest.v1+json")
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        {**manifest, "platform": {"architecture": machine, "os": "linux"},
         "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[-1]}}]}
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index),
             **{f"blobs/sha256/{digest}": data for digest, data in blobs.items()}}
    staged = f"{output}.part"
    with tarfile.open(staged, "w", format=tarfile.GNU_FORMAT) as tar:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    os.replace(staged, output)
    return manifest["digest"]


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
