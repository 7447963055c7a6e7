"""The sandbox's files by another hand than the one that is judged: by the host's own view of the sandbox's root, and who has them
open by /proc. What it makes belongs to the sandbox's user."""

import contextlib
import os
import pathlib
import secrets
import shutil
import socket


class Ground:
    """`root` is where the sandbox's / is for us; links in there lead by the sandbox's names, so nothing here follows one."""

    def __init__(self, root, home):
        self.root, self.home = root, home
        there = os.stat(f"{root}{home}")
        self.uid, self.gid = there.st_uid, there.st_gid

    def at(self, path):
        return pathlib.Path(f"{self.root}{path}")

    def own(self, path):
        os.chown(self.at(path), self.uid, self.gid, follow_symlinks=False)
        return path

    def new_folder(self):
        return self.folder(f"{self.home}/case-{secrets.token_hex(8)}")

    def folder(self, path, mode=0o755):
        self.at(path).mkdir()
        self.at(path).chmod(mode)
        return self.own(path)

    def write(self, path, content=b"", mode=0o644):
        """In place: as a command would that knows of nobody else."""
        fresh = not os.path.lexists(self.at(path))
        self.at(path).write_bytes(content)
        if fresh:
            self.at(path).chmod(mode)
            self.own(path)
        return path

    def read(self, path):
        return self.at(path).read_bytes()

    def link(self, path, leads_to):
        self.at(path).symlink_to(leads_to)
        return self.own(path)

    def fifo(self, path):
        os.mkfifo(self.at(path), 0o644)
        return self.own(path)

    def listening_socket(self, path):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(self.at(path)))
        return self.own(path)

    def mode(self, path):
        return self.at(path).lstat().st_mode & 0o7777

    def names(self, path):
        """All names there, hidden ones too."""
        return sorted(os.listdir(self.at(path)))

    def all_names(self, path):
        """The same, of folders below as well, by their paths."""
        return sorted(str(each.relative_to(self.at(path))) for each in self.at(path).rglob("*"))

    def holders(self, path):
        """(pid, descriptor) of whoever has that very file open."""
        wanted = self.at(path).stat()
        found = []
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                for descriptor in os.listdir(f"/proc/{entry.name}/fd"):
                    with contextlib.suppress(OSError):
                        held = os.stat(f"/proc/{entry.name}/fd/{descriptor}")
                        if (held.st_dev, held.st_ino) == (wanted.st_dev, wanted.st_ino):
                            found.append((int(entry.name), int(descriptor)))
        return found

    def text(self, path):
        return self.read(path).decode()

    def move(self, path, to):
        self.at(path).rename(self.at(to))

    def remove(self, path):
        shutil.rmtree(self.at(path), ignore_errors=True)
