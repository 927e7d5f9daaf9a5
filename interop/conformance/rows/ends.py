"""Persistent connections, pipelining, 1xx, Expect, early answers, status lines."""

import threading
import time

from trial import MAY, MUST, OK, SHOULD, is_hello, is_refused, row
from wire import Ended

DATE = b"Date: Tue, 01 Dec 2026 08:00:00 GMT\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def told(body, status=b"200 OK", *fields):
    """An answer with this body."""
    lines = b"".join(one + b"\r\n" for one in fields)
    return b"HTTP/1.1 " + status + b"\r\n" + DATE + lines \
        + b"Content-Length: %d\r\n\r\n" % len(body) + body


# Connections.


def naming(trial):
    """A script: the answer's body is the method and the last part of the target."""

    def script(peer, _number):
        while True:
            request = trial.read_request(peer)
            peer.send(told(f"{request.method} {request.target.rsplit('/', 1)[1]}".encode()))

    return script


def bodies(trial, peer, count):
    answers = [trial.receive(peer) for _ in range(count)]
    return [answer.body.decode() if answer and answer.whole else None for answer in answers]


@row("RFC 9112 §9.3", SHOULD, "two requests of HTTP/1.1 on one connection", "both answered on it")
def persistent(t):
    t.serve(naming(t))
    peer = t.client()
    peer.send(t.get("/a"))
    first = bodies(t, peer, 1)
    peer.send(t.get("/b"))
    return first + bodies(t, peer, 1) == ["GET a", "GET b"]


@row("RFC 9112 §9.3.2", MUST, "three GETs in one segment", "answered in order")
def pipelined(t):
    t.serve(naming(t))
    peer = t.client()
    peer.send(t.get("/a") + t.get("/b") + t.get("/c"))
    return bodies(t, peer, 3) == ["GET a", "GET b", "GET c"]


@row("RFC 9112 §9.3.2", MUST, "GET, POST with a body in chunks, GET in one segment",
     "answered in order")
def pipelined_with_body(t):
    t.serve(naming(t))
    peer = t.client()
    peer.send(t.get("/a") + t.get("/b", "Transfer-Encoding: chunked", method="POST",
                                  body=b"5\r\nhello\r\n0\r\n\r\n") + t.get("/c"))
    return bodies(t, peer, 3) == ["GET a", "POST b", "GET c"]


@row("RFC 9112 §9.3", MUST, "request of HTTP/1.0", "the connection ends behind the answer")
def closes_for_1_0(t):
    answer, _ = t.ask(t.get("/x", version="1.0"))
    return is_hello(answer) and t.last.closes()


@row("RFC 9112 §9.3", MAY, "request of HTTP/1.0 with keep-alive", "whole; what it says, it does")
def keep_alive_in_1_0(t):
    answer, _ = t.ask(t.get("/x", "Connection: keep-alive", version="1.0"))
    says = answer is not None and "keep-alive" in (answer.get("connection") or "").lower()
    return is_hello(answer) and says != t.last.closes(1)


@row("RFC 9112 §9.3.1", MAY, "GET when the origin has closed the idle connection", "served")
def idle_connection_closed(t):
    def script(peer, _number):
        t.read_request(peer)
        peer.send(OK)

    t.serve(script)
    for _ in range(3):
        peer = t.client()
        peer.send(t.get("/x"))
        if not is_hello(t.receive(peer)):
            return False
        time.sleep(0.05)
    return True


@row("RFC 9110 §9.2.2", MUST, "POST whose connection ends before an answer",
     "asked once, 502 or 504")
def post_not_repeated(t):
    def script(peer, _number):
        while "second" not in t.read_request(peer).target:
            peer.send(OK)

    t.serve(script)
    peer = t.client()
    peer.send(t.post("/first"))
    first = t.receive(peer)
    if peer.closes(0.1):
        peer = t.client()
    peer.send(t.post("/second"))
    second = t.receive(peer)
    asked = sum("second" in request.target for request in t.requests)
    t.note(f"asked {asked} times")
    return is_hello(first) and asked == 1 and second is not None \
        and second.status in (502, 503, 504)


@row("RFC 9112 §9.6", MUST, "answer with `Connection: close`, and another request",
     "a new connection")
def answer_close(t):
    t.serve(t.answering(told(b"hello", b"200 OK", b"Connection: close")))
    for _ in range(2):
        peer = t.client()
        peer.send(t.get("/x"))
        if not is_hello(t.receive(peer)):
            return False
    t.note(f"connections: {t.connections}")
    return t.connections == 2


@row("RFC 9112 §6.3", MUST, "answer longer than its length, then another client's request",
     "the rest is no answer to it")
def stray_bytes(t):
    evil = told(b"EVIL!")
    return no_stray(t, lambda peer: peer.send(OK + evil))


@row("RFC 9112 §9.2", MUST, "an answer that nobody asked for on an idle connection",
     "it answers no other client's request")
def stray_answer_later(t):
    def send(peer):
        peer.send(OK)
        time.sleep(0.2)
        peer.send(told(b"EVIL!"))

    return no_stray(t, send)


def no_stray(trial, send):
    """Whether three clients get their own answers from an origin that says too much at first."""

    def script(peer, number):
        trial.read_request(peer)
        if number == 1:
            send(peer)
        while True:
            if number > 1:
                peer.send(OK)
            trial.read_request(peer)
            if number == 1:
                peer.send(OK)

    trial.serve(script)
    for count in range(3):
        peer = trial.client()
        peer.send(trial.get(f"/{count}"))
        if not is_hello(trial.receive(peer)):
            trial.note(f"request {count + 1}")
            return False
        time.sleep(0.3)
    return True


@row("RFC 9111 §5.2.2", MUST, "the same GET twice, answers with no-store", "asked twice")
def no_store(t):
    t.serve(t.answering(told(b"one", b"200 OK", b"Cache-Control: no-store"),
                        told(b"two", b"200 OK", b"Cache-Control: no-store")))
    got = []
    for _ in range(2):
        peer = t.client()
        peer.send(t.get("/x"))
        got += bodies(t, peer, 1)
    return got == ["one", "two"]


@row("RFC 9111 §3.5", MUST, "GET with Authorization, then the same without", "asked twice")
def authorized_not_shared(t):
    t.serve(t.answering(told(b"secret", b"200 OK", b"Cache-Control: max-age=60"), told(b"public")))
    got = []
    for fields in (["Authorization: Basic dTpw"], []):
        peer = t.client()
        peer.send(t.get("/x", *fields))
        got += bodies(t, peer, 1)
    return got == ["secret", "public"]


def big(megabytes):
    return bytes(range(256)) * 4096 * megabytes


@row("RFC 9112 §6", MUST, "answer of 5 MB in chunks", "byte for byte")
def answer_large(t):
    body = big(5)
    head = b"HTTP/1.1 200 OK\r\n" + DATE + b"Transfer-Encoding: chunked\r\n\r\n"
    pieces = b"".join(b"%x\r\n" % len(body[at:at + 7777]) + body[at:at + 7777] + b"\r\n"
                      for at in range(0, len(body), 7777))
    answer, _ = t.ask(t.get("/x"), head + pieces + b"0\r\n\r\n")
    return answer is not None and answer.whole and answer.body == body


@row("RFC 9112 §6", MUST, "request of 5 MB with a length", "byte for byte")
def request_large(t):
    body = big(5)
    answer, request = t.ask(t.post("/x", body=body))
    return is_hello(answer) and request.body == body


# Interim answers.


@row("RFC 9110 §15.2", MUST, "102 three times, then 200", "102 reach the client")
def interim_102(t):
    processing = b"HTTP/1.1 102 Processing\r\n\r\n"
    answer, _ = t.ask(t.get("/x"), processing * 3 + OK)
    return is_hello(answer) and [one.status for one in answer.interim] == [102] * 3


@row("RFC 9110 §15.2", MUST, "103 with Link, 200 one second later",
     "103 reaches the client before it")
def interim_103(t):
    def script(peer, _number):
        t.read_request(peer)
        peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        time.sleep(1)
        peer.send(OK)

    t.serve(script)
    peer = t.client()
    peer.send(t.get("/x"))
    started = time.monotonic()
    head = peer.head()
    early = time.monotonic() - started < 0.9
    t.note(repr(head[:12].decode()))
    answer = t.receive(peer) if b" 103 " in head[:13] else None
    return is_hello(answer) and b"rel=preload" in head and early


@row("RFC 9110 §15.2", MUST, "a 1xx that nobody knows (133)", "reaches the client")
def interim_unknown(t):
    answer, _ = t.ask(t.get("/x"), b"HTTP/1.1 133 Whatever\r\nX-A: 1\r\n\r\n" + OK)
    return is_hello(answer) and [one.status for one in answer.interim] == [133]


@row("RFC 9110 §15.2.1", MUST, "100 that nobody expects, then 200", "200 whole")
def interim_100_unasked(t):
    answer, _ = t.ask(t.get("/x"), CONTINUE + OK)
    return is_hello(answer)


@row("RFC 9110 §15.2", MUST, "103 for a client of HTTP/1.0", "not sent to it")
def interim_for_1_0(t):
    answer, _ = t.ask(t.get("/x", version="1.0"),
                      b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    return is_hello(answer) and not answer.interim


# Expect.


def expecting(trial, script, *fields, version="1.1"):
    """Sends a head that expects 100; gives the client."""
    trial.serve(script)
    peer = trial.client()
    peer.send(trial.get("/x", "Content-Length: 5", "Expect: 100-continue", *fields, method="POST",
                        version=version))
    return peer


@row("RFC 9110 §10.1.1", MUST, "Expect, origin sends 100",
     "100 reaches the client, then the body goes")
def expect_continue(t):
    def script(peer, _number):
        request = peer.request_head()
        t.requests.append(request)
        peer.send(CONTINUE)
        peer.body(request, False)
        peer.send(OK)

    peer = expecting(t, script)
    if not peer.head().startswith(b"HTTP/1.1 100 "):
        return False
    peer.send(b"hello")
    return is_hello(t.receive(peer)) and t.requests[0].body == b"hello"


@row("RFC 9110 §10.1.1", MUST, "Expect, origin ignores it, client sends after 1 s",
     "answered in 4 s")
def expect_ignored(t):
    peer = expecting(t, t.answering(OK))
    started = time.monotonic()
    time.sleep(1)
    peer.send(b"hello")
    answer = t.receive(peer)
    t.note(f"{time.monotonic() - started:.1f} s")
    return is_hello(answer) and time.monotonic() - started < 4


@row("RFC 9110 §10.1.1", MUST, "Expect, client sends at once", "answered in 4 s")
def expect_at_once(t):
    t.serve(t.answering(OK))
    started = time.monotonic()
    answer, request = t.ask(t.post("/x", "Expect: 100-continue"))
    t.note(f"{time.monotonic() - started:.1f} s")
    return is_hello(answer) and request.body == b"hello" and time.monotonic() - started < 4


@row("RFC 9110 §10.1.1", MUST, "Expect, origin answers 417", "417, and no body goes")
def expect_refused(t):
    def script(peer, _number):
        request = peer.request_head()
        t.requests.append(request)
        peer.send(told(b"", b"417 Expectation Failed", b"Connection: close"))
        t.late = peer.rest(2)[0]

    t.late = b""
    answer = t.receive(expecting(t, script))
    time.sleep(0.2)
    return answer is not None and answer.status == 417 and not t.late


@row("RFC 9110 §10.1.1", MUST, "Expect in a request of HTTP/1.0", "no 100 to it, and answered")
def expect_in_1_0(t):
    peer = expecting(t, t.answering(CONTINUE + OK), version="1.0")
    peer.send(b"hello")
    answer = t.receive(peer)
    return is_hello(answer) and not answer.interim


@row("RFC 9110 §10.1.1", MAY, "`Expect: nonsense`", "417, or passed")
def expect_unknown(t):
    answer, request = t.ask(t.post("/x", "Expect: nonsense"))
    return is_refused(answer, 417) and request is None or is_hello(answer)


# Ends.


@row("RFC 9112 §9.6", SHOULD, "GET, and the client half-closes; answer after 0.5 s",
     "the answer comes")
def half_close_get(t):
    return half_close(t, t.get("/x"))


@row("RFC 9112 §9.6", SHOULD, "POST, and the client half-closes; answer after 0.5 s",
     "the answer comes")
def half_close_post(t):
    return half_close(t, t.post("/x"))


def half_close(trial, raw):
    def script(peer, _number):
        trial.read_request(peer)
        time.sleep(0.5)
        peer.send(OK)

    trial.serve(script)
    peer = trial.client()
    peer.send(raw)
    peer.fin()
    return is_hello(trial.receive(peer))


@row("RFC 9112 §9.6", MAY, "the client resets while its answer is due",
     "the origin's connection ends in 8 s")
def client_leaves(t):
    done = threading.Event()

    def script(peer, _number):
        t.read_request(peer)
        peer.send(b"HTTP/1.1 200 OK\r\n" + DATE + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(40):
                time.sleep(0.2)
                peer.send(b"5\r\nhello\r\n")
        except Ended:
            done.set()

    t.serve(script)
    peer = t.client()
    peer.send(t.get("/x"))
    t.wait(lambda: t.requests)
    time.sleep(0.3)
    peer.reset()
    return done.wait(8)


def early(trial, drains, closes_at_once=False, megabytes=2):
    """A client that sends a long body to an origin that answers 413 from the head."""
    refusal = told(b"too much", b"413 Content Too Large", b"Connection: close")

    def script(peer, _number):
        trial.requests.append(peer.request_head())
        peer.send(refusal)
        if closes_at_once:
            return
        peer.fin()
        if drains:
            peer.rest(3)
        else:
            time.sleep(1)

    trial.serve(script)
    peer = trial.client()
    body = big(megabytes)
    peer.send(trial.get("/x", f"Content-Length: {len(body)}", method="POST"))
    sender = threading.Thread(target=peer.send_as_taken, args=(body,), daemon=True)
    sender.start()
    answer = trial.receive(peer)
    sender.join(8)
    return answer is not None and answer.status == 413 and answer.body == b"too much"


@row("RFC 9112 §9.6", SHOULD, "413 amid an upload of 2 MB, origin drains", "413 reaches the client")
def early_answer_drained(t):
    return early(t, True)


@row("RFC 9112 §9.6", SHOULD, "413 amid an upload of 2 MB, origin reads no more",
     "413 reaches the client")
def early_answer_not_drained(t):
    return early(t, False)


@row("RFC 9112 §9.6", SHOULD, "413 amid an upload, origin closes at once (RST)",
     "413 reaches the client")
def early_answer_reset(t):
    return early(t, False, True, 1)


@row("RFC 9112 §9.6", SHOULD, "413 with close, a client that reads only after sending 1 MB",
     "413 reaches the client")
def early_answer_read_late(t):
    def script(peer, _number):
        t.requests.append(peer.request_head())
        peer.send(told(b"too much", b"413 Content Too Large", b"Connection: close"))
        peer.fin()
        peer.rest(3)

    t.serve(script)
    peer = t.client()
    peer.send(t.get("/x", f"Content-Length: {1 << 20}", method="POST"))
    peer.send_as_taken(big(1), 65536, 0.02)
    answer = t.receive(peer)
    return answer is not None and answer.status == 413


@row("RFC 9110 §15.3.3", MUST, "202 at once, origin reads on; upload of 0.4 MB, slowly",
     "the upload arrives whole, or the client sees it end")
def early_success(t):
    got = []

    def script(peer, _number):
        request = peer.request_head()
        t.requests.append(request)
        peer.send(told(b"fine", b"202 Accepted"))
        peer.body(request, False)
        got.append((request.end, len(request.body)))

    t.serve(script)
    peer = t.client()
    size = 400_000
    peer.send(t.get("/x", f"Content-Length: {size}", method="POST"))
    answer = t.receive(peer)
    sent = peer.send_as_taken(b"a" * size, 8192, 0.01)
    t.wait(lambda: got, 4)
    t.note(f"sent {sent}, origin {got[0] if got else 'nothing'}")
    if answer is None or answer.status != 202:
        return False
    whole = got == [("length", size)]
    said = "close" in (answer.get("connection") or "").lower()
    return whole or said or sent < size


# Status codes.


def status_line(line, body=b"hello"):
    return line + b"\r\n" + DATE + b"Content-Length: %d\r\n\r\n" % len(body) + body


@row("RFC 9112 §4", MUST, "status 099", "502")
def status_099(t):
    return is_502(t, b"HTTP/1.1 099 Odd")


@row("RFC 9112 §4", MUST, "a status of two digits", "502")
def status_two_digits(t):
    return is_502(t, b"HTTP/1.1 20 Odd")


@row("RFC 9112 §4", MUST, "a status of four digits", "502")
def status_four_digits(t):
    return is_502(t, b"HTTP/1.1 2000 Odd")


@row("RFC 9112 §4", MUST, "bytes that are no status line", "502")
def status_line_none(t):
    return is_502(t, b"hello, this is no HTTP")


def is_502(trial, line):
    answer, _ = trial.ask(trial.get("/x"), status_line(line), close=True)
    return answer is not None and answer.status in (500, 502)


@row("RFC 9110 §15", MUST, "status 299 with a phrase of its own", "299, whole")
def status_299(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 299 Half done"))
    return answer is not None and answer.status == 299 and answer.whole and answer.body == b"hello"


@row("RFC 9110 §15", MUST, "status 499, which nobody has assigned", "499, whole")
def status_499(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 499 Odd"))
    return answer is not None and answer.status == 499 and answer.body == b"hello"


@row("RFC 9110 §15", MAY, "status 600", "600, or an error of the proxy")
def status_600(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 600 Odd"))
    return answer is not None and (answer.status == 600 and answer.body == b"hello"
                                   or answer.status in (500, 502))


@row("RFC 9110 §15", MAY, "status 999, as sites send to robots", "999, whole")
def status_999(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 999 Request denied"))
    return answer is not None and answer.status == 999 and answer.body == b"hello"


@row("RFC 9112 §4", MAY, "a reason phrase of its own", "the same phrase")
def reason_phrase(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 401 Ticket has expired"))
    return answer is not None and answer.reason == "Ticket has expired"


@row("RFC 9112 §4", MUST, "a status line without a phrase", "200, whole")
def reason_empty(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 200 "))
    return is_hello(answer)


@row("RFC 9112 §4", MAY, "a status line without phrase and blank", "200, whole")
def reason_absent(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.1 200"))
    return is_hello(answer)


@row("RFC 9110 §2.5", SHOULD, "an answer of HTTP/1.2", "whole, as the proxy's own version")
def answer_version_1_2(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.2 200 OK"))
    return is_hello(answer) and answer.version == "HTTP/1.1"


@row("RFC 9110 §6.2", MUST, "an answer of HTTP/1.0", "whole, as the proxy's own version")
def answer_version_1_0(t):
    answer, _ = t.ask(t.get("/x"), status_line(b"HTTP/1.0 200 OK"), close=True)
    return is_hello(answer) and answer.version == "HTTP/1.1"


@row("RFC 9110 §2.5", MUST, "an answer of HTTP/3.0", "502")
def answer_version_3(t):
    return is_502(t, b"HTTP/3.0 200 OK")
