"""The edge over gateways of others; see `check`.

LONGWIRE and COAP_SERVER name the programs, WORK a folder. The clients are curl, Python's and zeep,
the origin is Python's or `longwire serve tracks`. Each line is a check, ok or FAIL with what came
instead. Exit status 1 where one failed.
"""

import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import zeep

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wsp"))
from kannel import WSP_PORT, Kannel, is_free  # noqa: E402

LONGWIRE = os.environ["LONGWIRE"]
COAP_SERVER = os.environ.get("COAP_SERVER", "")
SOAP = (b'<?xml version="1.0"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/">'
        b"<e:Body><getTrack><id>7</id></getTrack></e:Body></e:Envelope>")
TRACK = b"<track id='7'><lat>59.9</lat><lon>10.7</lon></track>"
LARGE = bytes(i * 7 % 251 for i in range(100_000))
UPLOAD = b"<a>" + bytes(97 + i * 11 % 26 for i in range(50_000)) + b"</a>"
MAX_STEP_S = 60
MAX_START_S = 20
FAILED = []


def check(name, good, came=""):
    """Prints one line."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.300}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port():
    """A port that nobody has, neither for streams nor for datagrams."""
    with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        stream.bind(("127.0.0.1", 0))
        datagrams.bind(stream.getsockname())
        return stream.getsockname()[1]


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers a track, or the body that came, and notes requests."""

    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *_):
        pass

    def answer(self, status, body, media="text/xml; charset=utf-8"):
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        if self.path.startswith("/tagged"):
            self.send_header("ETag", '"track-7"')
            self.send_header("Cache-Control", "max-age=30")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        Origin.seen.append((self.command, self.path, self.headers, b""))
        if self.path == "/large":
            return self.answer(200, LARGE, "application/octet-stream")
        if self.path == "/nothing":
            return self.answer(404, b"no such thing", "text/plain")
        if self.headers.get("If-None-Match") == '"track-7"':
            self.send_response(304)
            self.send_header("ETag", '"track-7"')
            return self.end_headers()
        return self.answer(200, TRACK)

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Origin.seen.append((self.command, self.path, self.headers, body))
        self.answer(200, body, self.headers.get("Content-Type") or "text/plain")

    do_PUT = do_POST


def seen(path):
    return [one for one in Origin.seen if one[1] == path]


@contextlib.contextmanager
def process(*args, ready=None):
    """A process that is ready, and the line that says so; it ends with the block."""
    log = tempfile.TemporaryFile()
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=log)
    try:
        line = child.stdout.readline() if ready else b""
        if ready is not None and ready not in line:
            log.seek(0)
            sys.exit(f"{args[0]} did not start: {log.read()[-500:]}")
        yield line.decode().rpartition(" ")[2].strip()
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        child.kill()
        child.wait()
        child.stdout.close()
        log.close()


def edge(gateway, admin, *more):
    args = ("--listen", "127.0.0.1:0", "--gateway", gateway, "--admin", f"127.0.0.1:{admin}",
            "--log", "warn", *more)
    return process(LONGWIRE, "edge", *args, ready=b"listening on ")


def curl(edge_at, url, *more):
    """Status, fields and body, by curl."""
    done = subprocess.run(["curl", "--silent", "--show-error", "--include", "--max-time",
                           str(MAX_STEP_S), "--proxy", f"http://{edge_at}", *more, url],
                          capture_output=True, check=False)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 1"):
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/") else 0
    fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return status, fields, body or done.stderr


def metrics(admin):
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def wait_for(edge_at, url):
    """Until something answers behind the edge."""
    until = time.monotonic() + MAX_START_S
    while time.monotonic() < until:
        status, _, body = curl(edge_at, url)
        if status == 200:
            return True
        time.sleep(0.2)
    check(f"an answer from {url}", False, (status, body))
    return False


def both(name, at, origin, way, keeps_all=True):
    """What both ways do alike; `keeps_all`: the gateway says what HEAD is for, and why 404."""
    path = "/" + name.replace(" ", "-")
    status, _, body = curl(at, origin + path + "?a=b%20c")
    good = status == 200 and body == TRACK and len(seen(path + "?a=b%20c")) == 1
    check(f"{name}: GET", good, (status, body))
    status, fields, body = curl(at, origin + path, "--head")
    length = fields.get("content-length")
    good = status == 200 and length in ([str(len(TRACK))] if keeps_all else [None]) and not body
    check(f"{name}: HEAD", good, (status, fields, body))
    soap = os.path.join(os.environ["WORK"], "call.xml")
    with open(soap, "wb") as file:
        file.write(SOAP)
    status, fields, body = curl(at, f"{origin}{path}-soap", "--data-binary", f"@{soap}",
                                "--header", "Content-Type: text/xml; charset=utf-8",
                                "--header", 'SOAPAction: "urn:t"')
    came = seen(f"{path}-soap")
    good = status == 200 and body == SOAP and len(came) == 1 and came[0][3] == SOAP
    check(f"{name}: POST of SOAP, carried out once", good, (status, len(came), body))
    said = came[0][2]["SOAPAction"] if came else ""
    wanted = '"urn:t"' if way == "wsp" else None
    check(f"{name}: SOAPAction is {wanted}", said == wanted, said)
    status, _, body = curl(at, f"{origin}/nothing")
    good = status == 404 and (b"no such thing" in body or not keeps_all)
    check(f"{name}: 404" + (" with its text" if keeps_all else ""), good, (status, body))
    status, _, body = curl(at, f"{origin}{path}-tunnel", "--proxytunnel")
    check(f"{name}: CONNECT is 501", b"501" in body, (status, body))


def of_coap(name, at, origin, tags=True):
    """What CoAP does beyond, or in another way."""
    status, _, body = curl(at, f"{origin}/large")
    check(f"{name}: GET 100 KB in blocks", status == 200 and body == LARGE, (status, len(body)))
    upload = os.path.join(os.environ["WORK"], "upload.xml")
    with open(upload, "wb") as file:
        file.write(UPLOAD)
    path = "/upload-" + name.replace(" ", "-")
    status, _, body = curl(at, origin + path, "--data-binary", f"@{upload}",
                           "--header", "Content-Type: application/xml")
    came = seen(path)
    good = status == 200 and len(came) == 1 and came[0][3] == UPLOAD and body == UPLOAD
    check(f"{name}: POST 50 KB in blocks both ways, once", good, (status, len(came), len(body)))
    if tags:
        status, fields, _ = curl(at, f"{origin}/tagged")
        good = status == 200 and fields.get("cache-control") == "max-age=30"
        check(f"{name}: Max-Age is Cache-Control", good, fields)
        tag = fields.get("etag", "")
        status, fields, body = curl(at, f"{origin}/tagged", "--header", f"If-None-Match: {tag}")
        good = status == 304 and fields.get("etag") == tag and not body
        check(f"{name}: 304 for what is here", good, (status, fields, body))
    status, _, body = curl(at, origin, "--request", "OPTIONS")
    check(f"{name}: OPTIONS is 501", status == 501 and b"coap" in body, (status, body))


def by_kannel(origin):
    if not is_free():
        print("left out: Kannel, for another process has one of its ports, UDP 9200 to 9203")
        return
    if not (shutil.which("bearerbox") and shutil.which("wapbox")):
        print("left out: Kannel; apt install kannel")
        return
    kannel, admin = Kannel(os.environ["WORK"]), free_port()
    try:
        until = time.monotonic() + MAX_START_S
        while not kannel.listens() and kannel.runs() and time.monotonic() < until:
            time.sleep(0.1)
        kannel.start_wapbox()
        with edge(f"wsp://127.0.0.1:{WSP_PORT}", admin, "--response-timeout", "5 s") as at:
            if not wait_for(at, f"{origin}/start"):
                return
            both("Kannel", at, origin, "wsp", keeps_all=False)
            status, _, body = curl(at, f"{origin}/over", "--data-binary", "x" * 70000)
            check("Kannel: a body of 70 KB is 413", status == 413 and b"65506" in body, body)
            good = re.search(r'longwire_responses_total\{way="wsp",class="2xx"\} [1-9]',
                             metrics(admin))
            check("Kannel: the way is in metrics", good, metrics(admin)[:300])
    finally:
        kannel.stop()


def by_ours(origin):
    """Our own gateway's listeners, and zeep over both."""
    wsp, coap = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        tracks = stack.enter_context(process(LONGWIRE, "serve", "tracks", "--listen",
                                             "127.0.0.1:0", ready=b"listening on "))
        tracks = f"http://{tracks}"
        stack.enter_context(process(
            LONGWIRE, "gateway", "--listen", "127.0.0.1:0", "--allow", origin, "--allow", tracks,
            "--wsp", f"127.0.0.1:{wsp}", "--coap", f"127.0.0.1:{coap}", "--log", "warn",
            ready=b"listening on "))
        admin = free_port()
        at = stack.enter_context(edge(f"wsp://127.0.0.1:{wsp}", admin, "--wsp-repeat"))
        both("our gateway by wsp", at, origin, "wsp")
        status, _, body = curl(at, f"{origin}/large")
        check("our gateway by wsp: an answer of 100 KB is 413", status == 413, (status, body[:99]))
        by_zeep("our gateway by wsp", at, tracks)
        at = stack.enter_context(edge(f"wsp://127.0.0.1:{wsp}", free_port(), "--wsp-repeat",
                                      "--wsp-wbxml"))
        by_zeep("our gateway by wsp in WBXML", at, tracks)
        status, fields, body = curl(at, f"{origin}/wbxml", "--header", "Accept: text/xml")
        good = status == 200 and b"<lat>59.9</lat>" in body and "xml" in fields["content-type"]
        check("our gateway by wsp in WBXML: XML comes as XML", good, (status, fields, body))
        admin = free_port()
        at = stack.enter_context(edge(f"coap://127.0.0.1:{coap}", admin))
        both("our gateway by coap", at, origin, "coap")
        of_coap("our gateway by coap", at, origin)
        by_zeep("our gateway by coap", at, tracks)
        status, _, body = curl(at, "http://127.0.0.1:1/")
        check("our gateway by coap: what is not allowed is 502", status == 502, (status, body))
        good = re.search(r'longwire_responses_total\{way="coap",class="2xx"\} [1-9]',
                         metrics(admin))
        check("our gateway by coap: the way is in metrics", good, metrics(admin)[:300])


def by_zeep(name, at, tracks):
    """SOAP by a client that is made of the WSDL alone; that is fetched as the messages are."""
    session = zeep.Transport(operation_timeout=MAX_STEP_S)
    session.session.proxies = {"http": f"http://{at}"}
    session.session.trust_env = False
    try:
        client = zeep.Client(f"{tracks}/soap?wsdl", transport=session)
        for port in client.wsdl.services["TracksService"].ports:
            answer = client.bind("TracksService", port).GetTrack(number=3)
            check(f"{name}: zeep, {port}", "3" in str(answer) and len(str(answer)) > 500, answer)
    except Exception as error:  # What a client of others makes of an answer is shown.
        check(f"{name}: zeep", False, repr(error))


def by_libcoap(origin):
    """libcoap's proxy goes on by CoAP alone, and says so without a reason."""
    if not COAP_SERVER:
        print("left out: libcoap; apt install libcoap3-bin")
        return
    proxy = free_port()
    with contextlib.ExitStack() as stack:
        stack.enter_context(process(COAP_SERVER, "-A", "127.0.0.1", "-p", str(proxy),
                                    "-P", ",proxy.invalid", "-v", "0"))
        at = stack.enter_context(edge(f"coap://127.0.0.1:{proxy}", free_port()))
        until, status, body = time.monotonic() + MAX_START_S, 0, b""
        while status != 502 and time.monotonic() < until:
            status, _, body = curl(at, f"{origin}/by-libcoap")
        good = status == 502 and b"5.05" in body
        check("libcoap proxy: that it does not go on to http is 502", good, (status, body))


def by_aiocoap(origin):
    port = free_port()
    with process(sys.executable, "proxy.py", str(port), ready=b"ready"):
        with edge(f"coap://127.0.0.1:{port}", free_port()) as at:
            both("aiocoap proxy", at, origin, "coap")
            of_coap("aiocoap proxy", at, origin, tags=False)


def to_nobody(origin):
    """Gateways that are not there, and settings that do not go together."""
    for scheme in ("wsp", "coap"):
        with edge(f"{scheme}://127.0.0.1:{free_port()}", free_port()) as at:
            begin = time.monotonic()
            status, _, body = curl(at, f"{origin}/")
            took = time.monotonic() - begin
            good = status == 504 and took < 5 and b"127.0.0.1" in body
            check(f"{scheme}: nobody there is 504 at once", good, (status, took, body))
    done = subprocess.run([LONGWIRE, "edge", "--check", "--json", "--listen", "127.0.0.1:0",
                           "--gateway", "coap://192.0.2.1", "--encoding", "zstd"],
                          capture_output=True, check=False)
    keys = [one["key"] for one in json.loads(done.stdout)["mistakes"]]
    check("--check names what does not go together", len(keys) == 2, done.stdout)


class Server(http.server.ThreadingHTTPServer):
    """One that is silent about clients that leave."""

    daemon_threads = True

    def handle_error(self, *_):
        pass


def main():
    server = Server(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    to_nobody(origin)
    by_ours(origin)
    by_aiocoap(origin)
    by_libcoap(origin)
    by_kannel(origin)
    server.shutdown()
    print(f"{len(FAILED)} failed" if FAILED else "all ok")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
