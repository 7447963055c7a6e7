"""docs/conformance.md: each rule, what it promises, the cases that show it by each way, and where else it is tested."""

import importlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
from rules import RULES  # noqa: E402
from seam import WAYS  # noqa: E402

CASE = re.compile(r"^def (test_[a-z0-9_]+)\(seam\):  # (.+)$", re.M)
COVERS = re.compile(r"//.*?\bcovers: ([\w., ]+)|#.*?\bcovers: ([\w., ]+)")
TAG = re.compile(r"[A-Z]?\d[\d.]*|E")

HEAD = """# What a harness may rely on

Written by `scripts/docs` from `tests/conformance` (`docs/design/conformance.md`): edit that, not this page. Each case runs by each *way* to
a sandbox: an **executor** by itself, through **agentd**, and through **dsh**'s providers. Where a way's surface cannot
express a case, the page says why. `ctest -L conformance` runs them all.
"""


def cases():
    """(module, name, rules, {way: why not}) of each."""
    for path in sorted((HERE / "cases").glob("*.py")):
        found = CASE.findall(path.read_text())
        functions = vars(importlib.import_module(f"cases.{path.stem}"))
        unnamed = {name for name in functions if name.startswith("test_")} - {name for name, _ in found}
        if unnamed:
            raise SystemExit(f"docs: {path}: no rules behind {', '.join(sorted(unnamed))}")
        for name, tags in found:
            yield path.stem, name.removeprefix("test_"), tags.split(), getattr(functions[name], "not_through", {})


def covered_elsewhere(repo):
    """{tag: folders with tests that say that they cover it}."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*_test.cc", "*.test.ts", "*_test.py", "tests/*.py"],
                            cwd=repo, capture_output=True, text=True, check=True)
    folders = {}
    for path in listed.stdout.split():
        text = (repo / path).read_text() if (repo / path).exists() else ""
        for found in COVERS.finditer(text):
            for tag in TAG.findall(found[1] or found[2]):
                folders.setdefault(tag, set()).add(path.rpartition("/")[0])
    return folders


def reasons(shown):
    """Why a case is not for a way, each reason once."""
    found = {}
    for _, _, _, not_through in shown:
        for way, why in not_through.items():
            found.setdefault(why, set()).add(way)
    return [""] * bool(found) + [f"- – {', '.join(way for way in WAYS if way in ways)}: {why}" for why, ways in found.items()]


def page(repo):
    all_cases, elsewhere = list(cases()), covered_elsewhere(repo)
    unknown = {tag for _, _, tags, _ in all_cases for tag in tags} - RULES.keys()
    if unknown:
        raise SystemExit(f"docs: cases name rules that tests/conformance/rules.py does not know: {', '.join(sorted(unknown))}")
    unshown = [tag for tag in RULES if not any(tag in tags for _, _, tags, _ in all_cases)]
    if unshown:
        raise SystemExit(f"docs: no case in tests/conformance/cases shows {', '.join(unshown)}")
    lines = [HEAD, f"{len(RULES)} rules, {len(all_cases)} cases.", ""]
    for tag, promise in RULES.items():
        shown = [case for case in all_cases if tag in case[2]]
        lines += [f"## {tag}", "", promise, "", f"| case | {' | '.join(WAYS)} |", f"|---|{'---|' * len(WAYS)}"]
        for module, name, _, not_through in shown:
            ways = ["–" if way in not_through else "yes" for way in WAYS]
            lines.append(f"| `{module}.{name}` | {' | '.join(ways)} |")
        lines += reasons(shown)
        if folders := elsewhere.get(tag):
            lines += ["", f"Also in {', '.join(f'`{folder}`' for folder in sorted(folders))}"]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
