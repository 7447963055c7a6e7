"""What is a token, as the other clients read it: cli/reach/way_test.cc, clients/dsh/test/rules.test.ts."""

import pytest

from sandfleet.token_file import token_source


@pytest.mark.parametrize("token", ["!a.b~", "x" * 8192], ids=["short", "longest"])
def test_a_token_is_read_again_each_time_without_the_blanks_around_it(tmp_path, token):
    path = tmp_path / "token"
    read = token_source(path)
    with pytest.raises(FileNotFoundError):
        read()
    path.write_text("before")
    assert read() == "before"
    path.write_bytes(b" \r\n\t" + token.encode() + b"\n")
    assert read() == token
    path.write_text("\n")
    with pytest.raises(FileNotFoundError):  # It may be on its way.
        read()


NONE = [b"x" * 8193, b"a b", b"a\nb", b"\x7f", b"\xff", b"\xc3\xa9", b"a\0b", b"\xc2\xa0a", b"\xef\xbb\xbfa", b"\va"]


@pytest.mark.parametrize("content", NONE, ids=lambda content: repr(content[:9]))
def test_nothing_is_taken_for_a_token_that_is_none(tmp_path, content):
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="holds no token"):
        token_source(path)()
