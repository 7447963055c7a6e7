"""The session machine against a server that says what a test tells it to: no socket, no clock."""

import pytest
from scene import Scene

from sandfleet.errors import RemoteError
from sandfleet.events import Answered, Closed, Failed, Moved, Noticed, Opened, Welcomed
from sandfleet.frames import Kind
from sandfleet.link import RENEW_LEAST_S, renew_after
from sandfleet.messages import LIMITS
from sandfleet.session import (
    DEAD_AFTER_S,
    LASTING_STREAMS_MOST,
    OPEN_WITHIN_S,
    PING_AFTER_S,
)
from sandfleet.streams import CHUNK_BYTES, HELD_ALWAYS, HELD_MOST
from sandfleet.window import ACKNOWLEDGE_AFTER


@pytest.fixture
def scene():
    return Scene()


def test_nothing_but_the_resume_is_sent_before_the_servers_and_it_names_the_link(scene):
    scene.ask()
    scene.session.dial("secret", 0)
    (hello,) = scene.only(Kind.HELLO)
    assert hello["token"] == "secret" and hello["session"] is None and hello["uid"] is None
    scene.welcome()
    (resume,) = scene.sent()
    assert (resume["link"], list(resume["requests"]), resume["receiving"]) == ("link-1", [], [])
    scene.resume()
    assert len(scene.only(Kind.REQUEST)) == 1
    scene.session.dial("secret", 0)
    (again,) = scene.only(Kind.HELLO)
    assert (again["session"], again["uid"]) == ("a" * 32, "u"), "into that sandbox and no other"


def test_mutating_requests_are_numbered_and_their_replies_acknowledged(scene):
    scene.link()
    first = scene.ask("fs.write", mutating=True)
    scene.ask()
    second = scene.ask("fs.write", mutating=True)
    assert [message["seq"] for message in scene.only(Kind.REQUEST)] == [1, None, 2]
    scene.reply(second)
    scene.session.tick(1)
    assert [(ack["through"], list(ack["also"])) for ack in scene.only(Kind.ACK)] == [(None, [2])]
    scene.reply(first)
    scene.ask("fs.write", mutating=True)
    assert [(message["seq"], message["kept"]) for message in scene.only(Kind.REQUEST)] == [(3, 2)]


def test_many_replies_are_acknowledged_before_the_next_tick(scene):
    scene.link()
    numbers = [scene.ask("fs.mkdir", mutating=True) for _ in range(ACKNOWLEDGE_AFTER)]
    scene.sent()
    for number in numbers:
        scene.reply(number)
    assert [ack["through"] for ack in scene.only(Kind.ACK)] == [ACKNOWLEDGE_AFTER]


def test_no_more_mutations_go_out_than_the_server_keeps_replies(scene):
    scene.link(replies=2)
    numbers = [scene.ask("fs.mkdir", mutating=True) for _ in range(4)]
    assert [each.stream for each in scene.only(Kind.REQUEST)] == numbers[:2]
    scene.reply(numbers[0])
    scene.reply(numbers[1])
    assert [(each.kind, each.stream) for each in scene.sent()] == [
        (Kind.ACK, 0),
        (Kind.REQUEST, numbers[2]),
        (Kind.REQUEST, numbers[3]),
    ]


def test_after_a_cut_all_that_is_unanswered_is_asked_again_with_the_same_numbers(scene):
    scene.link()
    write = scene.ask("fs.write", mutating=True, up=True)
    scene.session.append(write, b"x" * 10)
    scene.session.end(write)
    stat = scene.ask()
    assert [(each.payload, each.end) for each in scene.only(Kind.REQUEST)] == [(b"x" * 10, True), (b"", False)]
    scene.session.cut()
    assert list(scene.link(resumed=True)[-1]["requests"]) == [write, stat]
    again = scene.sent()
    requests = [(each.stream, each["seq"], each.payload) for each in again if each.kind == Kind.REQUEST]
    assert requests == [(write, 1, b""), (stat, None, b"")]
    data = [(each["offset"], each.payload, each.end) for each in again if each.kind == Kind.DATA]
    assert data == [(0, b"x" * 10, True)], "the server had not seen it"


def test_an_upload_goes_on_where_the_server_says_within_its_credit(scene):
    scene.link()
    write = scene.ask("fs.write", mutating=True, up=True)
    total = LIMITS.first_bytes + 3 * CHUNK_BYTES
    scene.session.append(write, b"x" * total)
    scene.session.end(write)
    assert len(scene.only(Kind.REQUEST)[0].payload) == LIMITS.first_bytes
    assert scene.sent() == [], "no credit, no data"
    scene.session.cut()
    scene.events()
    scene.link(resumed=True, receiving=[(write, 1000, 1000 + CHUNK_BYTES)])
    assert [type(event) for event in scene.events()] == [Welcomed, Opened, Moved], "whoever fills it may go on"
    data = [(each["offset"], len(each.payload)) for each in scene.only(Kind.DATA)]
    assert [size for _, size in data] == [2048, 4096, 8192, 16384, 32768, 2048], "small ones first"
    assert (data[0][0], sum(data[-1])) == (1000, 1000 + CHUNK_BYTES)
    scene.say(Kind.CREDIT, {"received": total, "limit": total, "ended": True}, write)
    assert scene.events(Closed)[0].reason == "protocol", "it received more than was sent"


def test_in_a_new_session_what_was_sent_and_acts_ends_as_unknown_and_the_rest_is_asked(scene):
    scene.link()
    sent = scene.ask("fs.write", mutating=True)
    look = scene.ask()
    scene.sent()
    scene.session.cut()
    unsent = scene.ask("fs.write", mutating=True)
    scene.link(session="b" * 32)
    assert [(each.id, each.failure.code) for each in scene.events(Failed)] == [(sent, "OUTCOME_UNKNOWN")]
    assert [(each.stream, each["seq"]) for each in scene.only(Kind.REQUEST)] == [(look, None), (unsent, 1)]


def test_streams_of_an_answered_request_end_as_lost_with_their_session_after_what_came(scene):
    scene.link()
    out = scene.session.new_stream()
    spawn = scene.ask("process.spawn", mutating=True, to_client=(out,))
    scene.sent()
    scene.reply(spawn, {"pid": 1})
    scene.say(Kind.DATA, {"offset": 0}, out, b"abc")
    scene.session.cut()
    scene.link(session="b" * 32)
    first, last = scene.take(out), scene.take(out)
    if last is None:  # Both came in one.
        assert (first.data, first.end, first.error.code) == (b"abc", True, "LOST")
    else:
        assert first.data + last.data == b"abc" and last.error.code == "LOST"


def test_a_stream_takes_each_byte_once_and_gives_credit_when_half_is_used(scene):
    scene.link()
    read = scene.ask("fs.readBytes", down=True)
    (request,) = scene.only(Kind.REQUEST)
    assert request["down"] == LIMITS.stream_bytes
    scene.reply(read, payload=b"ab")
    scene.say(Kind.DATA, {"offset": 1}, read, b"bcd")
    assert [scene.take(read).data, scene.take(read).data] == [b"ab", b"cd"]
    assert scene.only(Kind.CREDIT) == [], "little of it is used"
    half = LIMITS.stream_bytes // 2
    for at in range(4, half + 4, 1 << 16):
        scene.say(Kind.DATA, {"offset": at}, read, b"x" * (1 << 16))
    while scene.take(read):
        pass
    (credit,) = scene.only(Kind.CREDIT)
    assert (credit["received"], credit["limit"]) == (half + 4, half + 4 + LIMITS.stream_bytes)


@pytest.mark.parametrize(
    "offset,size,why", [(5, 1, "gap"), (0, LIMITS.stream_bytes + 1, "credit")], ids=["a_gap", "beyond_its_credit"]
)
def test_a_sender_that_does_not_keep_to_a_stream_is_closed(scene, offset, size, why):
    scene.link()
    read = scene.ask("fs.readBytes", down=True)
    scene.sent()
    scene.reply(read)
    data = b"x" * size
    for at in range(0, size, 1 << 18):
        scene.say(Kind.DATA, {"offset": offset + at}, read, data[at : at + (1 << 18)])
    (closed,) = scene.events(Closed)
    assert closed.reason == "protocol" and why in closed.message
    assert [each["reason"] for each in scene.only(Kind.CLOSE)] == ["protocol"]


def test_a_mirror_may_skip_and_is_answered_with_credit(scene):
    scene.link()
    out = scene.session.new_stream()
    spawn = scene.ask("process.spawn", mutating=True, to_client=(out,))
    scene.sent()
    scene.reply(spawn)
    scene.say(Kind.DATA, {"offset": 1 << 40}, out, dropped=True)
    assert scene.take(out) is None
    (credit,) = scene.only(Kind.CREDIT)
    assert (credit["received"], credit["limit"]) == (1 << 40, (1 << 40) + LIMITS.stream_bytes)
    scene.say(Kind.DATA, {"offset": 1 << 40}, out, b"tail", end=True)
    piece = scene.take(out)
    assert (piece.offset, piece.data, piece.end) == (1 << 40, b"tail", True)


def test_streams_hold_little_of_each_once_all_hold_much(scene):
    scene.link()
    streams = [scene.session.new_stream() for _ in range(HELD_MOST // LIMITS.stream_bytes + 2)]
    scene.ask("process.spawn", mutating=True, to_server=tuple(streams))
    for stream in streams:
        scene.session.append(stream, b"x" * scene.session.room(stream))
    assert scene.session.room(streams[-1]) == 0
    assert scene.session._streams.held == HELD_MOST + 2 * HELD_ALWAYS


def test_a_removed_stream_is_told_by_stop_and_after_a_cut_by_not_being_named(scene):
    scene.link()
    read = scene.ask("fs.readBytes", down=True)
    scene.sent()
    scene.reply(read)
    scene.session.stop(read)
    assert [each.kind for each in scene.sent()] == [Kind.STOP]
    scene.session.cut()
    assert scene.link(resumed=True)[-1]["receiving"] == []


def test_a_read_that_is_given_up_fails_at_once_and_a_mutation_with_its_reply(scene):
    scene.link()
    read, write = scene.ask(), scene.ask("fs.write", mutating=True)
    scene.sent()
    scene.session.cancel(read)
    scene.session.cancel(write)
    assert [(each.id, each.failure.code) for each in scene.events(Failed)] == [(read, "CANCELLED")]
    assert [each.stream for each in scene.only(Kind.CANCEL)] == [read, write]
    scene.reply(write)
    assert [each.id for each in scene.events(Answered)] == [write]


def test_what_is_given_up_is_told_before_more_is_asked(scene):
    scene.link()
    running, looked = scene.ask(down=True), scene.ask()
    scene.sent()
    scene.reply(running)
    scene.session.stop(running)
    scene.session.cancel(looked)
    asked = scene.ask()
    told = [(message.kind, message.stream) for message in scene.sent()]
    assert told == [(Kind.CANCEL, looked), (Kind.STOP, running), (Kind.REQUEST, asked)]


def test_of_a_stream_the_server_hears_once_it_knows_it(scene):
    scene.link(requests=1)
    before = scene.ask()
    stdin, stdout = scene.session.new_stream(), scene.session.new_stream()
    spawned = scene.ask("process.spawn", mutating=True, to_server=(stdin,), to_client=(stdout,))
    scene.session.end(stdin)
    scene.session.stop(stdout)
    assert Kind.DATA not in [message.kind for message in scene.sent()]
    scene.reply(before)
    told = [(message.kind, message.stream, message.end) for message in scene.sent()]
    assert told == [(Kind.REQUEST, spawned, False), (Kind.STOP, stdout, False), (Kind.DATA, stdin, True)]


def test_a_session_that_another_executor_has_is_not_gone_on_with(scene):
    scene.link()
    scene.ask("fs.write", mutating=True)
    scene.sent()
    scene.session.cut()
    scene.session.dial("token", 0)
    scene.sent()
    scene.welcome(resumed=True, instance="another")
    assert [message.kind for message in scene.sent()] == [Kind.CLOSE]
    assert [event.reason for event in scene.events(Closed)] == ["protocol"]


def test_each_notice_is_heard_once_and_acknowledged_again_after_a_cut(scene):
    scene.link()
    for _ in range(2):
        scene.say(Kind.NOTICE, {"number": 1, "kind": "restored", "message": "m"})
    assert [event.notice.number for event in scene.events(Noticed)] == [1]
    scene.session.tick(1)
    assert [ack["notices"] for ack in scene.only(Kind.ACK)] == [1]
    scene.session.cut()
    scene.link(resumed=True)
    assert [ack["notices"] for ack in scene.only(Kind.ACK)] == [1]


def test_a_second_welcome_on_an_open_link_is_a_new_link(scene):
    scene.link()
    write = scene.ask("fs.write", mutating=True)
    scene.sent()
    scene.welcome(resumed=True)
    (resume,) = scene.sent()
    assert (resume.kind, resume["link"], list(resume["requests"])) == (Kind.RESUME, "link-2", [write])
    scene.resume()
    assert [(each.stream, each["seq"]) for each in scene.only(Kind.REQUEST)] == [(write, 1)]


def test_who_is_silent_is_asked_and_then_left(scene):
    scene.link()
    scene.session.tick(PING_AFTER_S)
    assert [each.kind for each in scene.sent()] == [Kind.PING]
    scene.say(Kind.PING)
    assert [each.kind for each in scene.sent()] == [Kind.PONG]
    scene.session.tick(DEAD_AFTER_S)
    assert [event.reason for event in scene.events(Closed)] == ["silent"]
    assert scene.session.over


def test_a_server_that_does_not_open_is_left(scene):
    scene.session.dial(None, 0)
    scene.session.tick(OPEN_WITHIN_S)
    assert [event.reason for event in scene.events(Closed)] == ["silent"]


def test_so_many_requests_and_streams_and_no_more(scene):
    scene.link()
    for _ in range(LIMITS.requests):
        scene.ask()
    with pytest.raises(RemoteError, match="BUSY"):
        scene.ask()
    other = Scene()
    for _ in range(LASTING_STREAMS_MOST // 8):
        streams = tuple(other.session.new_stream() for _ in range(8))
        other.ask("process.spawn", mutating=True, to_client=streams)
    with pytest.raises(RemoteError, match="streams of processes"):
        other.ask("process.spawn", mutating=True, to_client=(other.session.new_stream(),))
    other.ask()  # What is short finds room.
    with pytest.raises(RemoteError, match="longer than a frame"):
        Scene().ask(args={"path": "x" * (1 << 20)})


def test_an_abandoned_session_tells_what_was_sent_from_what_was_not(scene):
    scene.link()
    sent = scene.ask("fs.write", mutating=True)
    scene.sent()
    scene.session.cut()
    unsent = scene.ask("fs.write", mutating=True)
    scene.session.abandon("the lease is over")
    codes = {event.id: event.failure.code for event in scene.events(Failed)}
    assert codes == {sent: "OUTCOME_UNKNOWN", unsent: "UNAVAILABLE"}


def test_a_credential_is_renewed_before_its_end_and_never_again_at_once():
    assert renew_after(3_600_000) == 2_880
    assert renew_after(1) == RENEW_LEAST_S
