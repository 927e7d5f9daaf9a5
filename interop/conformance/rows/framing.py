"""Length and transfer coding of requests and answers, chunks, ends that are none."""

import gzip

from trial import MAY, MUST, OK, SHOULD, is_hello, is_refused, row
from wire import Ended

DATE = b"Date: Tue, 01 Dec 2026 08:00:00 GMT\r\n"
POST = b"POST {u}/x HTTP/1.1\r\nHost: {h}\r\n"
TWENTY = b"12345678901234567890"


# Requests.


def refused(trial, fields, body=b"hello", *statuses):
    """Whether a POST with these fields is refused and no whole request reaches the origin."""
    answer, _ = trial.ask(POST + fields + b"\r\n\r\n" + body)
    for request in trial.requests:
        trial.wait(lambda: request.end != "open", 1)
        trial.note(f"origin: {request.end} {request.body[:10]!r}")
    return not any(request.whole for request in trial.requests) and is_refused(answer, *statuses)


def one_framing(request):
    """Whether a request has one valid framing."""
    lengths = request.all("content-length")
    return len(lengths) + request.has("transfer-encoding") == 1 \
        and all(length.isdigit() for length in lengths)


def taken_or_refused(trial, fields, body=b"hello"):
    """Whether it is refused with 400, or five bytes reach the origin with one valid framing."""
    answer, request = trial.ask(POST + fields + b"\r\n\r\n" + body)
    if request is None:
        return is_refused(answer)
    trial.wait(lambda: request.end != "open", 1)
    trial.note(f"origin: {request.get('content-length')} {request.get('transfer-encoding')}")
    return is_hello(answer) and request.body == b"hello" and one_framing(request)


def taken(trial, fields, body=b"hello", want=b"hello"):
    """Whether the origin gets exactly this body, whole and with one valid framing."""
    answer, request = trial.ask(POST + fields + b"\r\n\r\n" + body)
    return is_hello(answer) and request is not None and request.whole and request.body == want \
        and one_framing(request)


@row("RFC 9112 §6.1", MUST, "request with Transfer-Encoding and Content-Length",
     "refused, or one framing goes on and the connection ends")
def request_both(t):
    answer, request = t.ask(b"POST {u}/x HTTP/1.1\r\nHost: {h}\r\nContent-Length: 3\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    if request is None:
        return is_refused(answer)
    closes = t.last.closes()
    t.note("" if closes else "connection stays open")
    return is_hello(answer) and one_framing(request) and request.body == b"hello" and closes


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: 5` twice", "refused, or one length of 5")
def request_length_twice(t):
    return taken_or_refused(t, b"Content-Length: 5\r\nContent-Length: 5")


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: 5, 5`", "refused, or one length of 5")
def request_length_list(t):
    return taken_or_refused(t, b"Content-Length: 5, 5")


@row("RFC 9112 §6.3", MUST, "request with lengths 5 and 6", "400")
def request_lengths_differ(t):
    return refused(t, b"Content-Length: 5\r\nContent-Length: 6", b"hello!", 400)


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: 5, 6`", "400")
def request_length_list_differs(t):
    return refused(t, b"Content-Length: 5, 6", b"hello!", 400)


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: +5`", "400")
def request_length_plus(t):
    return refused(t, b"Content-Length: +5", b"hello", 400)


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: -5`", "400")
def request_length_minus(t):
    return refused(t, b"Content-Length: -5", b"hello", 400)


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: 5x`", "400")
def request_length_letters(t):
    return refused(t, b"Content-Length: 5x", b"hello", 400)


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: 0x5`", "400")
def request_length_hexadecimal(t):
    return refused(t, b"Content-Length: 0x5", b"hello", 400)


@row("RFC 9112 §6.3", MUST, "request with an empty Content-Length", "400")
def request_length_empty(t):
    return refused(t, b"Content-Length: ", b"hello", 400)


@row("RFC 9112 §6.3", MUST, "request with `Content-Length: 5 5`", "400")
def request_length_blank(t):
    return refused(t, b"Content-Length: 5 5", b"hello", 400)


@row("RFC 9110 §8.6", MUST, "request with `Content-Length: 0005`",
     "five bytes, as the grammar has it")
def request_length_zeros(t):
    return taken_or_refused(t, b"Content-Length: 0005")


@row("RFC 9110 §8.6", MUST, "request whose length is 2^64 + 5", "refused, or never whole")
def request_length_overflow(t):
    answer, request = t.ask(b"POST {u}/x HTTP/1.1\r\nHost: {h}\r\n"
                            b"Content-Length: 18446744073709551621\r\n\r\nhello", timeout=2)
    t.notes.clear()
    return is_refused(answer) or answer is None and not any(r.whole for r in t.requests)


@row("RFC 9112 §6.3", MUST, "request with `Transfer-Encoding: gzip` alone", "400 (or 501)")
def request_coding_not_chunked(t):
    return coding_refused(t, b"Transfer-Encoding: gzip")


def coding_refused(trial, field, *statuses):
    body = b"5\r\nhello\r\n0\r\n\r\n"
    answer, _ = trial.ask(b"POST {u}/x HTTP/1.1\r\nHost: {h}\r\n" + field + b"\r\n\r\n" + body)
    for request in trial.requests:
        trial.note(f"origin: {request.get('transfer-encoding')} {request.get('content-length')}")
    return not trial.requests and answer is not None \
        and answer.status in (statuses or (400, 501))


@row("RFC 9112 §6.3", MUST, "request with `Transfer-Encoding: chunked, gzip`", "400 (or 501)")
def request_coding_chunked_first(t):
    return coding_refused(t, b"Transfer-Encoding: chunked, gzip")


@row("RFC 9112 §6.1", SHOULD, "request with `Transfer-Encoding: gzip, chunked`", "501")
def request_coding_unknown(t):
    return coding_refused(t, b"Transfer-Encoding: gzip, chunked", 501)


@row("RFC 9112 §6.1", SHOULD, "request with `Transfer-Encoding: xyz, chunked`", "501 (or 400)")
def request_coding_nonsense(t):
    return coding_refused(t, b"Transfer-Encoding: xyz, chunked")


@row("RFC 9112 §6.1", MUST, "request with `Transfer-Encoding: chunked, chunked`", "400 (or 501)")
def request_coding_chunked_twice(t):
    return coding_refused(t, b"Transfer-Encoding: chunked, chunked")


@row("RFC 9112 §6.1", MUST, "request with `Transfer-Encoding: chunked` in two lines",
     "400 (or 501)")
def request_coding_two_lines(t):
    return coding_refused(t, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")


@row("RFC 9112 §6.1", MUST, "request with `Transfer-Encoding: identity` and a length",
     "400 (or 501)")
def request_coding_identity(t):
    return coding_refused(t, b"Transfer-Encoding: identity\r\nContent-Length: 15")


@row("RFC 9112 §6.1", MUST, "request with Transfer-Encoding of 0x0b and `chunked`", "400 (or 501)")
def request_coding_control(t):
    return coding_refused(t, b"Transfer-Encoding: \x0bchunked")


@row("RFC 9112 §6.1", MUST, "request of HTTP/1.0 with chunked",
     "refused, or read as chunked and the connection ends")
def request_coding_in_1_0(t):
    answer, request = t.ask(b"POST {u}/x HTTP/1.0\r\nHost: {h}\r\nConnection: keep-alive\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    if request is None:
        return is_refused(answer) or answer is not None and answer.status == 501
    t.note(f"origin: {request.end} {request.body[:10]!r}")
    return is_hello(answer) and request.body == b"hello" and t.last.closes()


@row("RFC 9112 §7", MUST, "request with `Transfer-Encoding: Chunked`", "read: codings know no case")
def request_coding_case(t):
    return taken(t, b"Transfer-Encoding: Chunked", b"5\r\nhello\r\n0\r\n\r\n")


@row("RFC 9112 §7.1.1", MUST, "request with chunk extensions", "read, extensions ignored")
def request_chunk_extension(t):
    return taken(t, b"Transfer-Encoding: chunked", b"5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n")


@row("RFC 9112 §7.1", MUST, "request with chunk sizes in capital and small letters", "read")
def request_chunk_letters(t):
    return taken(t, b"Transfer-Encoding: chunked",
                 b"A\r\n1234567890\r\na\r\n1234567890\r\n0\r\n\r\n",
                 TWENTY)


@row("RFC 9112 §7.1.1", SHOULD, "request with chunk extensions of 200,000 bytes", "refused")
def request_chunk_extension_long(t):
    return not_whole(t, b"5;" + b"a" * 200_000 + b"\r\nhello\r\n0\r\n\r\n")


def not_whole(trial, body, fields=b"Transfer-Encoding: chunked"):
    """Whether an upload that is not well formed never looks whole at the origin."""
    answer, _ = trial.ask(POST + fields + b"\r\n\r\n" + body,
                          timeout=2)
    for request in trial.requests:
        trial.wait(lambda: request.end != "open", 1)
        trial.note(f"origin: {request.end} {request.body[:10]!r}")
    return not any(request.whole for request in trial.requests) \
        and (answer is None or answer.status >= 400)


@row("RFC 9112 §7.1", MUST, "request with a chunk size of 17 digits", "refused, never whole")
def request_chunk_overflow(t):
    return not_whole(t, b"10000000000000005\r\nhello\r\n0\r\n\r\n")


@row("RFC 9112 §7.1", MUST, "request with chunk size `+5`", "refused, never whole")
def request_chunk_plus(t):
    return not_whole(t, b"+5\r\nhello\r\n0\r\n\r\n")


@row("RFC 9112 §7.1", MUST, "request with chunk size `0x5`", "refused, never whole")
def request_chunk_prefix(t):
    return not_whole(t, b"0x5\r\nhello\r\n0\r\n\r\n")


@row("RFC 9112 §7.1", MUST, "request with an empty chunk size", "refused, never whole")
def request_chunk_empty(t):
    return not_whole(t, b"\r\nhello\r\n0\r\n\r\n")


@row("RFC 9112 §7.1", MUST, "request whose chunk is longer than its size", "refused, never whole")
def request_chunk_longer(t):
    return not_whole(t, b"5\r\nhello!!\r\n0\r\n\r\n")


@row("RFC 9112 §7.1", MUST, "request with a chunk size that LF alone ends", "refused, or read as CRLF")
def request_chunk_line_feed(t):
    answer, request = t.ask(POST + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
                            timeout=2)
    if request is None or answer is None or answer.status >= 400:
        return not any(one.whole for one in t.requests)
    return is_hello(answer) and request.whole and request.body == b"hello"


@row("RFC 9112 §7.1", MUST, "request with LF between size and extension", "refused, never whole")
def request_chunk_line_feed_inside(t):
    return not_whole(t, b"5\n;x\r\nhello\r\n0\r\n\r\n")


@row("RFC 9112 §7.1.2", MUST, "request with Content-Length and Host as trailers", "not merged")
def request_trailers_merged(t):
    answer, request = t.ask(t.get("/x", "Transfer-Encoding: chunked", "Trailer: Content-Length",
                                  method="POST", body=b"5\r\nhello\r\n0\r\nContent-Length: 2\r\n"
                                  b"Host: evil.test\r\n\r\n"))
    if request is None:
        return is_refused(answer)
    return is_hello(answer) and one_framing(request) and request.body == b"hello" \
        and "evil.test" not in str(request.fields)


@row("RFC 9110 §6.5", MAY, "request with a trailer that Trailer names",
     "the trailer reaches the origin")
def request_trailers_named(t):
    answer, request = t.ask(t.get("/x", "Transfer-Encoding: chunked", "Trailer: X-Sum",
                                  method="POST", body=b"5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"))
    return is_hello(answer) and ("x-sum", "42") in request.trailers


def ended_upload(trial, head, how):
    """Whether an upload that its client breaks off reaches the origin as broken, or not at all."""
    trial.serve(trial.answering(OK))
    peer = trial.client()
    peer.send(trial.fill(head))
    trial.wait(lambda: trial.requests, 2)
    peer.reset() if how == "reset" else peer.close()
    trial.wait(lambda: all(r.end != "open" for r in trial.requests), 8)
    for request in trial.requests:
        trial.note(f"origin: {request.end}")
    return all(r.end.startswith("cut") for r in trial.requests)


@row("RFC 9112 §8", MUST, "client closes amid a body with a length", "never whole at the origin")
def request_cut_length(t):
    return ended_upload(t, t.get("/x", "Content-Length: 10", method="POST", body=b"hello"), "close")


@row("RFC 9112 §8", MUST, "client closes amid a body in chunks", "never whole at the origin")
def request_cut_chunked(t):
    return ended_upload(t, t.get("/x", "Transfer-Encoding: chunked", method="POST",
                                 body=b"5\r\nhello\r\n"), "close")


@row("RFC 9112 §8", MUST, "client resets amid a body in chunks", "never whole at the origin")
def request_reset_chunked(t):
    return ended_upload(t, t.get("/x", "Transfer-Encoding: chunked", method="POST",
                                 body=b"5\r\nhello\r\n"), "reset")


# Answers.


def answered(trial, fields, body=b"hello", status=b"HTTP/1.1 200 OK", close=False):
    answer, _ = trial.ask(trial.get("/x"), status + b"\r\n" + DATE + fields + b"\r\n\r\n" + body,
                          close=close)
    return answer


def is_bad_gateway(answer):
    return answer is not None and answer.status == 502


@row("RFC 9112 §6.3", MUST, "answer in chunks with a Content-Length that is too small",
     "whole: the coding wins, the length goes")
def answer_both_small(t):
    answer = answered(t, b"Content-Length: 5\r\nTransfer-Encoding: chunked",
                      b"14\r\n" + TWENTY + b"\r\n0\r\n\r\n")
    return answer is not None and answer.whole and answer.body == TWENTY


@row("RFC 9112 §6.3", MUST, "answer in chunks with a Content-Length that is too large",
     "whole: the coding wins, the length goes")
def answer_both_large(t):
    answer = answered(t, b"Content-Length: 500\r\nTransfer-Encoding: chunked",
                      b"14\r\n" + TWENTY + b"\r\n0\r\n\r\n")
    return answer is not None and answer.whole and answer.body == TWENTY


@row("RFC 9110 §8.6", MUST, "answer with `Content-Length: 5` twice", "one length, or 502")
def answer_length_twice(t):
    return is_one_length(answered(t, b"Content-Length: 5\r\nContent-Length: 5"))


def is_one_length(answer):
    return is_bad_gateway(answer) or is_hello(answer) and (
        answer.chunked or answer.all("content-length") == ["5"])


@row("RFC 9110 §8.6", MUST, "answer with `Content-Length: 5, 5`", "one length, or 502")
def answer_length_list(t):
    return is_one_length(answered(t, b"Content-Length: 5, 5", close=True))


@row("RFC 9112 §6.3", MUST, "answer with lengths 5 and 6", "502")
def answer_lengths_differ(t):
    return is_bad_gateway(answered(t, b"Content-Length: 5\r\nContent-Length: 6", close=True))


@row("RFC 9112 §6.3", MUST, "answer with `Content-Length: 5, 6`", "502")
def answer_length_list_differs(t):
    return is_bad_gateway(answered(t, b"Content-Length: 5, 6", close=True))


@row("RFC 9112 §6.3", MUST, "answer with `Content-Length: +5`", "502")
def answer_length_plus(t):
    return is_bad_gateway(answered(t, b"Content-Length: +5", close=True))


@row("RFC 9112 §6.3", MUST, "answer with `Content-Length: -5`", "502")
def answer_length_minus(t):
    return is_bad_gateway(answered(t, b"Content-Length: -5", close=True))


@row("RFC 9112 §6.3", MUST, "answer with `Content-Length: abc`", "502")
def answer_length_letters(t):
    return is_bad_gateway(answered(t, b"Content-Length: abc", close=True))


@row("RFC 9112 §6.3", MUST, "answer with an empty Content-Length", "502")
def answer_length_empty(t):
    return is_bad_gateway(answered(t, b"Content-Length: ", close=True))


@row("RFC 9110 §8.6", MUST, "answer with `Content-Length: 0005`", "whole, with a valid length")
def answer_length_zeros(t):
    return is_hello(answered(t, b"Content-Length: 0005"))


@row("RFC 9110 §8.6", MUST, "answer whose length is 2^64 + 5", "502, or never whole")
def answer_length_overflow(t):
    answer = answered(t, b"Content-Length: 18446744073709551621", close=True)
    return answer is None or is_bad_gateway(answer) or not answer.whole


@row("RFC 9112 §6.1", MUST, "answer with `Transfer-Encoding: gzip, chunked`",
     "502, decoded, or the coding passed")
def answer_coding_gzip(t):
    data = gzip.compress(b"hello")
    answer = answered(t, b"Transfer-Encoding: gzip, chunked",
                      b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
    return answer is None or is_bad_gateway(answer) or is_hello(answer) \
        or "gzip" in (answer.get("transfer-encoding") or "")


@row("RFC 9112 §6.1", MUST, "answer with `Transfer-Encoding: xyz`", "502, or the coding passed")
def answer_coding_nonsense(t):
    answer = answered(t, b"Transfer-Encoding: xyz", close=True)
    return is_bad_gateway(answer) or answer is not None \
        and "xyz" in (answer.get("transfer-encoding") or "")


@row("RFC 9112 §6.1", MUST, "answer in chunks labelled chunked twice",
     "whole, 502, or seen as broken")
def answer_coding_chunked_twice(t):
    answer = answered(t, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                      b"5\r\nhello\r\n0\r\n\r\n", close=True)
    return is_hello(answer) or is_bad_gateway(answer) or answer is not None and not answer.whole


@row("RFC 9112 §6.1", MAY, "answer with `Transfer-Encoding: identity` and a length",
     "whole, or 502")
def answer_coding_identity(t):
    answer = answered(t, b"Transfer-Encoding: identity\r\nContent-Length: 5", close=True)
    return is_hello(answer) or is_bad_gateway(answer)


@row("RFC 9112 §6.1", MUST, "answer of HTTP/1.0 in chunks",
     "whole, and the origin's connection is not used again")
def answer_chunked_in_1_0(t):
    answer = answered(t, b"Connection: keep-alive\r\nTransfer-Encoding: chunked",
                      b"5\r\nhello\r\n0\r\n\r\n", b"HTTP/1.0 200 OK")
    if answer is None or not is_hello(answer):
        return False
    peer = t.client()
    peer.send(t.get("/y"))
    again = t.receive(peer)
    t.note(f"connections: {t.connections}")
    return is_hello(again) and t.connections == 2


@row("RFC 9112 §7.1", MUST, "answer with a chunk size that is none", "502, or seen as broken")
def answer_chunk_bad(t):
    answer = answered(t, b"Transfer-Encoding: chunked", b"5\r\nhello\r\n5x\r\nhello\r\n0\r\n\r\n")
    return is_bad_gateway(answer) or answer is None or not answer.whole


@row("RFC 9112 §7.1", MUST, "answer with a chunk longer than its size", "502, or seen as broken")
def answer_chunk_longer(t):
    answer = answered(t, b"Transfer-Encoding: chunked", b"5\r\nhello!!\r\n0\r\n\r\n")
    return is_bad_gateway(answer) or answer is None or not answer.whole


@row("RFC 9112 §7.1.1", MUST, "answer with chunk extensions", "whole, extensions ignored")
def answer_chunk_extension(t):
    return is_hello(answered(t, b"Transfer-Encoding: chunked",
                             b"5;a=\"b;c\"\r\nhello\r\n0;d\r\n\r\n"))


def broken(trial, fields, body, reset, version="1.1", status=b"HTTP/1.1 200 OK"):
    """Whether an answer that the origin breaks off is seen as broken, or became an error."""

    def script(peer, _number):
        trial.read_request(peer)
        peer.send(status + b"\r\n" + DATE + fields + b"\r\n\r\n" + body)
        if reset:
            trial.wait(lambda: False, 0.3)
            peer.reset()

    try:
        answer, _ = trial.ask(trial.get("/x", version=version), script)
    except Ended:
        return True
    return answer is None or answer.status >= 500 or not answer.whole


@row("RFC 9112 §8", MUST, "origin closes amid an answer with a length", "seen as broken, or 502")
def answer_cut_length(t):
    return broken(t, b"Content-Length: 10", b"hello", False)


@row("RFC 9112 §8", MUST, "origin resets amid an answer with a length", "seen as broken, or 502")
def answer_reset_length(t):
    return broken(t, b"Content-Length: 10", b"hello", True)


@row("RFC 9112 §8", MUST, "origin closes before the last chunk", "seen as broken, or 502")
def answer_cut_last_chunk(t):
    return broken(t, b"Transfer-Encoding: chunked", b"5\r\nhello\r\n", False)


@row("RFC 9112 §8", MUST, "origin resets amid a chunk", "seen as broken, or 502")
def answer_reset_chunk(t):
    return broken(t, b"Transfer-Encoding: chunked", b"a\r\nhello", True)


@row("RFC 9112 §8", MUST, "origin closes amid the trailers", "seen as broken, or 502")
def answer_cut_trailers(t):
    return broken(t, b"Transfer-Encoding: chunked\r\nTrailer: X-Sum",
                  b"5\r\nhello\r\n0\r\nX-Sum: 4", False)


@row("RFC 9112 §8", MUST, "origin resets an answer that its close ends", "seen as broken, or 502")
def answer_reset_close_delimited(t):
    return broken(t, b"Connection: close", b"hello" * 1000, True)


@row("RFC 9112 §8", MUST, "the same for a client of HTTP/1.0", "seen as broken, or 502")
def answer_reset_close_delimited_1_0(t):
    return broken(t, b"Connection: close", b"hello" * 1000, True, "1.0")


@row("RFC 9112 §8", MUST, "cut answer with a length, client of HTTP/1.0", "seen as broken, or 502")
def answer_cut_length_1_0(t):
    return broken(t, b"Content-Length: 10", b"hello", False, "1.0")


@row("RFC 9112 §8", MUST, "cut answer in chunks, client of HTTP/1.0", "seen as broken, or 502")
def answer_cut_chunked_1_0(t):
    return broken(t, b"Transfer-Encoding: chunked", b"5\r\nhello\r\n", False, "1.0")


@row("RFC 9112 §6.3", MUST, "answer that its close ends, of HTTP/1.1", "whole, and seen as whole")
def answer_close_delimited(t):
    answer = answered(t, b"Connection: close", b"hello", close=True)
    return is_hello(answer)


@row("RFC 9112 §6.3", MUST, "answer that its close ends, of HTTP/1.0", "whole, and seen as whole")
def answer_close_delimited_1_0(t):
    return is_hello(answered(t, b"Server: old", b"hello", b"HTTP/1.0 200 OK", close=True))


@row("RFC 9112 §6.1", MUST, "answer in chunks for a client of HTTP/1.0", "without chunks, whole")
def answer_chunked_for_1_0(t):
    answer, _ = t.ask(t.get("/x", version="1.0"), b"HTTP/1.1 200 OK\r\n" + DATE
                      + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    return is_hello(answer) and not answer.has("transfer-encoding")


@row("RFC 9110 §15.6.3", MUST, "origin closes amid the head", "502 (or 504)")
def answer_cut_head(t):
    answer, _ = t.ask(t.get("/x"), b"HTTP/1.1 200 OK\r\nContent-Le", close=True)
    return answer is not None and answer.status in (502, 503, 504)


@row("RFC 9110 §15.6.3", MUST, "origin closes without a byte", "502 (or 503, 504)")
def answer_none(t):
    def script(peer, _number):
        t.read_request(peer)

    answer, _ = t.ask(t.post("/x"), script)
    return answer is not None and answer.status in (502, 503, 504)


@row("RFC 9110 §15.6.3", MUST, "nobody listens at the origin's port", "502 (or 503, 504)")
def origin_refuses(t):
    t.listener.close()
    peer = t.client()
    peer.send(t.get("/x"))
    answer = t.receive(peer)
    return answer is not None and answer.status in (502, 503, 504)


def bodyless(trial, status, fields, body, method="GET"):
    """Whether no body comes and the next answer on the connection is the next one."""
    first = b"HTTP/1.1 " + status + b"\r\n" + DATE + fields + b"\r\n\r\n" + body
    trial.serve(trial.answering(first, OK))
    peer = trial.client()
    peer.send(trial.get("/x", method=method))
    answer = trial.receive(peer, method)
    if answer is None:
        return False
    trial.wait(lambda: False, 0.2)
    again = trial.client() if peer.closes(0.1) else peer
    again.send(trial.get("/y"))
    following = trial.receive(again)
    if is_bad_gateway(answer):
        return is_hello(following)
    return answer.status == int(status[:3]) and not answer.body and is_hello(following)


@row("RFC 9112 §6.3", MUST, "204 with a length and a body", "no body; the next answer is right")
def answer_204_with_body(t):
    return bodyless(t, b"204 No Content", b"Content-Length: 5", b"EVIL!")


@row("RFC 9112 §6.3", MUST, "304 with a body", "no body; the next answer is right")
def answer_304_with_body(t):
    return bodyless(t, b"304 Not Modified", b"ETag: \"a\"", b"EVIL!")


@row("RFC 9110 §9.3.2", MUST, "HEAD answered with a body", "no body; the next answer is right")
def answer_head_with_body(t):
    return bodyless(t, b"200 OK", b"Content-Length: 5", b"EVIL!", "HEAD")


@row("RFC 9110 §15.3.6", MUST, "205 with neither length nor coding, and a close", "an empty body")
def answer_205(t):
    answer = answered(t, b"Server: x", b"", b"HTTP/1.1 205 Reset Content", close=True)
    return answer is not None and answer.status == 205 and answer.whole and not answer.body


@row("RFC 9110 §8.6", MUST, "204", "no Content-Length or Transfer-Encoding made up")
def answer_204(t):
    answer = answered(t, b"Server: x", b"", b"HTTP/1.1 204 No Content")
    return answer is not None and answer.status == 204 and not answer.has("content-length") \
        and not answer.has("transfer-encoding")


@row("RFC 9110 §8.6", MAY, "HEAD answered with Content-Length: 217", "the same length")
def answer_head_length(t):
    answer, _ = t.ask(t.get("/x", method="HEAD"), b"HTTP/1.1 200 OK\r\n" + DATE
                      + b"Content-Length: 217\r\n\r\n")
    return answer is not None and answer.all("content-length") == ["217"]


@row("RFC 9110 §8.6", MUST, "HEAD answered with Transfer-Encoding", "no length made up, no body")
def answer_head_chunked(t):
    answer, _ = t.ask(t.get("/x", method="HEAD"), b"HTTP/1.1 200 OK\r\n" + DATE
                      + b"Transfer-Encoding: chunked\r\n\r\n")
    return answer is not None and answer.status == 200 and not answer.has("content-length") \
        and not t.last.rest(0.2)[0]


@row("RFC 9110 §15.4.5", MAY, "304 with Content-Length: 217", "whole without a body")
def answer_304_length(t):
    return bodyless(t, b"304 Not Modified", b"Content-Length: 217\r\nETag: \"a\"", b"")


@row("RFC 9110 §6.5", MAY, "answer with a trailer that Trailer names, `TE: trailers`",
     "the trailer reaches the client")
def answer_trailers_named(t):
    answer, _ = t.ask(t.get("/x", "TE: trailers", "Connection: TE"), b"HTTP/1.1 200 OK\r\n" + DATE
                      + b"Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n")
    return is_hello(answer) and ("x-sum", "42") in answer.trailers


@row("RFC 9110 §6.5.1", MUST, "answer with Content-Length as a trailer", "not merged, whole")
def answer_trailers_merged(t):
    answer = answered(t, b"Transfer-Encoding: chunked",
                      b"5\r\nhello\r\n0\r\nContent-Length: 2\r\n\r\n")
    return is_hello(answer) and not (answer.chunked and answer.has("content-length"))
