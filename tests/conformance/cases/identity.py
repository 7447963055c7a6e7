"""Which file a path stands for."""

from seam import fails, not_through


def test_a_blank_path_is_nothing(seam):  # F1
    for blank in ("  ", "\n", "\t "):
        with fails("FS_NOT_FOUND"):
            seam.resolve(blank)


@not_through("executor", "agentd", why="A path in a request has at least one byte; without, the request is INVALID.")
def test_an_empty_path_is_nothing(seam):  # F1
    with fails("FS_NOT_FOUND"):
        seam.resolve("")
    with fails("FS_NOT_FOUND"):
        seam.lstat("")


def test_a_path_shows_as_it_is_spelled_with_no_link_followed(seam):  # F1
    seam.ground.folder(seam.path("real"))
    seam.ground.link(seam.path("alias"), "real")
    target = seam.resolve("x/../alias//./file", cwd=seam.folder)
    assert target.display == seam.path("alias/file"), target


@not_through("executor", "agentd", why="A URI is made by the client; the protocol knows paths.")
def test_a_uri_has_each_byte_of_a_name_that_is_not_plain_encoded(seam):  # F6
    target = seam.at("ä b", "50%#?.txt")
    assert seam.file_url(target) == f"file://{seam.folder}/%C3%A4%20b/50%25%23%3F.txt"
