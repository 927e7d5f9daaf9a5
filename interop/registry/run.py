"""The registry with peers of others, and every message against its schema; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import asyncio
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

import aiocoap
import zeep
from lxml import etree

LONGWIRE, WORK = os.environ["LONGWIRE"], pathlib.Path(os.environ["WORK"])
HERE = pathlib.Path(__file__).parent
# Of one step, and of a program until it is ready.
MAX_STEP_S, MAX_START_S, MAX_JAVA_S = 60, 30, 300
FAILED = []
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
V3 = "urn:uddi-org:api_v3"
SCHEMA = etree.XMLSchema(etree.parse(str(HERE / "target/schemas/local.xsd")))


def check(name, good, came=""):
    """Prints one line."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.400}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def process(*args, ready, seconds):
    """A process that has said that it is ready, and ends with the block."""
    with open(WORK / "log", "ab") as log:
        child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=log, text=True)
    timer = threading.Timer(seconds, child.kill)
    timer.start()
    try:
        for line in child.stdout:
            if ready in line:
                break
        else:
            sys.exit(f"{args[0]} did not start; see {WORK / 'log'}")
        timer.cancel()
        yield child
    finally:
        timer.cancel()
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        child.kill()
        child.wait()


class Uddi:
    """A registry of UDDI v3: `host:port` and the path before inquiry, publish and security."""

    def __init__(self, name, port, path):
        self.name, self.port, self.path = name, port, path
        self.sent, self.came, self.wrong = 0, 0, []
        self.keys = {}

    def post(self, api, envelope):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=MAX_STEP_S)
        try:
            fields = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'}
            connection.request("POST", f"{self.path}{api}", envelope.encode(), fields)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def judge(self, element, what):
        if not SCHEMA.validate(element):
            self.wrong.append((what, str(SCHEMA.error_log.last_error)))

    def call(self, api, message, is_valid=True):
        """What came: `ok`, the number of a disposition report, or the code of a plain fault."""
        for name, value in self.keys.items():
            message = message.replace(f"@{name}@", value)
        end = next(at for at, one in enumerate(message) if one in " >/")
        message = f'{message[:end]} xmlns="{V3}"{message[end:]}'
        if is_valid:
            self.judge(etree.fromstring(message), message[:60])
        envelope = f'<s:Envelope xmlns:s="{SOAP}"><s:Body>{message}</s:Body></s:Envelope>'
        status, answer = self.post(api, envelope)
        self.sent, self.came = self.sent + len(envelope), self.came + len(answer)
        self.answer = root = etree.fromstring(answer)
        body = root.find(f"{{{SOAP}}}Body")
        for child in body:
            if child.tag == f"{{{SOAP}}}Fault":
                report = child.find(f"detail/{{{V3}}}dispositionReport")
                if report is None:
                    code = child.findtext("faultcode")
                    return f"{status} {code.split(':')[-1]}"
                self.judge(report, "a report")
                return report.find(f"{{{V3}}}result").get("errno")
            self.judge(child, f"the answer to {message[:40]}")
        return "ok" if status in (200, 202) else f"{status}"

    def take(self, element, attribute):
        found = self.answer.find(f".//{{{V3}}}{element}")
        return found.get(attribute) if found is not None else None

    def count(self):
        return len(self.answer.findall(f".//{{{V3}}}serviceInfo"))


def reference(tmodel, value, name=""):
    named = f' keyName="{name}"' if name else ""
    return f'<keyedReference tModelKey="{tmodel}"{named} keyValue="{value}"/>'


def qualified(*names):
    return "<findQualifiers>" + "".join(f"<findQualifier>{n}</findQualifier>" for n in names) + "</findQualifiers>"


KIND, QOS = "uddi:longwire.example:kind", "uddi:longwire.example:qos-latency"
AUTH = "<authInfo>@token@</authInfo>"
GENERATOR = reference("uddi:uddi.org:categorization:types", "keyGenerator")
LONG = "x" * 255


def service(name, rungs, determinism=""):
    bag = reference(KIND, "consumer", "some name") + "".join(reference(QOS, rung) for rung in rungs)
    return (
        f'<businessService businessKey="@business@"><name>{name}</name><bindingTemplates>'
        f'<bindingTemplate><accessPoint useType="endPoint">http://192.0.2.1/{name}</accessPoint>'
        f'<tModelInstanceDetails><tModelInstanceInfo tModelKey="{QOS}"/></tModelInstanceDetails>'
        f"</bindingTemplate></bindingTemplates><categoryBag>{bag}</categoryBag></businessService>"
    )


def find(*parts, attributes=""):
    return f"<find_service{attributes}>{''.join(parts)}</find_service>"


def bag(*references):
    return f"<categoryBag>{''.join(references)}</categoryBag>"


def tmodel(key, name="t", categories=""):
    categories = f"<categoryBag>{categories}</categoryBag>" if categories else ""
    return f'<save_tModel>{AUTH}<tModel tModelKey="{key}"><name>{name}</name>{categories}</tModel></save_tModel>'


# What: the API set, the message, what is expected of both; where jUDDI has something else, that; and
# how many services are found. Messages that the schema refuses are marked.
TABLE = [
    ("a token", "security", '<get_authToken userID="alice" cred="alice-password"/>', "ok", None, None),
    ("a business", "publish",
     f"<save_business>{AUTH}<businessEntity><name>b</name></businessEntity></save_business>", "ok", None, None),
    ("a key generator of another's reserved domain", "publish",
     tmodel("uddi:uddi.org:keygenerator", categories=GENERATOR), "10140", "*", None),
    ("a key generator", "publish",
     tmodel("uddi:unit.example:keygenerator", categories=GENERATOR), "ok", None, None),
    ("a key of its partition", "publish", tmodel("uddi:unit.example:colour"), "ok", None, None),
    ("a key two segments deep", "publish", tmodel("uddi:unit.example:qos:x"), "40100", None, None),
    ("a key of nobody's partition", "publish", tmodel("uddi:nobody.example:x"), "40100", None, None),
    ("no key of UDDI", "publish", tmodel("unit:x"), "10210", "*", None),
    ("a key generator that does not say so", "publish", tmodel("uddi:other.example:keygenerator"),
     "10210", "*", None),
    ("services", "publish",
     f"<save_service>{AUTH}"
     + service("fast", ["le-300", "le-1000", "le-3000", "hard-le-3000"])
     + service("slow", ["le-3000", "le-10000"])
     + service("slower", ["le-100000"])
     + "</save_service>", "ok", None, None),
    ("by rung", "inquiry", find(bag(reference(KIND, "consumer"), reference(QOS, "le-3000"))), "ok", None, 2),
    ("by rung and grade", "inquiry",
     find(bag(reference(KIND, "consumer"), reference(QOS, "hard-le-3000"))), "ok", None, 1),
    ("all of two values", "inquiry",
     find(bag(reference(QOS, "le-300"), reference(QOS, "le-10000"))), "ok", None, 0),
    ("any of two values", "inquiry",
     find(qualified("orAllKeys"), bag(reference(QOS, "le-300"), reference(QOS, "le-10000"))), "ok", None, 2),
    ("like keys", "inquiry",
     find(qualified("orLikeKeys"),
          bag(reference(QOS, "le-300"), reference(QOS, "le-10000"), reference(KIND, "consumer"))), "ok", None, 2),
    ("a name of a key does not count", "inquiry",
     find(bag(reference(QOS, "le-300", "another name"))), "ok", None, 1),
    ("a value with a wildcard", "inquiry",
     find(qualified("approximateMatch"), bag(reference(QOS, "le-1%"))), "ok", None, 3),
    ("a name with a wildcard", "inquiry",
     find(qualified("approximateMatch"), "<name>slow%</name>"), "ok", None, 2),
    ("a name without", "inquiry", find("<name>slow%</name>"), "ok", None, 0),
    ("a name in other letters", "inquiry",
     find(qualified("caseInsensitiveMatch"), "<name>SLOW</name>"), "ok", None, 1),
    ("two rows of more", "inquiry",
     find(bag(reference(KIND, "consumer")), attributes=' maxRows="2"'), "ok", None, 2),
    ("by tModel", "inquiry",
     find(f"<tModelBag><tModelKey>{QOS}</tModelKey></tModelBag>"), "ok", None, 3),
    ("businesses by name", "inquiry", "<find_business><name>b</name></find_business>", "ok", None, None),
    ("bindings of a service", "inquiry",
     f'<find_binding serviceKey="@service@"><tModelBag><tModelKey>{QOS}</tModelKey></tModelBag></find_binding>',
     "ok", None, None),
    ("tModels by name", "inquiry", "<find_tModel><name>t</name></find_tModel>", "ok", None, None),
    ("a service", "inquiry",
     "<get_serviceDetail><serviceKey>@service@</serviceKey></get_serviceDetail>", "ok", None, None),
    ("a business's detail", "inquiry",
     "<get_businessDetail><businessKey>@business@</businessKey></get_businessDetail>", "ok", None, None),
    ("a binding", "inquiry",
     "<get_bindingDetail><bindingKey>@binding@</bindingKey></get_bindingDetail>", "ok", None, None),
    ("a tModel", "inquiry",
     "<get_tModelDetail><tModelKey>uddi:unit.example:colour</tModelKey></get_tModelDetail>", "ok", None, None),
    ("a canonical tModel", "inquiry",
     "<get_tModelDetail><tModelKey>uddi:uddi.org:categorization:types</tModelKey></get_tModelDetail>",
     "ok", None, None),
    ("operational information", "inquiry",
     "<get_operationalInfo><entityKey>@service@</entityKey></get_operationalInfo>", "ok", None, None),
    ("an unknown key", "inquiry",
     "<get_serviceDetail><serviceKey>uddi:unit.example:nothing</serviceKey></get_serviceDetail>",
     "10210", None, None),
    ("an unknown qualifier", "inquiry", find(qualified("bogus"), "<name>a</name>"), "10050", None, None),
    ("qualifiers that exclude each other", "inquiry",
     find(qualified("exactMatch", "approximateMatch"), "<name>a</name>"), "40500", None, None),
    ("no token", "publish",
     "<save_service><businessService><name>x</name></businessService></save_service>", "10120", None, None),
    ("a token of nobody's", "publish",
     "<delete_service><authInfo>authtoken:x</authInfo><serviceKey>@service@</serviceKey></delete_service>",
     "10120", None, None),
    ("a name of the longest", "publish",
     f"<save_business>{AUTH}<businessEntity><name>{LONG}</name></businessEntity></save_business>",
     "ok", None, None),
    ("! a name too long", "publish",
     f"<save_business>{AUTH}<businessEntity><name>{LONG}x</name></businessEntity></save_business>",
     "10020", "*", None),
    ("! a description too long", "publish",
     f"<save_business>{AUTH}<businessEntity><name>a</name><description>{LONG}x</description>"
     "</businessEntity></save_business>", "20210", "*", None),
    ("! a useType too long", "publish",
     f'<save_business>{AUTH}<businessEntity><discoveryURLs><discoveryURL useType="{LONG}x">http://x'
     "</discoveryURL></discoveryURLs><name>a</name></businessEntity></save_business>", "20210", "*", None),
    ("! a language that is none", "publish",
     f'<save_business>{AUTH}<businessEntity><name xml:lang="{"x" * 30}">a</name></businessEntity></save_business>',
     "20210", "*", None),
    ("! an element of nobody's", "inquiry", "<find_service><bogus/></find_service>", "500 Client", "*", None),
    ("! a message of nobody's", "inquiry", "<bogus/>", "500 Client", "*", None),
    ("a service deleted", "publish",
     f"<delete_service>{AUTH}<serviceKey>@service@</serviceKey></delete_service>", "ok", None, None),
    ("and once more", "publish",
     f"<delete_service>{AUTH}<serviceKey>@service@</serviceKey></delete_service>", "10210", None, None),
    ("a tModel hidden", "publish",
     f"<delete_tModel>{AUTH}<tModelKey>uddi:unit.example:colour</tModelKey></delete_tModel>", "ok", None, None),
    ("is still read", "inquiry",
     "<get_tModelDetail><tModelKey>uddi:unit.example:colour</tModelKey></get_tModelDetail>", "ok", None, None),
    ("the token given back", "security", f"<discard_authToken>{AUTH}</discard_authToken>", "ok", None, None),
    ("and used once more", "publish",
     f"<delete_business>{AUTH}<businessKey>@business@</businessKey></delete_business>", "10120", "10110", None),
]


def table(uddi, is_ours):
    for name, api, message, expected, other, count in TABLE:
        expected = expected if is_ours or other is None else other
        came = uddi.call(api, message, is_valid=not name.startswith("!"))
        if name == "a token":
            uddi.keys["token"] = uddi.answer.findtext(f".//{{{V3}}}authInfo")
        elif name == "a business":
            uddi.keys["business"] = uddi.take("businessEntity", "businessKey")
        elif name == "services":
            uddi.keys["service"] = uddi.take("businessService", "serviceKey")
            uddi.keys["binding"] = uddi.take("bindingTemplate", "bindingKey")
        if count is not None and came == "ok":
            came, expected = f"ok, {uddi.count()} services", f"{expected}, {count} services"
        if expected == "*":
            print(f"note  {uddi.name}: {name}: {came}", flush=True)
        else:
            check(f"{uddi.name}: {name}: {expected}", came == expected, came)
    check(f"{uddi.name}: every message fits the schema", not uddi.wrong, uddi.wrong)


def ours(*args):
    return subprocess.run([LONGWIRE, *args], capture_output=True, text=True, timeout=MAX_STEP_S)


def finds(name, *args):
    """Our client: the service that is both fast and sure, first and alone."""
    run = ours("find", "--api", "uddi", *args, "--kind", "consumer", "--max-latency", "3 ms", "--json")
    names = [one["name"] for one in json.loads(run.stdout or "[]")]
    check(f"{name}: our client finds by rung", sorted(names) == ["fast", "slow"], (names, run.stderr))
    run = ours("find", "--api", "uddi", *args, "--kind", "consumer", "--max-latency", "3 ms",
               "--determinism", "hard", "--json")
    names = [one["name"] for one in json.loads(run.stdout or "[]")]
    check(f"{name}: our client finds by grade", names == ["fast"], (names, run.stderr))


def populate(uddi):
    """Services that stay, for clients."""
    uddi.call("security", '<get_authToken userID="alice" cred="alice-password"/>')
    uddi.keys["token"] = uddi.answer.findtext(f".//{{{V3}}}authInfo")
    for api, message in [("publish", f"<delete_business>{AUTH}<businessKey>@business@</businessKey></delete_business>"),
                         ("publish", TABLE[1][2])]:
        uddi.call(api, message)
    uddi.keys["business"] = uddi.take("businessEntity", "businessKey")
    uddi.call("publish", next(row[2] for row in TABLE if row[0] == "services"))


def java(port):
    classpath = f"{HERE}/target/classes:{(HERE / 'target/classpath').read_text().strip()}"
    return "java", "-cp", classpath, "Peer"


def library(port):
    """jUDDI's client library against ours."""
    base = f"http://127.0.0.1:{port}/uddi/"
    run = subprocess.run([*java(port), "call", base, "alice", "alice-password"], capture_output=True, text=True,
                         timeout=MAX_JAVA_S)
    said = dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)
    wanted = {"token": "true", "saved": "1", "found": "1", "address": "http://192.0.2.1/java", "gone": "10210",
              "discarded": "E_authTokenRequired"}
    for name, value in wanted.items():
        check(f"jUDDI's library at ours: {name} is {value}", said.get(name) == value,
              said.get(name) or run.stderr[-400:])


def described(port):
    """zeep with our WSDL."""
    base = f"http://127.0.0.1:{port}/uddi/"
    inquiry = zeep.Client(base + "inquiry?wsdl")
    found = inquiry.service.find_service(categoryBag={"keyedReference": [{"tModelKey": KIND, "keyValue": "consumer"}],
                                                      "keyedReferenceGroup": []}, findQualifiers=None, name=[])
    check("zeep finds by our WSDL", len(found.serviceInfos.serviceInfo) == 3, found)
    security = zeep.Client(base + "security?wsdl")
    token = security.service.get_authToken(userID="alice", cred="alice-password")
    check("zeep gets a token", len(token) > 20, token)
    try:
        security.service.get_authToken(userID="alice", cred="x")
        check("zeep has a fault for another password", False, "none")
    except zeep.exceptions.Fault as fault:
        check("zeep has a fault for another password", fault.message == "E_unknownUser", fault.message)


async def directory(port):
    """aiocoap's client: registers, looks up, observes, updates, leaves."""
    context = await aiocoap.Context.create_client_context()
    base = f"coap://127.0.0.1:{port}"

    async def ask(code, path, payload=b"", **options):
        message = aiocoap.Message(code=code, uri=base + path, payload=payload)
        for name, value in options.items():
            setattr(message.opt, name, value)
        return await asyncio.wait_for(context.request(message).response, MAX_STEP_S)

    core = await ask(aiocoap.GET, "/.well-known/core?rt=core.rd")
    check("aiocoap finds the directory", core.payload == b'</rd>;rt="core.rd";ct=40', core.payload)
    watch = context.request(aiocoap.Message(code=aiocoap.GET, uri=base + "/rd-lookup/res?rt=light", observe=0))
    first = await asyncio.wait_for(watch.response, MAX_STEP_S)
    check("aiocoap observes a lookup", first.opt.observe is not None and first.payload == b"", first)
    told = aiter(watch.observation)
    links = b'</light>;rt=light;if=sensor;lat-max-us=300'
    made = await ask(aiocoap.POST, "/rd?ep=node1&lt=60", links, content_format=40)
    check("aiocoap registers: 2.01", made.code == aiocoap.CREATED, made)
    place = "/" + "/".join(made.opt.location_path)
    came = await asyncio.wait_for(anext(told), MAX_STEP_S)
    check("the observer is told of it", b"/light>" in came.payload, came.payload)
    for query in ["rt=light", "if=sensor", "lat-max-us=300", "ep=node1"]:
        found = await ask(aiocoap.GET, f"/rd-lookup/res?{query}")
        check(f"aiocoap looks up by {query}", b"/light>" in found.payload, found.payload)
    print(f"note  bytes of content for one service: {len(found.payload)} by the directory", flush=True)
    found = await ask(aiocoap.GET, "/rd-lookup/ep?ep=node1")
    check("aiocoap looks up the endpoint", found.payload.startswith(f"<{place}>;ep=\"node1\"".encode()), found.payload)
    again = await ask(aiocoap.POST, place + "?lt=120")
    check("aiocoap refreshes: 2.04", again.code == aiocoap.CHANGED, again)
    bad = await ask(aiocoap.POST, "/rd?ep=node2", b"<oops", content_format=40)
    check("links that are none: 4.00", bad.code == aiocoap.BAD_REQUEST, bad)
    gone = await ask(aiocoap.DELETE, place)
    check("aiocoap leaves: 2.02", gone.code == aiocoap.DELETED, gone)
    came = await asyncio.wait_for(anext(told), MAX_STEP_S)
    check("the observer is told of that", came.payload == b"", came.payload)
    await context.shutdown()


def main():
    shutil.rmtree(WORK / "store", ignore_errors=True)
    users, config = WORK / "users", WORK / "registry.toml"
    users.unlink(missing_ok=True)
    subprocess.run([LONGWIRE, "broker", "passwd", str(users), "alice"], input="alice-password\n", text=True,
                   check=True, capture_output=True)
    port, coap = free_port(), free_port(socket.SOCK_DGRAM)
    config.write_text(
        f'listen = "127.0.0.1:{port}"\ncoap = "127.0.0.1:{coap}"\nstore = "{WORK}/store"\n'
        f'users = "{users}"\ncoap_publisher = "alice"\n'
    )
    with process(LONGWIRE, "serve", "registry", "--config", str(config), ready=str(coap), seconds=MAX_START_S):
        mine = Uddi("ours", port, "/uddi/")
        table(mine, True)
        populate(mine)
        finds("ours", "--registry", f"http://127.0.0.1:{port}/uddi/inquiry")
        asyncio.run(directory(coap))
        described(port)
        mine.sent = mine.came = 0
        mine.call("inquiry", find(bag(reference(KIND, "consumer"), reference(QOS, "hard-le-3000"))))
        print(f"note  bytes of one lookup by UDDI: {mine.sent} + {mine.came} B of envelopes", flush=True)
        library(port)
    other = free_port()
    with process(*java(other), "serve", str(other), ready="ready", seconds=MAX_JAVA_S):
        peer = Uddi("jUDDI", other, "/")
        table(peer, False)
        populate(peer)
        finds("jUDDI", "--registry", f"http://127.0.0.1:{other}/inquiry")
    print(f"{len(FAILED)} failed" if FAILED else "all as expected")
    return 1 if FAILED else 0


sys.exit(main())
