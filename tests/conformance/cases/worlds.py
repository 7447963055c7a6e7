"""One world: files and commands of one session are those of one machine."""

from seam import Outcome


def test_files_and_commands_see_the_same_paths(seam):  # W1
    seam.write(seam.at("from-files"), "written")
    outcome, shown = seam.run("sh", "-c", "cat from-files; printf made > from-command")
    assert (outcome, shown) == (Outcome(0, None), "written"), (outcome, shown)
    assert seam.read_text(seam.at("from-command")) == "made"
    assert seam.resolve_executable("sh") == seam.resolve_executable(seam.resolve_executable("sh"))
