"""Which program a name stands for."""

from seam import fails

REFUSED = ("EXECUTABLE_NOT_FOUND", "INVALID", None)


def program(seam, path, mode=0o755):
    seam.ground.write(seam.path(path), b"#!/bin/sh\n", mode=mode)
    return seam.path(path)


def test_a_name_is_looked_for_in_the_sandbox_s_path(seam):  # 4.1
    found = seam.resolve_executable("sh")
    assert found.startswith("/") and seam.run(found, "-c", "echo it")[1] == "it\n"
    for none in ("no-such-program", "sh "):
        with fails(*REFUSED):
            seam.resolve_executable(none)


def test_an_empty_name_is_refused(seam):  # 4.1
    with fails(*REFUSED):
        seam.resolve_executable("")


def test_a_path_that_is_given_takes_the_place_of_the_sandbox_s(seam):  # 4.1
    for folder in ("first", "second"):
        seam.ground.folder(seam.path(folder))
    own = program(seam, "second/own-program")
    path = {"PATH": f"{seam.path('first')}:{seam.path('second')}"}
    assert seam.resolve_executable("own-program", path) == own
    with fails(*REFUSED):
        seam.resolve_executable("own-program")
    with fails(*REFUSED):
        seam.resolve_executable("sh", path)
    earlier = program(seam, "first/own-program")
    assert seam.resolve_executable("own-program", path) == earlier


def test_what_cannot_be_executed_is_passed_over(seam):  # 4.1
    for folder in ("first", "first/tool", "second", "third"):
        seam.ground.folder(seam.path(folder))
    program(seam, "second/tool", mode=0o644)
    tool = program(seam, "third/tool")
    path = {"PATH": ":".join(seam.path(folder) for folder in ("first", "second", "third"))}
    assert seam.resolve_executable("tool", path) == tool


def test_an_absolute_path_must_be_a_file_that_can_be_executed(seam):  # 4.1
    assert seam.resolve_executable(program(seam, "tool")) == seam.path("tool")
    for refused in (program(seam, "plain", mode=0o644), seam.folder, seam.path("nothing")):
        with fails(*REFUSED):
            seam.resolve_executable(refused)


def test_a_relative_path_is_refused(seam):  # 4.1
    program(seam, "tool")
    for relative in ("./tool", "sub/tool", "../tool"):
        with fails(*REFUSED):
            seam.resolve_executable(relative)


def test_a_program_that_is_reached_by_a_link_has_the_path_of_the_file(seam):  # 4.1
    tool = program(seam, "tool")
    seam.ground.link(seam.path("alias"), "tool")
    assert seam.resolve_executable(seam.path("alias")) == tool
    assert seam.resolve_executable("alias", {"PATH": seam.folder}) == tool
