"""Request targets, Host, versions, methods, Max-Forwards."""

from trial import MAY, MUST, OK, SHOULD, is_hello, is_refused, row

TARGET = "RFC 9112 §3.2"


def passed(trial, raw, target):
    """Whether the origin was asked for exactly this target and the answer came."""
    answer, request = trial.ask(raw)
    if request:
        trial.note(f"origin: {request.target!r}"[:60])
    return is_hello(answer) and request is not None and request.target == target


def unasked(trial, raw, *statuses, method=None):
    """Whether it was refused and never reached the origin."""
    answer, request = trial.ask(raw, method=method)
    if request:
        trial.note(f"origin: {request.first!r}"[:60])
    return request is None and is_refused(answer, *statuses)


@row("RFC 9112 §3.2.2", MUST, "absolute target", "origin form at the origin, Host from the target")
def absolute_target(t):
    answer, request = t.ask("GET {a}/x?y=1 HTTP/1.1\r\nHost: {h}\r\n\r\n")
    return is_hello(answer) and request.target in ("/x?y=1", t.absolute + "/x?y=1") \
        and len(request.all("host")) == 1 \
        and (t.kind == "reverse" or request.get("host") == t.host)


@row("RFC 9112 §3.2.2", MUST, "absolute target, another Host", "the target's host, not Host's")
def absolute_target_other_host(t):
    answer, request = t.ask("GET {a}/x HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    if request:
        t.note(f"origin: Host {request.get('host')}")
    return is_refused(answer) and request is None or request is not None \
        and request.all("host") != [] and "evil.test" not in request.get("host")


@row("RFC 9110 §4.2.1", MUST, "absolute target `http://host?x=1`", "path `/?x=1` at the origin")
def absolute_target_query_only(t):
    return passed(t, "GET {a}?x=1 HTTP/1.1\r\nHost: {h}\r\n\r\n", "/?x=1")


@row("RFC 9112 §3.2.1", MUST, "absolute target without a path", "path `/` at the origin")
def absolute_target_no_path(t):
    return passed(t, "GET {a} HTTP/1.1\r\nHost: {h}\r\n\r\n", "/")


@row("RFC 9110 §4.2.3", MUST, "absolute target, scheme `HTTP`",
     "served: schemes know no case", "forward")
def absolute_target_scheme_case(t):
    return passed(t, t.fill("GET {a}/x HTTP/1.1\r\nHost: {h}\r\n\r\n").replace(
        b"http://", b"HTTP://"), "/x")


@row("RFC 9112 §3.2.1", MAY, "origin form at a forward proxy", "4xx, or served by Host", "forward")
def origin_form_at_forward(t):
    answer, request = t.ask("GET /x HTTP/1.1\r\nHost: {h}\r\n\r\n")
    return is_refused(answer) or is_hello(answer)


@row("RFC 9112 §3.2.4", MUST, "`OPTIONS http://host`", "`OPTIONS *` at the origin", "forward")
def options_absolute_to_asterisk(t):
    return passed(t, "OPTIONS {a} HTTP/1.1\r\nHost: {h}\r\n\r\n", "*")


@row("RFC 9112 §3.2.4", MUST, "`OPTIONS *`", "passed as it is or answered 200 or 204", "reverse")
def options_asterisk(t):
    answer, request = t.ask("OPTIONS * HTTP/1.1\r\nHost: {h}\r\n\r\n")
    if request:
        t.note(f"origin: {request.target!r}")
    return answer is not None and answer.status in (200, 204) \
        and (request is None or request.target == "*")


@row("RFC 9112 §3.2.4", MUST, "`GET *`", "refused with 4xx")
def get_asterisk(t):
    return unasked(t, "GET * HTTP/1.1\r\nHost: {h}\r\n\r\n")


@row("RFC 9112 §3.2.3", MUST, "`GET host:port` (authority form)", "refused with 4xx")
def get_authority_form(t):
    return unasked(t, "GET {h} HTTP/1.1\r\nHost: {h}\r\n\r\n")


@row("RFC 9110 §7.7", MUST, "path with `%7e`, `%2F`, `%41` and capital letters", "untouched")
def path_percent_encoding(t):
    path = "/%7euser/%2F/A%20b/%c3%BC?q=%41&r=%2b+"
    return passed(t, "GET {u}%s HTTP/1.1\r\nHost: {h}\r\n\r\n" % path, path)


@row("RFC 9110 §7.7", MUST, "path with dot segments", "untouched, or refused with 4xx")
def path_dot_segments(t):
    path = "/a/../b/./c/..d"
    answer, request = t.ask("GET {u}%s HTTP/1.1\r\nHost: {h}\r\n\r\n" % path)
    return request is None and is_refused(answer) or request is not None and request.target == path


@row("RFC 9110 §7.7", MUST, "path `/a//b///`", "untouched")
def path_double_slashes(t):
    return passed(t, "GET {u}/a//b/// HTTP/1.1\r\nHost: {h}\r\n\r\n", "/a//b///")


@row("RFC 9110 §7.7", MUST, "path `//a/b`", "untouched")
def path_begins_with_two_slashes(t):
    return passed(t, "GET {u}//a/b HTTP/1.1\r\nHost: {h}\r\n\r\n", "//a/b")


@row("RFC 9110 §7.7", MUST, "path `/?` and an empty query", "untouched")
def path_empty_query(t):
    return passed(t, "GET {u}/x? HTTP/1.1\r\nHost: {h}\r\n\r\n", "/x?")


@row("RFC 9110 §7.7", MUST, "all characters of RFC 3986 in path and query", "untouched")
def path_all_legal_characters(t):
    path = "/-._~!$&'()*+,;=:@/?-._~!$&'()*+,;=:@/?"
    return passed(t, "GET {u}%s HTTP/1.1\r\nHost: {h}\r\n\r\n" % path, path)


@row(TARGET, MAY, "raw `{`, `}`, `\"`, `[`, `]` in the query, as browsers send", "passed as sent")
def path_raw_json(t):
    return passed(t, "GET {u}/x?q={\"k\":[1]} HTTP/1.1\r\nHost: {h}\r\n\r\n", '/x?q={"k":[1]}')


@row(TARGET, MAY, "raw `<`, `>`, `|`, `^`, `` ` ``, `\\` in the query", "passed as sent")
def path_raw_others(t):
    return passed(t, "GET {u}/x?q=<a>|^`\\ HTTP/1.1\r\nHost: {h}\r\n\r\n", "/x?q=<a>|^`\\")


@row(TARGET, MAY, "raw bytes above 0x7f in the path", "passed as sent")
def path_raw_eight_bits(t):
    return passed(t, b"GET {u}/\xfc\xc3\xbc HTTP/1.1\r\nHost: {h}\r\n\r\n", "/\xfc\xc3\xbc")


@row("RFC 9112 §3", SHOULD, "a blank within the target", "refused with 400, not mended")
def target_with_blank(t):
    return unasked(t, "GET {u}/a b HTTP/1.1\r\nHost: {h}\r\n\r\n")


@row("RFC 9112 §2.2", SHOULD, "a control character (0x01) in the target", "refused with 4xx")
def target_with_control(t):
    return unasked(t, "GET {u}/a\x01b HTTP/1.1\r\nHost: {h}\r\n\r\n")


@row("RFC 9112 §3", SHOULD, "a target of 7900 bytes", "served: lines of 8000 bytes are")
def target_of_8000(t):
    path = "/" + "a" * 7900
    answer, request = t.ask("GET {u}%s HTTP/1.1\r\nHost: {h}\r\n\r\n" % path)
    return is_hello(answer) and request.target == path


@row("RFC 9112 §3", MUST, "a target of 300,000 bytes", "414 (or 431), or served")
def target_of_300000(t):
    path = "/" + "a" * 300_000
    answer, request = t.ask("GET {u}%s HTTP/1.1\r\nHost: {h}\r\n\r\n" % path)
    return is_refused(answer, 414, 431) or is_hello(answer) and request.target == path


@row("RFC 9110 §4.2.4", SHOULD, "userinfo in the target",
     "refused, or gone at the origin", "forward")
def target_with_userinfo(t):
    answer, request = t.ask(t.fill("GET {a}/x HTTP/1.1\r\nHost: {h}\r\n\r\n").replace(
        b"http://", b"http://user:pass@"))
    if request is None:
        return is_refused(answer)
    return is_hello(answer) and "@" not in request.first + (request.get("host") or "")


@row("RFC 9110 §7.4", MUST, "a scheme that nobody knows", "refused, not asked over HTTP", "forward")
def target_unknown_scheme(t):
    answer, request = t.ask("GET foo://{h}/x HTTP/1.1\r\nHost: {h}\r\n\r\n")
    return request is None and answer is not None and 400 <= answer.status <= 503


@row("RFC 9110 §7.6", MUST, "a request to the proxy's own address", "refused within 5 s", "forward")
def request_to_itself(t):
    t.serve(t.answering(OK))
    peer = t.client(5)
    own = f"{t.proxy[0]}:{t.proxy[1]}"
    peer.send(f"GET http://{own}/x HTTP/1.1\r\nHost: {own}\r\n\r\n".encode())
    answer = t.receive(peer)
    return answer is not None and answer.status >= 400


# Host.


@row("RFC 9112 §3.2", MUST, "HTTP/1.1 without Host", "400")
def host_none(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nAccept: */*\r\n\r\n", 400)


@row("RFC 9112 §3.2", MUST, "Host twice, the same", "400")
def host_twice(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nHost: {h}\r\nHost: {h}\r\n\r\n", 400)


@row("RFC 9112 §3.2", MUST, "Host twice, differing", "400")
def host_twice_differing(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nHost: {h}\r\nHost: evil.test\r\n\r\n", 400)


@row("RFC 9112 §3.2", MUST, "Host with a blank: `a b`", "400")
def host_with_blank(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nHost: a b\r\n\r\n", 400)


@row("RFC 9112 §3.2", MUST, "Host with a path: `a/b`", "400")
def host_with_path(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nHost: a/b\r\n\r\n", 400)


@row("RFC 9112 §3.2", MUST, "Host with userinfo: `u@a`", "400")
def host_with_userinfo(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nHost: u@a\r\n\r\n", 400)


@row("RFC 9112 §3.2", MUST, "Host with a port that is none: `a:b`", "400")
def host_with_bad_port(t):
    return unasked(t, "GET {u}/x HTTP/1.1\r\nHost: a:b\r\n\r\n", 400)


@row("RFC 9112 §3.2.2", MUST, "absolute target, empty Host", "Host from the target", "forward")
def host_empty(t):
    answer, request = t.ask("GET {u}/x HTTP/1.1\r\nHost: \r\n\r\n")
    return is_hello(answer) and request.get("host") == t.host or is_refused(answer, 400)


@row("RFC 9112 §3.2", MUST, "HTTP/1.0 without Host", "served")
def host_none_in_1_0(t):
    answer, request = t.ask("GET {u}/x HTTP/1.0\r\nAccept: */*\r\n\r\n")
    return is_hello(answer)


@row("RFC 9112 §3.2", MUST, "HTTP/1.0 without Host", "Host made for the HTTP/1.1 request")
def host_made_for_1_0(t):
    answer, request = t.ask("GET {u}/x HTTP/1.0\r\nAccept: */*\r\n\r\n")
    if request is None:
        return False
    t.note(f"origin: {request.version}, Host {request.get('host')}")
    return request.version == "HTTP/1.0" or len(request.all("host")) == 1


# Versions.


@row("RFC 9110 §6.2", MUST, "a request of HTTP/1.0", "goes on with the proxy's own version")
def version_1_0_request(t):
    answer, request = t.ask("GET {u}/x HTTP/1.0\r\nHost: {h}\r\n\r\n")
    return is_hello(answer) and request.version == "HTTP/1.1"


@row("RFC 9110 §2.5", SHOULD, "a request of HTTP/1.2", "served as HTTP/1.1")
def version_1_2_request(t):
    answer, request = t.ask("GET {u}/x HTTP/1.2\r\nHost: {h}\r\n\r\n")
    return is_hello(answer) and request.version == "HTTP/1.1"


@row("RFC 9110 §15.6.6", SHOULD, "a request of HTTP/2.0", "505 or 400")
def version_2_0_request(t):
    answer, request = t.ask("GET {u}/x HTTP/2.0\r\nHost: {h}\r\n\r\n")
    return request is None and answer is not None and answer.status in (400, 501, 505)


@row("RFC 9112 §2.3", MUST, "`http/1.1` in small letters", "refused: the name knows case")
def version_small_letters(t):
    answer, request = t.ask("GET {u}/x http/1.1\r\nHost: {h}\r\n\r\n")
    return request is None and (answer is None or answer.status >= 400)


@row("RFC 9112 §2.3", MUST, "`HTTP/1.10`", "refused: one digit each")
def version_two_digits(t):
    answer, request = t.ask("GET {u}/x HTTP/1.10\r\nHost: {h}\r\n\r\n")
    return request is None and (answer is None or answer.status >= 400)


@row("RFC 9112 §2.2", SHOULD, "bytes of a TLS handshake", "an error or the end, within 3 s")
def not_http_at_all(t):
    t.serve(t.answering(OK))
    peer = t.client()
    peer.send(b"\x16\x03\x01\x00\x20\x01\x00\x00\x1c\x03\x03\x01\x02\x03\r\n\r\n")
    data, how = peer.rest(3)
    t.note(f"{data[:12]!r}, {how}" if how == "timeout" else "")
    return how != "timeout" and not t.requests


@row("RFC 9113 §3.4", MUST, "the preface of HTTP/2", "refused: nothing of it at the origin")
def preface_of_http_2(t):
    t.serve(t.answering(OK))
    peer = t.client()
    peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    data, how = peer.rest(3)
    t.note(f"{data[:12]!r}, {how}")
    return not t.requests and not data.startswith(b"HTTP/1.1 2")


@row("RFC 9112 §2.2", SHOULD, "an empty line before the request", "skipped")
def empty_line_first(t):
    t.serve(t.answering(OK))
    peer = t.client()
    peer.send(t.fill("\r\nGET {u}/x HTTP/1.1\r\nHost: {h}\r\n\r\n"))
    return is_hello(t.receive(peer))


@row("RFC 9112 §2.2", MAY, "lines that end with LF alone", "served or 400")
def lines_with_line_feed_alone(t):
    answer, _ = t.ask("GET {u}/x HTTP/1.1\nHost: {h}\n\n")
    return is_hello(answer) or is_refused(answer, 400)


@row("RFC 9112 §2.2", MUST, "white space between request line and fields",
     "400, or that line ignored")
def blank_before_first_field(t):
    answer, request = t.ask("GET {u}/x HTTP/1.1\r\n X-Trick: 1\r\nHost: {h}\r\n\r\n")
    return is_refused(answer, 400) and request is None \
        or request is not None and b"trick" not in request.head.lower()


@row("RFC 9112 §2", MUST, "a request whose bytes come one by one", "served")
def byte_by_byte(t):
    t.serve(t.answering(OK))
    peer = t.client()
    for byte in t.post("/x"):
        peer.send(bytes([byte]))
    return is_hello(t.receive(peer)) and t.requests[0].body == b"hello"


@row("RFC 9112 §2", MUST, "an answer whose bytes come one by one", "whole")
def answer_byte_by_byte(t):
    def script(peer, _number):
        t.read_request(peer)
        for byte in OK:
            peer.send(bytes([byte]))

    return is_hello(t.ask(t.get("/x"), script)[0])


# Methods.


@row("RFC 9110 §9.1", MUST, "a method of others (PROPFIND)", "passed")
def method_of_others(t):
    answer, request = t.ask("PROPFIND {u}/x HTTP/1.1\r\nHost: {h}\r\nDepth: 1\r\n\r\n")
    return is_hello(answer) and request.method == "PROPFIND"


@row("RFC 9110 §9.1", MAY, "a method that nobody knows (FROB)", "passed")
def method_unknown(t):
    answer, request = t.ask("FROB {u}/x HTTP/1.1\r\nHost: {h}\r\n\r\n")
    return is_hello(answer) and request.method == "FROB"


@row("RFC 9110 §9.1", MUST, "`get` in small letters", "never made GET: passed as it is, or refused")
def method_small_letters(t):
    answer, request = t.ask("get {u}/x HTTP/1.1\r\nHost: {h}\r\n\r\n")
    return answer is not None and (request is None or request.method == "get")


@row("RFC 9110 §5.6.2", MUST, "`GE(T` as a method", "refused with 4xx")
def method_no_token(t):
    answer, request = t.ask("GE(T {u}/x HTTP/1.1\r\nHost: {h}\r\n\r\n")
    return request is None and answer is not None and answer.status in (400, 405, 501)


@row("RFC 9110 §9.3.1", MUST, "GET with a body", "passed with its body")
def get_with_body(t):
    answer, request = t.ask(t.get("/x", "Content-Length: 5", body=b"hello"))
    return is_hello(answer) and t.wait(lambda: request.whole) and request.body == b"hello"


@row("RFC 9110 §9.3.5", MUST, "DELETE with a body in chunks", "passed with its body")
def delete_with_body(t):
    answer, request = t.ask(t.get("/x", "Transfer-Encoding: chunked", method="DELETE",
                                  body=b"5\r\nhello\r\n0\r\n\r\n"))
    return is_hello(answer) and t.wait(lambda: request.whole) and request.body == b"hello"


@row("RFC 9112 §6.3", MUST, "POST with neither length nor coding", "no body, whole at once")
def post_without_length(t):
    answer, request = t.ask(t.get("/x", method="POST"))
    return is_hello(answer) and request.whole and request.body == b""


@row("RFC 9110 §9.3.8", MUST, "TRACE with Max-Forwards: 0", "not forwarded")
def trace_max_forwards_0(t):
    answer, request = t.ask(t.get("/x", "Max-Forwards: 0", method="TRACE"))
    return request is None and answer is not None and answer.status in (200, 405, 501, 403)


@row("RFC 9110 §7.6.2", MUST, "OPTIONS with Max-Forwards: 0", "answered, not forwarded")
def options_max_forwards_0(t):
    answer, request = t.ask(t.get("/x", "Max-Forwards: 0", method="OPTIONS"))
    return request is None and answer is not None and answer.status in (200, 204, 405, 501)


@row("RFC 9110 §7.6.2", MUST, "OPTIONS with Max-Forwards: 5", "4 at the origin")
def options_max_forwards_5(t):
    answer, request = t.ask(t.get("/x", "Max-Forwards: 5", method="OPTIONS"))
    if request:
        t.note(f"origin: {request.get('max-forwards')}")
    return is_hello(answer) and request.get("max-forwards") == "4"


@row("RFC 9110 §7.6.2", MUST, "TRACE with Max-Forwards: 5", "4 at the origin, or refused")
def trace_max_forwards_5(t):
    answer, request = t.ask(t.get("/x", "Max-Forwards: 5", method="TRACE"))
    if request is None:
        return answer is not None and answer.status in (403, 405, 501)
    t.note(f"origin: {request.get('max-forwards')}")
    return request.get("max-forwards") == "4"


@row("RFC 9110 §7.6.2", MAY, "GET with Max-Forwards: 0", "passed: it is for TRACE and OPTIONS")
def get_max_forwards_0(t):
    return is_hello(t.ask(t.get("/x", "Max-Forwards: 0"))[0])
