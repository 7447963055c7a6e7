"""`sandfleet cp` into a sandbox and out of it, through agentd and an executor, all of them real. Run one test: copies.py NAME;
without a name: their names."""

import contextlib
import os
import pathlib
import subprocess
import sys

from whole import agentd_before_a_box, world


@contextlib.contextmanager
def a_sandbox():
    with agentd_before_a_box() as (provider, controller, agentd), world.temporary_folder("copies") as folder:
        box = controller.sandboxes()["box"]["status"]["sandboxID"]

        def copy(*words, code=0, **how):
            ran = subprocess.run([str(world.programs_folder() / "sandfleet"), "cp", "--socket", str(agentd.socket), *map(str, words)],
                                 capture_output=True, timeout=120, check=False, **how)
            assert ran.returncode == code, (words, ran)
            return ran

        yield folder, copy, lambda command: world.run_inside(provider, box, command)


def grow(folder):
    """A tree with modes, times, links, holes and a name that is no text."""
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "sub" / "program").write_text("#!/bin/sh\necho ran\n")
    (folder / "sub" / "program").chmod(0o751)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "left-out").write_text("x")
    (folder / "link").symlink_to("sub/program")
    os.link(folder / "sub" / "program", folder / "again")
    with open(bytes(folder) + b"/no-text-\xff", "wb") as file:
        file.write(os.urandom(300_000))
    with open(folder / "holes", "wb") as file:
        file.truncate(5_000_000)
    os.utime(folder / "holes", ns=(1, 1_234_567_890_123_456_789))


def described(folder):
    all_of_it = {}
    for parent, folders, files in os.walk(bytes(folder)):
        for name in folders + files:
            path = os.path.join(parent, name)
            seen = os.lstat(path)
            said = [seen.st_mode, seen.st_mtime_ns, seen.st_nlink if name in files else 0]
            if os.path.islink(path):
                said = [os.readlink(path)]
            elif name in files:
                said.append(pathlib.Path(os.fsdecode(path)).read_bytes())
            all_of_it[os.path.relpath(path, bytes(folder))] = said
    return all_of_it


def test_a_tree_goes_in_and_comes_back():
    with a_sandbox() as (folder, copy, inside):
        tree = folder / "tree"
        grow(tree)
        copy(tree, "box:new/place")
        assert inside("cd $HOME/new/place && sub/program && stat -c %a again && ls node_modules")[1].split() == \
            ["ran", "751", "left-out"]
        copy("default/box:new/place", folder / "back")
        assert described(folder / "back") == described(tree)
        copy(tree, "box:new/place")
        assert inside("ls -d $HOME/new/place/tree")[0] == 0, "into the folder that is there, by its own name"
        copy("box:new/place/.", folder / "lean", "--exclude", "node_modules", "--exclude", "tree")
        assert not (folder / "lean" / "node_modules").exists() and (folder / "lean" / "again").exists()
        archive = copy("box:new/place", "-").stdout
        subprocess.run(["tar", "--zstd", "-tf", "-"], input=archive, check=True, stdout=subprocess.DEVNULL)
        copy("-", "box:third", input=archive)
        assert inside("$HOME/third/link")[1].strip() == "ran"
        assert not [path for path in folder.rglob(".sandfleet-*")], "nothing is left aside"


def test_files_keep_their_modes_and_go_where_cp_would_put_them():
    with a_sandbox() as (folder, copy, inside):
        script = folder / "script"
        script.write_text("#!/bin/sh\necho hello\n")
        script.chmod(0o750)
        copy(script, "box:")
        assert inside("$HOME/script; stat -c %a $HOME/script")[1].split() == ["hello", "750"]
        copy("box:script", folder / "other")
        assert (folder / "other").read_text() == script.read_text()
        assert (folder / "other").stat().st_mode & 0o777 == 0o750
        inside("mkfifo $HOME/pipe; mkdir $HOME/odd; mkfifo $HOME/odd/pipe; ln -s /etc/passwd $HOME/odd/out; echo x > $HOME/odd/file")
        told = copy("box:odd", folder / "odd", code=1).stderr.decode()
        assert "pipe: special" in told and "out: linkOutward" in told, told
        assert (folder / "odd" / "file").read_text() == "x\n"
        inside(r'mkdir $HOME/forged; mkfifo "$HOME/forged/$(printf "a\033[2J\nsandfleet: b\302\233c")"')
        told = copy("box:forged", folder / "forged", code=1).stderr
        assert b"sandfleet: a [2J sandfleet: b c: special\n" in told, told


def test_what_cannot_be_copied_is_told():
    with a_sandbox() as (folder, copy, _):
        assert "nothing is at nowhere" in copy("box:nowhere", folder / "x", code=3).stderr.decode()
        copy(folder / "nowhere", "box:", code=3)
        assert "one side" in copy("a", "b", code=2).stderr.decode()
        (folder / "is-a-file").write_text("x")
        copy("box:", folder / "is-a-file", code=3)
        assert (folder / "is-a-file").read_text() == "x"
        assert not [path for path in folder.rglob(".sandfleet-*")], "nothing is left aside"


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
