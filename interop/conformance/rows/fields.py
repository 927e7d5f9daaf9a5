"""Syntax of fields, Connection and what is hop by hop, what has to pass untouched."""

from trial import MAY, MUST, OK, SHOULD, is_hello, is_refused, row
from rows.framing import answered, is_bad_gateway

SYNTAX = "RFC 9112 §5.1"
DATE = b"Date: Tue, 01 Dec 2026 08:00:00 GMT\r\n"
LENGTH = b"Content-Length: 5"


def unasked(trial, fields, *statuses):
    answer, request = trial.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\n" + fields + b"\r\n\r\n")
    if request:
        trial.note(f"origin: {request.head.split(bytes([13, 10]), 2)[2][:40]!r}")
    return request is None and is_refused(answer, *statuses)


# Syntax.


@row(SYNTAX, MUST, "request with a blank before the colon", "400")
def request_blank_before_colon(t):
    return unasked(t, b"X-Device : cam", 400)


@row(SYNTAX, MUST, "request with `Transfer-Encoding : chunked`", "400")
def request_coding_blank_before_colon(t):
    answer, request = t.ask(b"POST {u}/x HTTP/1.1\r\nHost: {h}\r\n"
                            b"Transfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    return request is None and is_refused(answer, 400)


@row(SYNTAX, MUST, "answer with a blank before the colon", "the blank is taken out")
def answer_blank_before_colon(t):
    answer = answered(t, LENGTH + b"\r\nX-Device : cam 7")
    return is_hello(answer) and ("x-device", "cam 7") in [(n.lower(), v) for n, v in answer.fields]


@row(SYNTAX, MUST, "answer with `Content-Length : 5`", "the blank is taken out, whole")
def answer_length_blank_before_colon(t):
    return is_hello(answered(t, b"Content-Length : 5"))


@row("RFC 9112 §5.2", MUST, "request with a folded line", "400, or one line with blanks")
def request_folded(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\nX-Long: a\r\n b\r\n\r\n")
    if request is None:
        return is_refused(answer, 400)
    return is_hello(answer) and " ".join((request.get("x-long") or "").split()) == "a b"


@row("RFC 9112 §5.2", MUST, "answer with a folded line", "502, or one line with blanks")
def answer_folded(t):
    answer = answered(t, LENGTH + b"\r\nX-Long: a\r\n\tb")
    return is_bad_gateway(answer) or is_hello(answer) \
        and " ".join((answer.get("x-long") or "").split()) == "a b"


@row("RFC 9110 §5.1", MUST, "request with the field name `X/Y`", "400, or the field is dropped")
def request_name_no_token(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\nX/Y: 1\r\n\r\n")
    return is_refused(answer, 400) and request is None \
        or is_hello(answer) and b"X/Y" not in request.head


@row("RFC 9112 §5", MUST, "request with an empty field name", "400, or the line is dropped")
def request_name_empty(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\n: 1\r\n\r\n")
    return is_refused(answer, 400) and request is None \
        or is_hello(answer) and b"\n:" not in request.head


@row("RFC 9112 §5", MUST, "request with a line without a colon", "400, or the line is dropped")
def request_no_colon(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\nnonsense\r\n\r\n")
    return is_refused(answer, 400) and request is None \
        or is_hello(answer) and b"nonsense" not in request.head


@row("RFC 9110 §5.5", MUST, "request with NUL in a value", "400, or a blank instead")
def request_nul(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\nX-Odd: a\0b\r\n\r\n")
    return is_refused(answer, 400) and request is None \
        or is_hello(answer) and b"\0" not in request.head


@row("RFC 9112 §2.2", MUST, "request with CR alone in a value", "400, or a blank instead")
def request_bare_cr(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\nX-Odd: a\rX-Evil: b\r\n\r\n")
    return is_refused(answer, 400) and request is None \
        or is_hello(answer) and b"a\rX" not in request.head


@row("RFC 9110 §5.5", MUST, "answer with NUL in a value", "502, or a blank instead")
def answer_nul(t):
    answer = answered(t, LENGTH + b"\r\nX-Odd: a\0b")
    return is_bad_gateway(answer) or is_hello(answer) and b"\0" not in answer.head


@row("RFC 9112 §2.2", MUST, "answer with CR alone in a value", "502, or a blank instead")
def answer_bare_cr(t):
    answer = answered(t, LENGTH + b"\r\nX-Odd: a\rX-Evil: b")
    return is_bad_gateway(answer) or is_hello(answer) and b"a\rX" not in answer.head


@row("RFC 9112 §2.2", MAY, "answer whose lines end with LF alone", "whole")
def answer_line_feed_alone(t):
    answer, _ = t.ask(t.get("/x"), b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello")
    return is_hello(answer)


@row("RFC 9110 §5.5", MUST, "request with bytes above 0x7f in a value", "passed byte for byte")
def request_eight_bits(t):
    answer, request = t.ask(b"GET {u}/x HTTP/1.1\r\nHost: {h}\r\nX-Name: M\xfcller\xc3\xbc\r\n\r\n")
    return is_hello(answer) and request.get("x-name") == "M\xfcller\xc3\xbc"


@row("RFC 9110 §5.5", MUST, "answer with bytes above 0x7f in a value", "passed byte for byte")
def answer_eight_bits(t):
    answer = answered(t, LENGTH + b"\r\nX-Name: M\xfcller\xc3\xbc")
    return is_hello(answer) and answer.get("x-name") == "M\xfcller\xc3\xbc"


@row("RFC 9110 §5.5", MUST, "empty values, in request and answer", "passed")
def empty_values(t):
    answer, request = t.ask(t.get("/x", "X-Empty:"), b"HTTP/1.1 200 OK\r\n" + DATE + LENGTH
                            + b"\r\nX-Nothing:\r\n\r\nhello")
    return is_hello(answer) and request.get("x-empty") == "" and answer.get("x-nothing") == ""


@row("RFC 9110 §5.1", MAY, "names of fields in capital letters", "passed as written")
def names_as_written(t):
    answer, request = t.ask(t.get("/x", "SOAPAction: \"a\""), b"HTTP/1.1 200 OK\r\n" + DATE + LENGTH
                            + b"\r\nX-Device-ID: 7\r\n\r\nhello")
    return is_hello(answer) and b"SOAPAction:" in request.head and b"X-Device-ID:" in answer.head


@row("RFC 9110 §5.4", MUST, "request with a field of 300,000 bytes", "431 (or 4xx), or served")
def request_field_long(t):
    answer, request = t.ask(t.get("/x", "X-Long: " + "a" * 300_000))
    return is_refused(answer) or is_hello(answer) and len(request.get("x-long") or "") == 300_000


@row("RFC 9110 §5.4", SHOULD, "request with a field of 7,000 bytes", "served")
def request_field_7000(t):
    answer, request = t.ask(t.get("/x", "X-Long: " + "a" * 7000))
    return is_hello(answer) and len(request.get("x-long") or "") == 7000


@row("RFC 9110 §5.4", MUST, "request with 5,000 fields", "431 (or 4xx), or served")
def request_fields_many(t):
    answer, request = t.ask(t.get("/x", *[f"X-{n}: {n}" for n in range(5000)]))
    return is_refused(answer) or is_hello(answer) and request.get("x-4999") == "4999"


@row("RFC 9110 §15.6.3", MAY, "answer whose head has 600,000 bytes", "502, or passed")
def answer_head_long(t):
    answer = answered(t, LENGTH + b"\r\nX-Long: " + b"a" * 600_000)
    return answer is not None and answer.status in (500, 502) or is_hello(answer)


@row("RFC 9110 §5.4", MAY, "answer with a field of 7,000 bytes", "passed")
def answer_field_7000(t):
    answer = answered(t, LENGTH + b"\r\nX-Long: " + b"a" * 7000)
    return is_hello(answer) and len(answer.get("x-long") or "") == 7000


# Order and repetition.


@row("RFC 9110 §5.3", MUST, "two Set-Cookie lines, one with a comma", "two lines, in order")
def set_cookie_lines(t):
    answer = answered(t, LENGTH + b"\r\nSet-Cookie: a=1; Expires=Wed, 01 Dec 2027 08:00:00 GMT\r\n"
                      b"Set-Cookie: b=2")
    return is_hello(answer) and answer.all("set-cookie") == [
        "a=1; Expires=Wed, 01 Dec 2027 08:00:00 GMT", "b=2"]


@row("RFC 9110 §5.3", MUST, "request with a field in three lines", "the order of values is kept")
def request_lines_order(t):
    answer, request = t.ask(t.get("/x", "X-List: c", "X-Other: 1", "X-List: a", "X-List: b"))
    return is_hello(answer) and request.get("x-list") == "c, a, b"


@row("RFC 9110 §5.3", MUST, "answer with a field in three lines", "the order of values is kept")
def answer_lines_order(t):
    answer = answered(t, LENGTH + b"\r\nX-List: c\r\nX-Other: 1\r\nX-List: a\r\nX-List: b")
    return is_hello(answer) and answer.get("x-list") == "c, a, b"


@row("RFC 9110 §5.1", MUST, "fields that nobody knows, both ways", "passed")
def unknown_fields(t):
    answer, request = t.ask(t.get("/x", "X-Unknown_1: yes; no=\"maybe\""),
                            b"HTTP/1.1 200 OK\r\n" + DATE + LENGTH
                            + b"\r\nFoo-Bar: a,,b\r\n\r\nhello")
    return is_hello(answer) and request.get("x-unknown_1") == 'yes; no="maybe"' \
        and answer.get("foo-bar") == "a,,b"


# Connection.


@row("RFC 9110 §7.6.1", MUST, "request field that Connection names", "taken off")
def request_connection_option(t):
    answer, request = t.ask(t.get("/x", "Connection: X-Mine", "X-Mine: 1", "X-Theirs: 2"))
    return is_hello(answer) and not request.has("x-mine") and request.has("x-theirs") \
        and "x-mine" not in (request.get("connection") or "").lower()


@row("RFC 9110 §7.6.1", MUST, "answer field that Connection names", "taken off")
def answer_connection_option(t):
    answer = answered(t, LENGTH + b"\r\nConnection: X-Mine\r\nX-Mine: 1\r\nX-Theirs: 2")
    return is_hello(answer) and not answer.has("x-mine") and answer.has("x-theirs")


@row("RFC 9110 §7.6.1", MUST, "Connection in two lines, options in capital letters",
     "all taken off")
def request_connection_lines(t):
    answer, request = t.ask(t.get("/x", "Connection: X-ONE", "connection: keep-alive, x-two",
                                  "X-One: 1", "X-Two: 2"))
    return is_hello(answer) and not request.has("x-one") and not request.has("x-two")


@row("RFC 9110 §7.6.1", SHOULD, "request with Keep-Alive and Proxy-Connection, not named",
     "taken off")
def request_hop_by_hop(t):
    answer, request = t.ask(t.get("/x", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive"))
    return is_hello(answer) and not request.has("keep-alive") \
        and not request.has("proxy-connection")


@row("RFC 9110 §7.6.1", SHOULD, "answer with Keep-Alive and Proxy-Connection, not named",
     "taken off")
def answer_hop_by_hop(t):
    answer = answered(t, LENGTH + b"\r\nKeep-Alive: timeout=77\r\nProxy-Connection: keep-alive")
    return is_hello(answer) and "77" not in (answer.get("keep-alive") or "") \
        and not answer.has("proxy-connection")


@row("RFC 9110 §7.6.1", MUST, "`Connection: Host, Content-Length` with a body", "served, framed")
def request_connection_names_framing(t):
    answer, request = t.ask(t.post("/x", "Connection: Host, Content-Length"))
    return is_refused(answer) or is_hello(answer) and request.has("host") \
        and request.whole and request.body == b"hello"


@row("RFC 9110 §10.1.4", MUST, "`TE: gzip`, which the proxy cannot decode", "taken off")
def request_te(t):
    answer, request = t.ask(t.get("/x", "TE: gzip;q=0.5, trailers", "Connection: TE"))
    return is_hello(answer) and "gzip" not in (request.get("te") or "")


@row("RFC 9112 §9.6", MUST, "request with `Connection: close`",
     "the connection ends behind the answer")
def request_close(t):
    answer, request = t.ask(t.get("/x", "Connection: CLOSE"))
    return is_hello(answer) and t.last.closes()


@row("RFC 9112 §9.6", SHOULD, "request with `Connection: close`", "the answer says close")
def request_close_said(t):
    answer, request = t.ask(t.get("/x", "Connection: close"))
    return is_hello(answer) and "close" in (answer.get("connection") or "").lower()


@row("RFC 9110 §11.7.2", MAY, "Proxy-Authorization, which the proxy never asked for",
     "taken off before the origin", "forward")
def proxy_authorization(t):
    answer, request = t.ask(t.get("/x", "Proxy-Authorization: Basic dTpw"))
    return is_hello(answer) and not request.has("proxy-authorization")


@row("RFC 7239 §4", MAY, "a request to a reverse proxy", "Forwarded or X-Forwarded-For at the origin",
     "reverse")
def forwarded_added(t):
    answer, request = t.ask(t.get("/x"))
    return is_hello(answer) and "127.0.0.1" in (
        (request.get("forwarded") or "") + (request.get("x-forwarded-for") or ""))


# Via and others of proxies.


@row("RFC 9110 §7.6.3", MUST, "a request", "Via at the origin, with the received version")
def via_in_request(t):
    answer, request = t.ask(t.get("/x"))
    return is_hello(answer) and (request.get("via") or "").startswith("1.1 ")


@row("RFC 9110 §7.6.3", MUST, "a request with a Via", "the own one behind it")
def via_behind_others(t):
    answer, request = t.ask(t.get("/x", "Via: 1.0 first, 1.1 second (comment)"))
    via = request.get("via") if request else ""
    return is_hello(answer) and via.startswith("1.0 first, 1.1 second (comment), 1.1 ")


@row("RFC 9110 §7.6.3", MUST, "a request of HTTP/1.0", "Via says 1.0")
def via_received_version(t):
    answer, request = t.ask(t.get("/x", version="1.0"))
    return is_hello(answer) and (request.get("via") or "").startswith("1.0 ")


@row("RFC 9110 §7.6.3", MUST, "an answer",
     "Via at the client (of a proxy; MAY of a gateway)", "forward")
def via_in_answer(t):
    return "1.1 " in (answered(t, LENGTH).get("via") or "")


@row("RFC 9110 §6.6.1", MUST, "an answer without Date", "Date at the client")
def date_added(t):
    answer, _ = t.ask(t.get("/x"), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    return is_hello(answer) and len(answer.all("date")) == 1


@row("RFC 9110 §6.6.1", MUST, "an answer with Date", "the same Date, once")
def date_kept(t):
    answer = answered(t, LENGTH)
    return is_hello(answer) and answer.all("date") == ["Tue, 01 Dec 2026 08:00:00 GMT"]


def request_keeps(name, clause, level, *fields, only=None, body=b""):
    """A row: these fields reach the origin as they were sent."""

    def run(t):
        raw = t.get("/x", *fields) if not body else t.post("/x", *fields, body=body)
        answer, request = t.ask(raw)
        if request is None:
            return False
        lost = [one for one in fields
                if one.split(": ", 1)[1] not in request.all(one.split(":")[0])]
        if lost:
            t.note(f"origin: {lost[0].split(':')[0]} {request.get(lost[0].split(':')[0])}")
        return is_hello(answer) and not lost

    run.__name__ = name
    names = ", ".join(dict.fromkeys(one.split(":")[0] for one in fields))
    row(clause, level, f"request with {names}", "passed as sent", only)(run)


def answer_keeps(name, clause, level, *fields, only=None, body=b"hello", status=b"200 OK",
                 asked=()):
    """A row: these fields and the body reach the client as they were sent."""

    def run(t):
        lines = b"".join(one.encode() + b"\r\n" for one in fields)
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        answer, _ = t.ask(t.get("/x", *asked),
                          b"HTTP/1.1 " + status + b"\r\n" + DATE + lines + length + body)
        if answer is None:
            return False
        lost = [one for one in fields
                if one.split(": ", 1)[1] not in answer.all(one.split(":")[0])]
        if lost:
            t.note(f"client: {lost[0].split(':')[0]} {answer.get(lost[0].split(':')[0])}")
        if answer.body != body:
            t.note("another body")
        return answer.whole and answer.body == body and not lost \
            and answer.status == int(status[:3])

    run.__name__ = name
    names = ", ".join(dict.fromkeys(one.split(":")[0] for one in fields))
    row(clause, level, f"{status[:3].decode()} with {names}", "passed as sent, body too", only)(run)


request_keeps("authorization_passes", "RFC 9110 §11.6.2", MUST, "Authorization: Basic dTpw")
request_keeps("cookies_pass", "RFC 9110 §5.3", MUST, "Cookie: a=1; b=\"2, 3\"")
request_keeps("conditions_pass", "RFC 9110 §13.1", MUST, "If-None-Match: \"a\", W/\"b\"",
              "If-Modified-Since: Tue, 01 Dec 2026 08:00:00 GMT")
request_keeps("range_passes", "RFC 9110 §14.2", MUST, "Range: bytes=0-4,10-", "If-Range: \"a\"")
request_keeps("user_agent_passes", "RFC 9110 §10.1.5", MUST, "User-Agent: cam/1.0 (a; b) c/2",
              "Referer: http://r.test/?q", "From: a@b.test")
request_keeps("accept_passes", "RFC 9110 §12.5", MUST, "Accept: a/b;q=0.5, */*;q=0.1",
              "Accept-Language: da, en-gb;q=0.8", "Accept-Charset: utf-8")
request_keeps("accept_encoding_passes", "RFC 9110 §12.5.3", MAY, "Accept-Encoding: gzip, br;q=0.5")
request_keeps("accept_encoding_signed", "RFC 9421 §7.1.2", MUST, "Accept-Encoding: gzip",
              "Signature-Input: s=(\"accept-encoding\" \"@path\");created=1", "Signature: s=:YWJj:")
request_keeps("accept_encoding_sigv4", "RFC 9110 §7.7", SHOULD, "Accept-Encoding: gzip",
              "Authorization: AWS4-HMAC-SHA256 Credential=a, SignedHeaders=accept-encoding;host, "
              "Signature=b")
request_keeps("content_fields_pass", "RFC 9110 §8", MUST,
              "Content-Type: text/xml; charset=\"utf-8\"",
              "Content-Language: da", "Content-Encoding: x-mine", body=b"data")
request_keeps("request_digests_pass", "RFC 9530 §2", MUST,
              "Content-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:",
              "Digest: sha-256=LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
              "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==", body=b"hello")
request_keeps("cache_control_passes", "RFC 9111 §5.2", MUST,
              "Cache-Control: no-store, x-mine=\"1\"",
              "Pragma: no-cache")
request_keeps("forwarded_passes", "RFC 7239 §4", MAY, "Forwarded: for=192.0.2.1;proto=https")

answer_keeps("challenges_pass", "RFC 9110 §11.6.1", MUST,
             "WWW-Authenticate: Basic realm=\"a, b\"",
             "WWW-Authenticate: Digest realm=\"c\", nonce=\"d\"",
             status=b"401 Unauthorized")
answer_keeps("proxy_challenge_passes", "RFC 9110 §11.7.1", MAY,
             "Proxy-Authenticate: Basic realm=\"next\"",
             status=b"407 Proxy Authentication Required")
answer_keeps("authentication_info_passes", "RFC 9110 §11.6.3", MUST,
             "Authentication-Info: nextnonce=\"a\"")
answer_keeps("partial_content_passes", "RFC 9110 §15.3.7", MUST, "Content-Range: bytes 0-4/10",
             "ETag: \"a\"", status=b"206 Partial Content", asked=("Range: bytes=0-4",))
answer_keeps("byteranges_pass", "RFC 9110 §14.6", MUST,
             "Content-Type: multipart/byteranges; boundary=B", status=b"206 Partial Content",
             body=b"--B\r\nContent-Range: bytes 0-0/9\r\n\r\na\r\n--B--\r\n",
             asked=("Range: bytes=0-0",))
answer_keeps("unsatisfiable_range_passes", "RFC 9110 §15.5.17", MUST, "Content-Range: bytes */10",
             status=b"416 Range Not Satisfiable", asked=("Range: bytes=99-",))
answer_keeps("validators_pass", "RFC 9110 §8.8", MUST, "ETag: \"strong, one\"",
             "Last-Modified: Mon, 30 Nov 2026 08:00:00 GMT", asked=("Accept-Encoding: gzip",))
answer_keeps("weak_etag_passes", "RFC 9110 §8.8.3", MUST, "ETag: W/\"weak\"")
answer_keeps("content_encoding_passes", "RFC 9110 §7.7", MUST, "Content-Encoding: gzip",
             "Vary: Accept-Encoding", "ETag: \"z\"", body=b"\x1f\x8b\x08\0raw" + bytes(range(256)),
             asked=("Accept-Encoding: gzip",))
answer_keeps("unasked_coding_passes", "RFC 9110 §7.7", MUST, "Content-Encoding: gzip", "ETag: \"z\"",
             body=b"\x1f\x8b\x08\0raw" + bytes(range(256)))
answer_keeps("no_transform_heeded", "RFC 9110 §7.7", MUST, "Cache-Control: no-transform",
             "Content-Type: text/plain", body=b"again and " * 2000,
             asked=("Accept-Encoding: gzip",))
answer_keeps("answer_digests_pass", "RFC 9530 §2", MUST, "Repr-Digest: sha-256=:YWJj:",
             "Content-Digest: sha-256=:YWJj:", "Digest: sha-256=YWJj", "Content-MD5: YWJj",
             "Content-Type: text/plain", body=b"again and " * 2000,
             asked=("Accept-Encoding: gzip",))
answer_keeps("content_fields_of_answers_pass", "RFC 9110 §8", MUST,
             "Content-Type: text/html;charset=\"utf-8\"; x=y", "Content-Language: da, en",
             "Content-Location: /other", "Content-Disposition: attachment; filename=\"a;b\"")
answer_keeps("caching_fields_pass", "RFC 9111 §5", MUST,
             "Cache-Control: max-age=60, private=\"a\"",
             "Expires: Wed, 02 Dec 2026 08:00:00 GMT", "Vary: Cookie, Accept-Language")
answer_keeps("age_passes", "RFC 9111 §5.1", MUST, "Age: 17")
answer_keeps("warning_passes", "RFC 9111 §5.5", MAY, "Warning: 299 - \"odd, but so\"")
answer_keeps("location_passes", "RFC 9110 §10.2.2", MUST, "Location: http://other.test/a?b#c",
             status=b"302 Found")
answer_keeps("relative_location_passes", "RFC 9110 §10.2.2", MUST, "Location: ../a",
             status=b"201 Created")
answer_keeps("allow_passes", "RFC 9110 §10.2.1", MUST, "Allow: GET, FROB",
             status=b"405 Method Not Allowed")
answer_keeps("retry_after_passes", "RFC 9110 §10.2.3", MUST, "Retry-After: 17",
             status=b"503 Service Unavailable")
answer_keeps("server_passes", "RFC 9110 §10.2.4", SHOULD, "Server: cam/1.0 (a)")
answer_keeps("accept_ranges_passes", "RFC 9110 §14.3", MUST, "Accept-Ranges: bytes")
answer_keeps("message_http_passes", "RFC 9112 §10.1", MUST, "Content-Type: message/http",
             body=b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n")
answer_keeps("link_passes", "RFC 9110 §5.1", MUST, "Link: </a>; rel=preload",
             "Strict-Transport-Security: max-age=1",
             "Alt-Svc: h3=\":443\"")
