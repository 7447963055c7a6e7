"""What a command finds in its environment."""

from alone import alone_executor
from ground import Ground
from over_wire import WireSeam
from seam import Outcome, not_through

SECRETS = ["API_KEY", "my_password", "SecretName", "GITHUB_TOKEN", "KEYBOARD", "DSH_ANYTHING"]
PLAIN = ["PLAIN", "dsh_lower", "DSHX", "TOKE"]


def environment(seam, env=None):
    command = seam.spawn(["env", "-0"], env=env)
    assert command.done() == Outcome(0, None)
    return dict(entry.split("=", 1) for entry in command.read_from(0).text.split("\0") if entry)


def test_a_name_that_is_given_is_set_and_one_that_is_taken_away_is_not_there(seam):  # 4.3
    before = environment(seam)
    assert before["HOME"] == seam.ground.home and before["PATH"]
    after = environment(seam, {"HOME": None, "GIVEN": "a=b c\nd", "EMPTY": "", "PATH": "/usr/bin:/bin", "NOBODY": None})
    assert (after["GIVEN"], after["EMPTY"], after["PATH"]) == ("a=b c\nd", "", "/usr/bin:/bin")
    assert "HOME" not in after and "NOBODY" not in after


def test_what_one_command_is_given_another_does_not_find(seam):  # 4.3
    assert environment(seam, {"ONLY_HERE": "x"})["ONLY_HERE"] == "x"
    assert "ONLY_HERE" not in environment(seam)


def test_a_name_that_looks_like_a_secret_is_set_when_it_is_given(seam):  # 4.3
    given = {name: "given" for name in SECRETS}
    found = environment(seam, given)
    assert given.items() <= found.items()
    names = [name for name in environment(seam) if name in SECRETS]
    assert not names


@not_through("agentd", "dsh", why="Nothing of that name is in the environment of the stage's sandbox.")
def test_names_that_look_like_secrets_are_taken_away_from_what_the_user_has(seam):  # 4.3
    with alone_executor(env={name: "from-the-user" for name in SECRETS + PLAIN}) as alone:
        with WireSeam({"executor": alone.told()}, Ground("", str(alone.home)), "executor") as other:
            found = environment(other)
            assert not [name for name in SECRETS if name in found], found
            assert {name: found.get(name) for name in PLAIN} == {name: "from-the-user" for name in PLAIN}


def test_no_profile_of_a_shell_is_read(seam):  # 4.3 P3
    for name in (".bash_profile", ".profile", ".bashrc", ".bash_login"):
        seam.ground.write(seam.path(name), f"env > {seam.path('seen')}; echo read {name}\n".encode())
    given = {"HOME": seam.folder, "GIVEN_TOKEN": "given"}
    for argv in (["bash", "-c", "echo shown"], ["sh", "-c", "echo shown"]):
        command = seam.spawn(argv, env=given)
        assert command.done() == Outcome(0, None)
        assert command.read_from(0).text == "shown\n"
    assert not seam.ground.at(seam.path("seen")).exists()
