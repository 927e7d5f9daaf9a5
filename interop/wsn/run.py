"""WS-Notification with peers of others, and every message against its schema; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import contextlib
import http.client
import http.server
import os
import pathlib
import queue
import socket
import ssl
import subprocess
import sys
import threading
import time

import zeep
from lxml import etree

from schemas import SOAP11, SOAP12, Schemas

LONGWIRE, WORK = os.environ["LONGWIRE"], pathlib.Path(os.environ["WORK"])
HERE = pathlib.Path(__file__).parent
TYPES = HERE / "target/schemas/org/apache/cxf/wsn/wsdl"
# Of one step, and of a broker or a program in Java until it is there.
MAX_STEP_S, MAX_START_S, MAX_JAVA_S = 10, 30, 180
FAILED = []
NAMES = {
    "n": "http://docs.oasis-open.org/wsn/b-2",
    "b": "http://docs.oasis-open.org/wsn/br-2",
    "a": "http://www.w3.org/2005/08/addressing",
    "rp": "http://docs.oasis-open.org/wsrf/rp-2",
    "t": "http://docs.oasis-open.org/wsn/t-1",
    "l": "urn:longwire:topics",
    "lw": "urn:longwire:wsn",
    "u": "urn:unit",
}
DIALECT = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"


def check(name, good, came=""):
    """Prints one line."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.300}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port():
    with socket.socket() as stream:
        stream.bind(("127.0.0.1", 0))
        return stream.getsockname()[1]


@contextlib.contextmanager
def process(*args, ready, seconds=MAX_START_S):
    """A process that has said that it is ready, and ends with the block."""
    with open(WORK / "log", "ab") as log:
        child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=log)
    timer = threading.Timer(seconds, child.kill)
    timer.start()
    try:
        if ready not in child.stdout.readline():
            sys.exit(f"{args[0]} did not start; see {WORK / 'log'}")
        timer.cancel()
        yield child
    finally:
        timer.cancel()
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
        child.kill()
        child.wait()


class Consumer:
    """Takes what is posted to it; answers with `status`."""

    def __init__(self, schemas, certificate=None):
        self.came, self.status, self.schemas, self.wrong = queue.Queue(), 202, schemas, []
        consumer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                consumer.wrong += schemas.faults_of(body)
                consumer.came.put((self.headers, etree.fromstring(body)))
                self.send_response(consumer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}/"

    def next(self, seconds=MAX_STEP_S):
        try:
            return self.came.get(timeout=seconds)
        except queue.Empty:
            return None, None


class Peer:
    """Raw requests, whose answers are judged by the schemas."""

    def __init__(self, url, schemas):
        self.host = url.removeprefix("http://").rstrip("/")
        self.schemas, self.wrong, self.count = schemas, [], 0

    def ask(self, body, path="/", soap=SOAP11, header=""):
        names = "".join(f" xmlns:{prefix}='{uri}'" for prefix, uri in NAMES.items())
        head = f"<s:Header>{header}</s:Header>" if header else ""
        text = f"<s:Envelope xmlns:s='{soap}'{names}>{head}<s:Body>{body}</s:Body></s:Envelope>"
        kind = "text/xml" if soap == SOAP11 else "application/soap+xml"
        connection = http.client.HTTPConnection(self.host, timeout=MAX_STEP_S)
        connection.request("POST", path, text, {"Content-Type": f"{kind}; charset=utf-8"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if not content:
            return answer.status, None
        self.count += 1
        self.wrong += self.schemas.faults_of(content)
        return answer.status, etree.fromstring(content)

    def path(self, root):
        return "/" + root.findtext(".//a:Address", namespaces=NAMES).split("/", 3)[3]


def subscribe(consumer, topic, dialect="Full", more="", filters="", reference=""):
    return (
        f"<n:Subscribe><n:ConsumerReference><a:Address>{consumer}</a:Address>{reference}"
        f"</n:ConsumerReference><n:Filter><n:TopicExpression Dialect='{DIALECT}{dialect}'>{topic}"
        f"</n:TopicExpression>{filters}</n:Filter>{more}</n:Subscribe>"
    )


def notify(topic, content, dialect="Concrete"):
    return (
        f"<n:Notify><n:NotificationMessage><n:Topic Dialect='{DIALECT}{dialect}'>{topic}</n:Topic>"
        f"<n:Message>{content}</n:Message></n:NotificationMessage></n:Notify>"
    )


def of_raw_requests(url, schemas):
    """Every operation, in both versions of SOAP."""
    for soap, version in ((SOAP11, "1.1"), (SOAP12, "1.2")):
        peer, consumer = Peer(url, schemas), Consumer(schemas)
        path = operations(peer, consumer, soap, version)
        faults(peer, soap, version, path)
        check(f"SOAP {version}: {peer.count} answers are valid", not peer.wrong, peer.wrong)
        check(f"SOAP {version}: messages are valid", not consumer.wrong, consumer.wrong)


def operations(peer, consumer, soap, version):
    def ask(body, path="/"):
        return peer.ask(body, path, soap)

    root = f"r{version.replace('.', '')}"
    filters = f"<n:MessageContent Dialect='{XPATH}'>/u:track/u:speed &gt; 10</n:MessageContent>"
    status, answer = ask(subscribe(consumer.url, f"l:{root}/*/track", filters=filters))
    check(f"SOAP {version}: subscribed in Full with XPath", status == 200, status)
    path = peer.path(answer)
    for speed in (9, 11):
        track = f"<u:track><u:speed>{speed}</u:speed></u:track>"
        check(f"SOAP {version}: Notify", ask(notify(f"l:{root}/x/track", track))[0] == 202)
    _, message = consumer.next()
    speed = None if message is None else message.findtext(".//u:speed", namespaces=NAMES)
    check(f"SOAP {version}: only what passes arrives", speed == "11", speed)
    uri = None if message is None else etree.QName(message).namespace
    check(f"SOAP {version}: in the consumer's version", uri == soap, uri)
    topic = "" if message is None else message.findtext(".//n:Topic", namespaces=NAMES)
    check(f"SOAP {version}: with its topic", topic == f"l:{root}/x/track", topic)
    for body, name in (
        ("<n:PauseSubscription/>", "paused"),
        ("<n:ResumeSubscription/>", "resumed"),
        ("<n:Renew><n:TerminationTime>PT1H</n:TerminationTime></n:Renew>", "renewed"),
        ("<rp:GetResourceProperty>n:ConsumerReference</rp:GetResourceProperty>", "a property"),
        ("<n:Unsubscribe/>", "unsubscribed"),
    ):
        status, _ = ask(body, path)
        check(f"SOAP {version}: {name}", status == 200, status)
    status, answer = ask("<n:CreatePullPoint/>")
    point = peer.path(answer)
    ask(subscribe(f"http://{peer.host}{point}", f"l:{root}//."))
    ask(notify(f"l:{root}", "<u:x/>"))
    status, answer = ask("<n:GetMessages><n:MaximumNumber>5</n:MaximumNumber></n:GetMessages>", point)
    count = len(answer.findall(".//n:NotificationMessage", namespaces=NAMES))
    check(f"SOAP {version}: a pull point has one message", count == 1, count)
    check(f"SOAP {version}: it is destroyed", ask("<n:DestroyPullPoint/>", point)[0] == 200)
    status, answer = ask("<b:RegisterPublisher><b:Demand>false</b:Demand></b:RegisterPublisher>")
    check(f"SOAP {version}: registered", status == 200, status)
    status, _ = ask("<b:DestroyRegistration/>", peer.path(answer))
    check(f"SOAP {version}: the registration is destroyed", status == 200, status)
    for name in ("t:TopicSet", "n:FixedTopicSet", "n:TopicExpressionDialect"):
        status, _ = ask(f"<rp:GetResourceProperty>{name}</rp:GetResourceProperty>")
        check(f"SOAP {version}: {name}", status == 200, status)
    return path


def faults(peer, soap, version, gone):
    policy = "<n:SubscriptionPolicy><u:Fast/></n:SubscriptionPolicy>"
    past = "<n:InitialTerminationTime>2000-01-01T00:00:00Z</n:InitialTerminationTime>"
    bad = f"<n:MessageContent Dialect='{XPATH}'>a[</n:MessageContent>"
    sink = "http://127.0.0.1:9/"
    for body, path, name in (
        (subscribe(sink, "a//b"), "/", "InvalidTopicExpression"),
        (subscribe(sink, "a", dialect="None"), "/", "TopicExpressionDialectUnknown"),
        (subscribe(sink, "a", filters="<u:Mine/>"), "/", "InvalidFilter"),
        (subscribe(sink, "a", filters=bad), "/", "InvalidMessageContentExpression"),
        (subscribe(sink, "a", more=policy), "/", "UnrecognizedPolicyRequest"),
        (subscribe(sink, "a", more=past), "/", "UnacceptableInitialTerminationTime"),
        (subscribe("mailto:a@b", "a"), "/", "SubscribeCreationFailed"),
        ("<n:Unsubscribe/>", gone, "ResourceUnknown"),
        (notify("a/_x002B_", "<u:x/>"), "/", "TopicNotSupported"),
    ):
        status, answer = peer.ask(body, path, soap)
        text = "" if answer is None else etree.tostring(answer).decode()
        check(f"SOAP {version}: {name}", status >= 400 and f"{name}Fault" in text, (status, text))


def of_addressing(url, schemas):
    """Who names reference parameters gets them back, and answers relate to their requests."""
    peer, consumer = Peer(url, schemas), Consumer(schemas)
    reference = "<a:ReferenceParameters><u:key>1</u:key></a:ReferenceParameters>"
    body = subscribe(consumer.url, "l:addressed", reference=reference)
    header = "<a:MessageID s:mustUnderstand='1'>urn:m</a:MessageID><a:Action>x</a:Action>"
    status, answer = peer.ask(body, header=header)
    relates = None if answer is None else answer.findtext(".//a:RelatesTo", namespaces=NAMES)
    check("WS-Addressing: the answer relates to the request", relates == "urn:m", (status, relates))
    peer.ask(notify("l:addressed", "<u:x/>"))
    _, message = consumer.next()
    key = None if message is None else message.findtext(".//u:key", namespaces=NAMES)
    check("WS-Addressing: reference parameters come back", key == "1", key)
    header = "<u:Security s:mustUnderstand='1'/>"
    status, _ = peer.ask("<n:CreatePullPoint/>", header=header)
    check("a header that must be understood and is not", status == 500, status)


def of_outage(url, schemas):
    """A consumer that fails for a while gets all, in order."""
    peer, consumer = Peer(url, schemas), Consumer(schemas)
    consumer.status = 503
    peer.ask(subscribe(consumer.url, "l:outage"))
    for number in range(3):
        peer.ask(notify("l:outage", f"<u:n>{number}</u:n>"))
    consumer.next()
    consumer.status = 202
    found = []
    until = time.monotonic() + MAX_STEP_S
    while len(found) < 3 and time.monotonic() < until:
        _, message = consumer.next(1)
        if message is not None:
            found += [number.text for number in message.iterfind(".//u:n", namespaces=NAMES)]
    check("after an outage all arrive in order", found == ["0", "1", "2"], found)


def of_zeep(url):
    """zeep with our description, and with that of the standards."""
    own = zeep.Client(f"{url}/?wsdl")
    for version in ("11", "12"):
        service = own.bind("NotificationBrokerService", f"NotificationBrokerSoap{version}")
        point = service.CreatePullPoint()
        address = point.PullPoint.Address if hasattr(point, "PullPoint") else point.Address
        address = getattr(address, "_value_1", address)
        check(f"zeep, our WSDL, SOAP 1.{version[1]}: a pull point", "/pullpoint/" in address, point)
        binding = f"{{urn:longwire:wsn}}PullPointSoap{version}"
        pull = own.create_service(binding, address)
        came = getattr(pull.GetMessages(5), "NotificationMessage", None)
        check(f"zeep, our WSDL, SOAP 1.{version[1]}: no messages", not came, came)
    standard = zeep.Client((TYPES / "wsn.wsdl").as_uri())
    service = standard.create_service("{http://cxf.apache.org/wsn/jaxws}CreatePullPointSoap", url)
    answer = service.CreatePullPoint()
    check("zeep, WSDL of the standards: a pull point", "pullpoint" in str(answer), answer)


def java(*args):
    classpath = (HERE / "target/classpath").read_text() + os.pathsep + str(HERE / "target/classes")
    return ["java", "-cp", classpath, "longwire.Wsn", *args]


def of_cxf(url, schemas):
    """CXF as client and consumer, and as a broker that publishes on demand."""
    own = f"http://127.0.0.1:{free_port()}/consumer"
    done = subprocess.run(
        java("client", url, own), capture_output=True, text=True, timeout=MAX_JAVA_S, check=False
    )
    print(done.stdout, end="")
    check("CXF client: all of it", done.returncode == 0, done.stderr[-300:])
    there = f"http://127.0.0.1:{free_port()}/wsn/broker"
    with process(*java("broker", there), ready=b"listening", seconds=MAX_JAVA_S):
        peer, consumer = Peer(url, schemas), Consumer(schemas)
        peer.ask(subscribe(consumer.url, "demand"))
        body = (
            f"<b:RegisterPublisher><b:PublisherReference><a:Address>{there}</a:Address>"
            f"</b:PublisherReference><b:Topic Dialect='{DIALECT}Simple'>demand</b:Topic>"
            "<b:Demand>true</b:Demand></b:RegisterPublisher>"
        )
        status, _ = peer.ask(body)
        check("CXF broker: registered as a publisher on demand", status == 200, status)
        remote = Peer(there.rsplit("/wsn", 1)[0], schemas)
        message = None
        for _ in range(MAX_START_S):
            remote.ask(notify("demand", "<u:x>from CXF</u:x>", "Simple"), "/wsn/broker")
            _, message = consumer.next(1)
            if message is not None:
                break
        text = "" if message is None else message.findtext(".//u:x", namespaces=NAMES)
        check("CXF broker: what it publishes arrives", text == "from CXF", text)


def certificate(name):
    """Certificate and key of this machine, which vouches for itself."""
    files = [str(WORK / f"{name}.{end}") for end in ("pem", "key")]
    # The system's own file would make it an authority's, which no server may have.
    settings = WORK / "certificate.cnf"
    settings.write_text("[req]\ndistinguished_name = name\nx509_extensions = server\n[name]\n"
                        "[server]\nbasicConstraints = critical,CA:FALSE\n"
                        "subjectAltName = IP:127.0.0.1\n")
    subprocess.run(["openssl", "req", "-x509", "-config", settings, "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", f"/CN={name}",
                    "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def of_https(schemas):
    """Consumers of https: one whose authority is known, and one of whom nobody has heard."""
    known, other = certificate("known"), certificate("other")
    port = free_port()
    config = WORK / "https.toml"
    config.write_text(f'[broker]\nwsn = "127.0.0.1:{port}"\nwsn_authorities = "{known[0]}"\n')
    with process(LONGWIRE, "broker", "--config", str(config), ready=b"wsn"):
        peer = Peer(f"http://127.0.0.1:{port}", schemas)
        consumers = [Consumer(schemas, of) for of in (other, known)]
        for consumer in consumers:
            check("https: subscribed", peer.ask(subscribe(consumer.url, "l:secret"))[0] == 200)
        peer.ask(notify("l:secret", "<u:track/>"))
        headers, message = consumers[1].next()
        check("https: a consumer gets its message", message is not None)
        host = consumers[1].url.split("/")[2]
        check("https: by its name", headers and headers["Host"] == host, headers)
        check("https: one without a known authority does not", consumers[0].came.empty())


def longwire(*args):
    """What a command did: its status, stdout, stderr."""
    done = subprocess.run(
        [LONGWIRE, *args], capture_output=True, text=True, timeout=MAX_START_S, check=False
    )
    return done.returncode, done.stdout, done.stderr


def of_our_clients(url, schemas):
    """`longwire pub` and `sub`: what they say is valid, at our broker and at CXF's."""
    consumer = Consumer(schemas)
    Peer(url, schemas).ask(subscribe(consumer.url, "ours"))
    status, _, error = longwire("pub", url.replace("http", "wsn"), "-t", "ours", "-m", "<u>1</u>")
    check("longwire pub: it ends well", status == 0, error)
    _, message = consumer.next()
    text = None if message is None else message.findtext(".//u")
    check("longwire pub: a consumer gets the element", text == "1", text)
    # What it posts and asks for, against the schemas.
    sink = Consumer(schemas)
    status, _, error = longwire("pub", sink.url.replace("http", "wsn"), "-t", "a/b", "-m", "text")
    _, message = sink.next()
    good = status == 0 and message is not None and not sink.wrong
    check("longwire pub: a Notify is valid", good, (error, sink.wrong))
    longwire("sub", sink.url.replace("http", "wsn"), "-t", "a/+", "-W", "1 s")
    _, message = sink.next()
    good = message is not None and message.find(".//n:Subscribe", NAMES) is not None
    check("longwire sub: a Subscribe is valid", good and not sink.wrong, sink.wrong)
    there = f"127.0.0.1:{free_port()}"
    with process(*java("broker", f"http://{there}/wsn/broker"), ready=b"listening", seconds=MAX_JAVA_S):
        of_cxf = f"wsn://{there}/wsn/broker"
        # A topic of one level, as this broker knows the dialect Simple alone, and has its pull points
        # elsewhere.
        args = ["sub", of_cxf, "-t", "track", "-C", "1", "-W", f"{MAX_START_S} s", "-v"]
        with subprocess.Popen([LONGWIRE, *args], stdout=subprocess.PIPE, text=True) as reader:
            until = time.monotonic() + MAX_START_S
            while reader.poll() is None and time.monotonic() < until:
                status, _, error = longwire("pub", of_cxf, "-t", "track", "-m", "<x>hello</x>")
                check_quietly("CXF broker: longwire pub", status == 0, error)
                # sleep: between two messages, since nobody says when somebody listens
                time.sleep(0.2)
            out = reader.communicate(timeout=MAX_START_S)[0]
        check("CXF broker: longwire sub", out.startswith("track <x") and "hello" in out, out)


def check_quietly(name, good, came):
    """A line only where it is wrong."""
    if not good:
        check(name, good, came)


def main():
    schemas = Schemas(TYPES)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with process(LONGWIRE, "broker", "--wsn", f"127.0.0.1:{port}", ready=b"wsn"):
        of_raw_requests(url, schemas)
        of_addressing(url, schemas)
        of_outage(url, schemas)
        of_zeep(url)
        of_cxf(url, schemas)
        of_our_clients(url, schemas)
    of_https(schemas)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
