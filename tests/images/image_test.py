"""The images that scripts/image makes: the same ones each time, nothing missing and nothing that is not accounted for.
They are made of the programs under test."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1])]
import schemas  # noqa: E402
import world  # noqa: E402
from images import contents, debian, oci  # noqa: E402

SYSTEM_BYTES_MAX = 40 << 20  # Of all that is not our own programs.
RELEASE = world.REPO / "build/release/bin"
KNOWN_PARTS = {"libboost1.81-dev", "nlohmann-json3-dev", "libcurl4", "libssl3", "libc6", "ca-certificates"}


def make(kind, output, *arguments, programs=None):
    done = subprocess.run([world.REPO / "scripts/image", kind, "--bin", programs or world.programs_folder(), "--output", output,
                           *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Image:
    """One read back from its tar, every digest and size checked on the way."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.blobs = {member.name: tar.extractfile(member).read() for member in tar}
        (self.index,) = json.loads(self.blobs["index.json"])["manifests"]
        self.manifest = self.json(self.index)
        self.config = self.json(self.manifest["config"])
        self.packed = [self.blob(each) for each in self.manifest["layers"]]
        (self.layer,) = [gzip.decompress(each) for each in self.packed]
        layer = tarfile.open(fileobj=io.BytesIO(self.layer))
        self.members = {"/" + member.name: member for member in layer}
        self.order = list(self.members)
        self.files = {name: layer.extractfile(member).read() for name, member in self.members.items() if member.isreg()}

    def blob(self, described):
        data = self.blobs["blobs/" + described["digest"].replace(":", "/")]
        assert described["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
        assert described["size"] == len(data)
        return data

    def json(self, described):
        return json.loads(self.blob(described))

    def unpack(self, folder):
        for name, member in self.members.items():
            place = pathlib.Path(str(folder) + name)
            if member.isdir():
                place.mkdir()
            elif member.issym():
                place.symlink_to(member.linkname)
            else:
                place.write_bytes(self.files[name])
                place.chmod(member.mode)


class Tree(unittest.TestCase):
    def test_same_files_make_the_same_layer_in_whatever_order_they_come(self):
        files = {"/usr/bin/b": b"b", "/usr/a": b"a", "/etc/c": b"c"}

        def layer(names):
            tree = oci.Tree()
            for name in names:
                tree.add(name, files[name])
            return tree.layer()

        self.assertEqual(layer(files), layer(reversed(files)))
        with tarfile.open(fileobj=io.BytesIO(layer(files))) as tar:
            self.assertEqual([member.name for member in tar], ["etc", "etc/c", "usr", "usr/a", "usr/bin", "usr/bin/b"])
            self.assertEqual({(member.mtime, member.uid, member.gid, member.uname) for member in tar}, {(0, 0, 0, "")})

    def test_a_file_behind_a_link_is_where_the_link_leads(self):
        tree = oci.Tree()
        tree.link("/lib", "usr/lib")
        tree.add("/lib/x/y.so", b"")
        self.assertIn("/usr/lib/x/y.so", tree.entries)

    def test_two_files_never_share_a_place(self):
        tree = oci.Tree()
        tree.add("/a", b"1")
        tree.add("/a", b"1")
        with self.assertRaises(AssertionError):
            tree.add("/a", b"2")


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(world.temporary_folder("images"))
        cls.said = make("controller", cls.folder / "controller.tar", "--name", "sandfleet.test/controller:1")
        make("executor", cls.folder / "executor.tar")
        cls.image, cls.executor = (Image(cls.folder / f"{kind}.tar") for kind in ("controller", "executor"))
        cls.bill = json.loads((cls.folder / "controller.cdx.json").read_text())

    def test_the_same_programs_make_the_same_image(self):
        tree, _, _, _ = contents.image("controller", world.programs_folder())
        self.assertEqual(hashlib.sha256(tree.layer()).hexdigest(), hashlib.sha256(self.image.layer).hexdigest())
        self.assertEqual(self.image.packed[0][4:8], bytes(4))  # Where gzip has the time.

    def test_names_itself(self):
        self.assertEqual(self.said.split()[:2], ["sandfleet.test/controller:1", self.image.index["digest"]])
        self.assertEqual(self.image.index["annotations"]["io.containerd.image.name"], "sandfleet.test/controller:1")
        labels = self.image.config["config"]["Labels"]
        self.assertEqual(labels["org.opencontainers.image.version"], contents.version())
        self.assertEqual(labels, self.image.manifest["annotations"])

    def test_runs_as_nobody_and_has_no_shell(self):
        self.assertEqual(self.image.config["config"]["User"], "65532:65532")
        self.assertIn("sandfleet:x:65532:65532:", self.image.files["/etc/passwd"].decode())
        programs = [name for name in self.image.order if "/bin/" in name]
        self.assertEqual(programs, [f"/usr/bin/sandfleet-{each}" for each in ("agentd", "controller", "executor")])
        writable = [name for name, member in self.image.members.items() if member.mode & 0o022 and not member.issym()]
        self.assertEqual(writable, ["/tmp"])
        self.assertFalse([name for name, member in self.image.members.items() if member.mode & 0o6000])

    def test_its_programs_find_all_they_need(self):
        if os.geteuid() != 0:
            self.skipTest("to enter another root takes root")
        root = self.folder / "root"
        root.mkdir()
        self.image.unpack(root)
        (root / "proc").mkdir()
        (entrypoint,) = self.image.config["config"]["Entrypoint"]
        for program in (entrypoint, "/usr/bin/sandfleet-agentd"):
            told = subprocess.run(["unshare", "--pid", "--fork", f"--mount-proc={root / 'proc'}", "chroot",
                                   "--userspec=65532:65532", root, program, "--version"], capture_output=True, text=True)
            self.assertEqual((told.returncode, told.stderr), (0, ""))
            self.assertIn(contents.version(), told.stdout)
            for library in debian.shared_libraries(world.programs_folder() / pathlib.Path(program).name):
                self.assertTrue((root / library.lstrip("/")).exists(), library)

    def test_trusts_no_authority_of_this_machine_alone(self):
        packaged = list(pathlib.Path("/usr/share/ca-certificates/mozilla").glob("*.crt"))
        bundle = self.image.files["/etc/ssl/certs/ca-certificates.crt"].decode()
        self.assertEqual(bundle.count("BEGIN CERTIFICATE"), len(packaged))
        self.assertGreater(len(packaged), 50)

    def test_is_small(self):
        """Without what the executor under test maps: one that is shipped is static."""
        mapped = {pathlib.Path(path).name for program in ("controller", "agentd")
                  for path in debian.shared_libraries(world.programs_folder() / f"sandfleet-{program}")}
        sizes = [len(data) for name, data in self.image.files.items() if "/bin/" not in name and
                 ("/lib/" not in name or ".so" not in name or name.rsplit("/", 1)[1] in mapped)]
        self.assertLess(sum(sizes), SYSTEM_BYTES_MAX)

    def test_the_bill_of_materials_is_valid_and_in_the_image(self):
        text = self.image.files[contents.BILL].decode()
        self.assertEqual(json.loads(text), self.bill)
        error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
        self.assertIsNone(error, error)

    def test_the_bill_of_materials_accounts_for_every_file(self):
        listed = {each["name"]: each for each in self.bill["components"]}
        self.assertLessEqual(KNOWN_PARTS, listed.keys())
        for name, data in self.image.files.items():
            with self.subTest(name):
                if name.startswith("/usr/bin/"):
                    self.assertEqual(listed[name.rsplit("/", 1)[1]]["hashes"][0]["content"], hashlib.sha256(data).hexdigest())
                elif "/lib/" in name and ".so" in name:
                    package = debian.owner(name)
                    self.assertEqual(listed[package]["version"], debian.record(package)["Version"])
                    self.assertIn(f"/usr/share/doc/{package}/copyright", self.image.files)
                    self.assertIn(f"Version: {listed[package]['version']}\n", self.image.files[f"/var/lib/dpkg/status.d/{package}"].decode())
                else:  # What we wrote, and what packages say of themselves.
                    self.assertRegex(name, "^/etc/|^/usr/lib/os-release$|^/usr/share/doc/|^/var/lib/dpkg/status.d/")
        references = {each["bom-ref"] for each in self.bill["components"]}
        self.assertEqual(len(references), len(self.bill["components"]))
        made_of = {each["ref"]: set(each["dependsOn"]) for each in self.bill["dependencies"]}
        self.assertTrue(all(each <= references for each in made_of.values()))
        self.assertEqual(made_of["image"], {"sandfleet-agentd", "sandfleet-controller", "sandfleet-executor"})
        for name, parts in made_of.items():
            self.assertTrue(parts, name)

    def test_the_executor_has_an_image_of_its_own(self):
        self.assertEqual(self.executor.files["/usr/bin/sandfleet-executor"], self.image.files["/usr/bin/sandfleet-executor"])
        self.assertNotIn("/usr/bin/sandfleet-controller", self.executor.files)

    def test_without_a_name_it_has_nobodys(self):
        self.assertEqual(self.executor.index["annotations"]["io.containerd.image.name"],
                         f"sandfleet.test/executor:{contents.version()}")

    def test_what_is_not_built_is_named(self):
        done = subprocess.run([world.REPO / "scripts/image", "controller", "--bin", self.folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"there is no sandfleet-controller, sandfleet-agentd, sandfleet-executor in {self.folder}; `make build`", done.stderr)

    def test_dockerfiles_make_the_same(self):
        for kind, image in (("controller", self.image), ("executor", self.executor)):
            with self.subTest(kind):
                config = image.config["config"]
                text = (world.REPO / f"images/{kind}/Dockerfile").read_text()
                last = text[text.rindex("\nFROM "):]
                self.assertRegex(last, r"^\nFROM scratch\nCOPY --from=build /image /\n")
                self.assertEqual(re.search("^USER (.*)$", last, re.M).group(1), config["User"])
                self.assertEqual(re.search("^WORKDIR (.*)$", last, re.M).group(1), config["WorkingDir"])
                self.assertEqual(json.loads(re.search("^ENTRYPOINT (.*)$", last, re.M).group(1)), config["Entrypoint"])
                self.assertIn(f"scripts/image {kind} --root /image\n", text)
                self.assertRegex(text, "(?m)^ARG BASE=debian:12\\.")


class Release(unittest.TestCase):
    """What is shipped, where `make build` has made it."""

    def test_is_no_larger_than_is_said(self):
        said = (world.REPO / "docs/design/installation.md").read_text()
        for kind, bounds in contents.MIB_MAX.items():
            with self.subTest(kind), world.temporary_folder("release") as folder:
                make(kind, folder / "image.tar", programs=RELEASE)
                image = Image(folder / "image.tar")
                sizes = [sum(map(len, image.files.values())), os.path.getsize(folder / "image.tar")]
                for size, bound in zip(sizes, bounds):
                    self.assertLess(size, bound << 20, f"{kind}: {[f'{each / 2**20:.1f} MiB' for each in sizes]}")
                self.assertIn(f"| {kind} | {bounds[0]} MiB | {bounds[1]} MiB |", said)


if __name__ == "__main__":
    if "Release" in sys.argv and not all((RELEASE / f"sandfleet-{each}").exists() for each in contents.IMAGES):
        print("skipped: there is no release build, and `make test` makes none; `make build && ctest --preset dev -R images.release`")
        sys.exit(world.SKIPPED)
    schemas.run_among_them()
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    unittest.main()
