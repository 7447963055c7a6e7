"""The CRDs of crds/ on a real API server: taken without a warning, explained, and of one mind with the reader of
manifest folders about every object of tests/corpus."""

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from control_plane import DEFINITIONS, GROUP, TABLE, YAML, ControlPlane, world  # noqa: E402

PATHS = {
    "Sandbox": GROUP + "/namespaces/{namespace}/sandboxes",
    "SandboxProvider": GROUP + "/sandboxproviders",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
}
DRY = "dryRun=All&fieldValidation=Strict"
ACCEPTS = "# server: accepts: "


def corpus(folder):
    files = sorted((world.REPO / folder).glob("*.yaml"))
    assert files, folder
    return [(path.name, path.read_text()) for path in files]


def documents(text):
    """Those of a file that say something."""
    parts = re.split(r"^---\s*$", text, flags=re.MULTILINE)
    return [part for part in parts if re.sub(r"#.*", "", part).strip()]


def word_after(key, document, otherwise):
    found = re.search(rf"\b{key}[\"']?\s*:\s*[\"']?([\w.-]+)", document)
    return found.group(1) if found else otherwise


def place_of(document):
    """Where a client would create it; what is of no known kind is brought where it will not be taken."""
    path = PATHS.get(word_after("kind", document, "Sandbox"), PATHS["Sandbox"])
    return path.format(namespace=word_after("namespace", document, "default"))


def fields_in(text):
    """The fields that the reader of manifests finds fault with: "# error: F:9:17: spec.env[0]: ..."."""
    return set(re.findall(r"^# error: F:\d+:\d+: ([^\s:]+): ", text, flags=re.MULTILINE))


def speaks_of(field, place):
    """Whether a complaint about `place` is one about `field`, or about what is around or in it."""
    inner, outer = sorted((field, place), key=len, reverse=True)
    return inner == outer or inner.startswith((outer + ".", outer + "["))


class Crds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(world.temporary_folder("crds"))
        cls.cluster = cls.enterClassContext(ControlPlane(folder / "cluster"))
        cls.definitions = {path.stem: cls.cluster.ask("POST", DEFINITIONS, path.read_text(), YAML)
                           for path in sorted((world.REPO / "crds").glob("*.yaml"))}
        refused = {name: answer.body for name, answer in cls.definitions.items() if answer.status != 201}
        assert cls.definitions and not refused, refused
        cls.served = {name: world.wait_until(f"{name} to be served", lambda: cls.served_definition(name))
                      for name in cls.definitions}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
        assert cls.cluster.ask("POST", "/api/v1/namespaces", namespace).status == 201

    @classmethod
    def served_definition(cls, name):
        if cls.cluster.ask("GET", f"{GROUP}/{name}").status == 200:
            return cls.cluster.ask("GET", f"{DEFINITIONS}/{name}.sandfleet.dev").body

    def apply(self, place, document, dry_run=False):
        return self.cluster.apply(place, document, dry_run)

    def applied(self, place, document):
        answer = self.apply(place, document)
        self.assertIn(answer.status, (200, 201), answer.body)
        return answer.body

    def create(self, document):
        return self.cluster.ask("POST", f"{place_of(document)}?{DRY}", document, YAML)

    def edit(self, document, change):
        """The answer to a change of an object that was there."""
        place = place_of(document) + "/" + word_after("name", document, "")
        self.applied(place, document)
        try:
            return change(place)
        finally:
            self.assertEqual(self.cluster.ask("DELETE", place).status, 200)

    def judge(self, answer, text, allowed):
        """An answer is as the file says, and complains of the fields that the reader complains of."""
        self.assertEqual(answer.status < 300, allowed, answer.body)
        self.assertEqual(answer.warnings, [])
        if answer.status == 422:
            causes = answer.body["details"]["causes"]
            for field in fields_in(text):
                self.assertTrue(any(speaks_of(field, cause.get("field", "")) or field in cause["message"]
                                    for cause in causes), f"{field} is not in {causes}")

    def test_are_taken_without_a_warning_and_established(self):
        for name, answer in self.definitions.items():
            with self.subTest(name):
                self.assertEqual(answer.warnings, [])
                conditions = {each["type"]: each["status"] for each in self.served[name]["status"]["conditions"]}
                self.assertEqual(conditions, {"NamesAccepted": "True", "Established": "True"})
                again = self.apply(f"{DEFINITIONS}/{name}.sandfleet.dev", (world.REPO / f"crds/{name}.yaml").read_text())
                self.assertEqual((again.status, again.warnings), (200, []), again.body)

    def test_explain_every_field(self):
        def described(schema, path=""):
            for name, inner in schema.get("properties", {}).items():
                if "description" in inner:
                    yield f"{path}.{name}", inner["description"]
                yield from described(inner.get("items", inner), f"{path}.{name}")

        def published(kind):
            document = self.cluster.ask("GET", "/openapi/v3" + GROUP).body
            return document["components"]["schemas"].get(f"dev.sandfleet.v1alpha1.{kind}") if isinstance(document, dict) else None

        for name, definition in self.served.items():
            with self.subTest(name):
                spec = definition["spec"]
                told = world.wait_until("the schema to be published", lambda: published(spec["names"]["kind"]))
                ours = dict(described({"properties": {
                    "spec": spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]}}))
                self.assertGreater(len(ours), 5)
                self.assertLessEqual(ours.items(), dict(described(told)).items())

    def test_are_listed_by_short_name_and_column_and_found_by_field(self):
        sandbox = (world.REPO / "tests/corpus/status/allowed-same-id.yaml").read_text()
        document = documents(sandbox)[0]
        place = place_of(document)

        def look(where):
            self.applied(where + "/status", document)
            table = self.cluster.ask("GET", place, accept=TABLE).body
            found = [len(self.cluster.ask("GET", f"{place}?fieldSelector={field}").body["items"]) for field in (
                "status.sandboxID=a", "status.sandboxID=b", "spec.desiredState=Running", "spec.providerRef.name=other")]
            return [column["name"] for column in table["columnDefinitions"]], table["rows"][0]["cells"], found

        columns, cells, found = self.edit(document, look)
        self.assertEqual(columns, ["Name", "Ready", "State", "Sandbox-ID", "Template", "Age", "Provider", "Epoch", "Reason"])
        self.assertEqual((cells[0], cells[3:5], cells[6:8]), ("web", ["a", "base"], ["default", 1]))
        self.assertEqual(found, [1, 0, 1, 0])
        resources = {each["name"]: each for each in self.cluster.ask("GET", GROUP).body["resources"]}
        self.assertEqual([resources[name]["shortNames"] for name in ("sandboxes", "sandboxproviders")], [["sfb"], ["sfp"]])

    def test_take_every_good_manifest_and_make_the_same_of_it(self):
        for name, text in corpus("tests/corpus/good") + corpus("examples"):
            with self.subTest(name):
                answers = [self.create(document) for document in documents(text)]
                for answer in answers:
                    self.judge(answer, text, allowed=True)
                becomes = [json.loads(line) for line in re.findall("^# becomes: (.*)$", text, flags=re.MULTILINE)]
                if becomes:
                    self.assertEqual([answer.body["spec"] for answer in answers], becomes)

    def test_refuse_every_bad_manifest(self):
        for name, text in corpus("tests/corpus/bad"):
            with self.subTest(name):
                answers = [self.create(document) for document in documents(text)]
                self.judge(max(answers, key=lambda answer: answer.status), text, allowed=ACCEPTS in text)

    def test_take_only_the_edits_that_may_be_made(self):
        for name, text in corpus("tests/corpus/edits"):
            before, after = documents(text)
            with self.subTest(name):
                answer = self.edit(before, lambda place: self.apply(place, after, dry_run=True))
                self.judge(answer, text, allowed=name.startswith("allowed"))

    def test_take_only_the_changes_of_status_that_may_be_made(self):
        for name, text in corpus("tests/corpus/status"):
            before, after = documents(text)

            def change(place):
                self.applied(place + "/status", before)
                return self.apply(place + "/status", after, dry_run=True)

            with self.subTest(name):
                self.judge(self.edit(before, change), text, allowed=name.startswith("allowed"))


unittest.main()
