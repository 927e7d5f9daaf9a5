"""Tunnels, upgrades, and whose a connection is."""

import time

from rows.ends import big, told
from trial import MAY, MUST, OK, is_hello, is_refused, row
from wire import Ended


def connect(trial, script):
    """A tunnel to the origin, and what came behind the answer."""
    trial.serve(script)
    peer = trial.client()
    peer.send(trial.fill("CONNECT {h} HTTP/1.1\r\nHost: {h}\r\n\r\n"))
    return peer, trial.receive(peer, "CONNECT")


def is_open(answer):
    return answer is not None and answer.status == 200


@row("RFC 9110 §9.3.6", MUST, "CONNECT",
     "200 without length and coding; bytes both ways", "forward")
def connect_bytes(t):
    def script(peer, _number):
        peer.send(peer.take(4)[::-1])
        peer.rest(2)

    peer, answer = connect(t, script)
    if not is_open(answer):
        return False
    peer.send(b"abcd")
    return peer.take(4) == b"dcba" and not answer.has("content-length") \
        and not answer.has("transfer-encoding")


@row("RFC 9110 §9.3.6", MUST, "CONNECT, 1 MB from the origin and its end",
     "all of it, then the end", "forward")
def connect_end(t):
    peer, answer = connect(t, lambda peer, _n: peer.send(big(1)))
    data, how = peer.rest()
    t.note(f"{len(data)} bytes, {how}")
    return is_open(answer) and data == big(1) and how == "fin"


@row("RFC 9110 §9.3.6", MUST, "CONNECT, bytes and the client's end",
     "all of them at the origin", "forward")
def connect_client_ends(t):
    got = []
    peer, answer = connect(t, lambda peer, _n: got.append(peer.rest(4)))
    if not is_open(answer):
        return False
    peer.send(big(1))
    peer.close()
    return t.wait(lambda: got, 5) and got[0] == (big(1), "fin")


@row("RFC 9110 §9.3.6", MAY, "CONNECT, the client half-closes, the origin answers",
     "the answer comes", "forward")
def connect_half_close(t):
    def script(peer, _number):
        data, _ = peer.rest(4)
        time.sleep(0.3)
        peer.send(data[::-1])

    peer, answer = connect(t, script)
    if not is_open(answer):
        return False
    peer.send(b"abcd")
    peer.fin()
    return peer.rest(4) == (b"dcba", "fin")


@row("RFC 9110 §9.3.6", MAY, "CONNECT, the origin half-closes, the client goes on",
     "all of it arrives", "forward")
def connect_origin_half_closes(t):
    got = []

    def script(peer, _number):
        peer.send(b"bye")
        peer.fin()
        got.append(peer.rest(4))

    peer, answer = connect(t, script)
    if not is_open(answer) or peer.rest(2) != (b"bye", "fin"):
        return False
    time.sleep(0.3)
    try:
        peer.send(b"abcd")
        peer.fin()
    except Ended:
        return False
    return t.wait(lambda: got, 5) and got[0] == (b"abcd", "fin")


@row("RFC 9110 §9.3.6", MAY, "CONNECT, the origin resets", "the client sees a reset", "forward")
def connect_origin_resets(t):
    def script(peer, _number):
        peer.take(4)
        peer.send(b"half")
        time.sleep(0.2)
        peer.reset()

    peer, answer = connect(t, script)
    if not is_open(answer):
        return False
    peer.send(b"abcd")
    data, how = peer.rest()
    t.note(how)
    return how == "rst"


@row("RFC 9110 §9.3.6", MAY, "CONNECT, the client resets", "the origin sees a reset", "forward")
def connect_client_resets(t):
    got = []
    peer, answer = connect(t, lambda peer, _n: got.append(peer.rest(5)))
    if not is_open(answer):
        return False
    peer.send(b"half")
    time.sleep(0.2)
    peer.reset()
    t.wait(lambda: got, 6)
    t.note(got[0][1] if got else "open")
    return bool(got) and got[0][1] == "rst"


@row("RFC 9110 §9.3.6", MUST, "CONNECT to a port where nobody listens",
     "502, 503 or 504", "forward")
def connect_refused(t):
    t.listener.close()
    peer = t.client()
    peer.send(t.fill("CONNECT {h} HTTP/1.1\r\nHost: {h}\r\n\r\n"))
    answer = t.receive(peer, "CONNECT")
    return answer is not None and answer.status in (502, 503, 504)


@row("RFC 9110 §9.3.6", MUST, "CONNECT and the first bytes in one segment",
     "they reach the origin", "forward")
def connect_early_bytes(t):
    got = []
    t.serve(lambda peer, _n: got.append(peer.take(4)))
    peer = t.client()
    peer.send(t.fill("CONNECT {h} HTTP/1.1\r\nHost: {h}\r\n\r\nabcd"))
    return is_open(t.receive(peer, "CONNECT")) and t.wait(lambda: got == [b"abcd"])


def connect_bad(trial, target):
    trial.serve(trial.answering(OK))
    peer = trial.client()
    peer.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    return is_refused(trial.receive(peer, "CONNECT"))


@row("RFC 9110 §9.3.6", MUST, "CONNECT without a port", "refused with 4xx", "forward")
def connect_no_port(t):
    return connect_bad(t, "127.0.0.1")


@row("RFC 9110 §9.3.6", MUST, "CONNECT to port 0", "refused with 4xx", "forward")
def connect_port_0(t):
    return connect_bad(t, "127.0.0.1:0")


@row("RFC 9110 §9.3.6", MUST, "CONNECT to port 99999", "refused with 4xx", "forward")
def connect_port_99999(t):
    return connect_bad(t, "127.0.0.1:99999")


@row("RFC 9112 §3.2.3", MUST, "CONNECT with an absolute target", "refused with 4xx", "forward")
def connect_absolute(t):
    return connect_bad(t, t.absolute + "/")


@row("RFC 9110 §9.3.6", MUST, "CONNECT at a reverse proxy", "refused with 4xx or 501", "reverse")
def connect_at_reverse(t):
    t.serve(t.answering(OK))
    peer = t.client()
    peer.send(f"CONNECT {t.origin_host} HTTP/1.1\r\nHost: {t.origin_host}\r\n\r\n".encode())
    answer = t.receive(peer)
    return answer is not None and (400 <= answer.status < 500 or answer.status == 501) \
        and t.connections == 0


# Upgrade.


def upgrade(trial, protocol="websocket", *fields, version="1.1"):
    return trial.get("/ws", "Connection: Upgrade", f"Upgrade: {protocol}",
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
                     *fields, version=version)


def switching(protocol=b"websocket"):
    return b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol \
        + b"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"


@row("RFC 9110 §7.8", MAY, "a switch to websocket", "101, and bytes both ways")
def upgrade_websocket(t):
    def script(peer, _number):
        t.requests.append(peer.request_head())
        peer.send(switching())
        peer.send(peer.take(4)[::-1])
        peer.rest(1)

    answer, _ = t.ask(upgrade(t), script)
    if answer is None or answer.status != 101:
        return False
    t.last.send(b"abcd")
    return t.last.take(4) == b"dcba" and (answer.get("upgrade") or "").lower() == "websocket"


@row("RFC 9110 §7.8", MAY, "a switch to websocket, first bytes in the segment of 101",
     "they arrive")
def upgrade_early_bytes(t):
    def script(peer, _number):
        t.requests.append(peer.request_head())
        peer.send(switching() + b"first")
        peer.rest(1)

    answer, _ = t.ask(upgrade(t), script)
    return answer is not None and answer.status == 101 and t.last.take(5) == b"first"


@row("RFC 9110 §7.8", MAY, "a switch to websocket that the origin ends in order",
     "all, then the end")
def upgrade_end(t):
    def script(peer, _number):
        t.requests.append(peer.request_head())
        peer.send(switching() + b"bye")

    answer, _ = t.ask(upgrade(t), script)
    return answer is not None and answer.status == 101 and t.last.rest() == (b"bye", "fin")


@row("RFC 9110 §7.8", MAY, "a switch to websocket that the origin resets", "a reset at the client")
def upgrade_reset(t):
    def script(peer, _number):
        t.requests.append(peer.request_head())
        peer.send(switching() + b"bye")
        time.sleep(0.3)
        peer.reset()

    answer, _ = t.ask(upgrade(t), script)
    if answer is None or answer.status != 101:
        return False
    how = t.last.rest()[1]
    t.note(how)
    return how == "rst"


@row("RFC 9110 §7.8", MUST, "a switch to websocket that is answered 200",
     "200; the connection goes on")
def upgrade_refused(t):
    answer, _ = t.ask(upgrade(t))
    if not is_hello(answer):
        return False
    t.last.send(t.get("/y"))
    return is_hello(t.receive(t.last))


@row("RFC 9110 §7.8", MUST, "Upgrade that Connection does not name", "not passed")
def upgrade_not_named(t):
    answer, request = t.ask(t.get("/x", "Upgrade: websocket"))
    return is_hello(answer) and not request.has("upgrade")


@row("RFC 9110 §7.8", MUST, "Upgrade in a request of HTTP/1.0", "no 101 to the client")
def upgrade_in_1_0(t):
    answer, request = t.ask(upgrade(t, version="1.0"))
    return is_hello(answer) and not request.has("upgrade")


@row("RFC 9110 §7.8", MUST, "`Upgrade: h2c` with HTTP2-Settings", "neither reaches the origin; 200")
def upgrade_h2c(t):
    answer, request = t.ask(t.get("/x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                                  "HTTP2-Settings: AAMAAABkAAQAAP__"))
    return is_hello(answer) and not request.has("http2-settings") \
        and "h2c" not in (request.get("upgrade") or "")


@row("RFC 9110 §7.8", MUST, "101 that nobody asked for", "502, no 101 at the client")
def unasked_101(t):
    answer, _ = t.ask(t.get("/x"), switching() + b"raw bytes")
    return answer is not None and answer.status in (500, 502)


@row("RFC 9110 §7.8", MUST, "101 to another protocol than was asked for", "no 101 at the client")
def other_101(t):
    answer, _ = t.ask(upgrade(t), switching(b"foo"))
    return answer is None or answer.status != 101


@row("RFC 9110 §7.8", MUST, "200 with `Upgrade: h2,h2c` and `Connection: Upgrade`",
     "taken off, 200")
def upgrade_offered(t):
    answer, _ = t.ask(t.get("/x"), told(b"hello", b"200 OK", b"Upgrade: h2,h2c",
                                        b"Connection: Upgrade"))
    return is_hello(answer) and not answer.has("upgrade")


# Whose a connection is.


def login(trial, scheme):
    """An origin that authenticates its connection, as NTLM and Negotiate do."""

    def script(peer, _number):
        user, step = None, 0
        while True:
            request = trial.read_request(peer)
            given = request.get("authorization") or ""
            if given.startswith(scheme) and step == 0:
                step = 1
                peer.send(told(b"", b"401 Unauthorized",
                               f"WWW-Authenticate: {scheme} challenge".encode()))
            elif given.startswith(scheme):
                step, user = 0, given.split()[1]
                peer.send(told(b"mail of " + user.encode()))
            elif user:
                peer.send(told(b"mail of " + user.encode()))
            else:
                peer.send(told(b"", b"401 Unauthorized", f"WWW-Authenticate: {scheme}".encode()))

    trial.serve(script)
    alice = trial.client()
    bodies_seen = []
    for token in ("first", "alice"):
        alice.send(trial.get("/mail", f"Authorization: {scheme} {token}"))
        answer = trial.receive(alice)
        bodies_seen.append(answer.body if answer else None)
    return bodies_seen[-1] == b"mail of alice"


def another_is_asked(trial, scheme):
    login(trial, scheme)
    statuses = []
    for _ in range(3):
        mallory = trial.client()
        mallory.send(trial.get("/mail"))
        answer = trial.receive(mallory)
        statuses.append(answer.status if answer else None)
    return statuses == [401] * 3


@row("RFC 4559 §6", MUST, "alice logs in by NTLM, mallory asks without a word", "mallory gets 401")
def ntlm_not_shared(t):
    return another_is_asked(t, "NTLM")


@row("RFC 4559 §6", MUST, "alice logs in by Negotiate, mallory asks without a word",
     "mallory gets 401")
def negotiate_not_shared(t):
    return another_is_asked(t, "Negotiate")


@row("RFC 4559 §6", MAY, "a login by NTLM, another client's request between its steps",
     "it succeeds")
def ntlm_login(t):
    return login(t, "NTLM")


@row("RFC 4559 §6", MAY, "a login by Negotiate", "it succeeds")
def negotiate_login(t):
    return login(t, "Negotiate")
