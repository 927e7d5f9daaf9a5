"""Payload forms, and what is told of publications; see `check`.

Each line is a check, ok or FAIL with what came instead. Exit status 1 where one failed.
"""

import decimal
import json
import subprocess
import sys
from xml.etree.ElementTree import canonicalize

import cbor2
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from ours import FAILED, LONGWIRE, MAX_STEP_S, SILENCE_S, Broker, Client, check, free_port

HERE = """
[broker]
mqtt = "127.0.0.1:0"
admin = "127.0.0.1:{admin}"
node = "ship"
max_queued = 2
[[form]]
filter = "unit/#"
protocol = "bridge"
payload = "exi"
[[form]]
filter = "json/#"
client = "small"
payload = "cbor"
[[form]]
filter = "cbor/#"
client = "plain"
payload = "json"
[[bridge]]
name = "hq"
url = "mqtt://127.0.0.1:{there}"
client_id = "ship"
[[bridge.route]]
filter = "unit/#"
"""
THERE = """
[broker]
mqtt = "127.0.0.1:{there}"
admin = "127.0.0.1:{admin}"
node = "hq"
[[form]]
filter = "#"
client = "raw"
payload = "identity"
[[form]]
filter = "unit/#"
payload = "xml"
"""
TRACK = """<?xml version="1.0"?>
<t:track xmlns:t="urn:t" id='7'><!-- seen --><t:pos unit="deg">59.90 10.70</t:pos>
<t:name>M/V "Nor" &amp; co</t:name></t:track>"""


def typed(content_type, *pairs):
    said = Properties(PacketTypes.PUBLISH)
    said.ContentType = content_type
    for pair in pairs:
        said.UserProperty = pair
    return said


def kind(message):
    return getattr(message.properties, "ContentType", None)


def properties(message):
    return list(getattr(message.properties, "UserProperty", []))


def subscribed(port, name, **more):
    client = Client(port, name, **more)
    client.subscribe("#", qos=1)
    return client


def explain(admin, *args):
    done = subprocess.run(
        [LONGWIRE, "explain", "--broker", f"127.0.0.1:{admin}", *args],
        capture_output=True, text=True, timeout=MAX_STEP_S,
    )
    return done.returncode, done.stdout, done.stderr


def told(admin, *args):
    return json.loads(explain(admin, "--json", *args)[1])


def plain_values(value):
    """Values of CBOR as JSON has them: decimal fractions are exact, and what no number of CBOR says
    is the text of JSON under tag 262."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, cbor2.CBORTag) and value.tag == 262:
        return json.loads(value.value)
    if isinstance(value, dict):
        return {name: plain_values(one) for name, one in value.items()}
    return [plain_values(one) for one in value] if isinstance(value, list) else value


def receiver(publication, client):
    found = [one for one in publication["receivers"] if one["client"] == client]
    return found[0] if found else {}


def of_json(port):
    """JSON as CBOR for one, and CBOR of others as JSON."""
    small, plain = subscribed(port, "small"), subscribed(port, "plain")
    publisher = Client(port, "publisher")
    values = {"lat": 59.9, "id": 7, "far": 1e21, "list": [True, None, "é"], "deep": {"x": -1.5}}
    text = json.dumps(values, indent=1)
    publisher.publish("json/1", text, 1, properties=typed("application/json"))
    got, as_it_was = small.next(), plain.next()
    check("CBOR instead of JSON says the same", plain_values(cbor2.loads(got.payload)) == values,
          got.payload)
    check("and is shorter", len(got.payload) < len(text) // 2, len(got.payload))
    check("its type is CBOR", kind(got) == "application/cbor", kind(got))
    check("others get what came", as_it_was.payload.decode() == text, as_it_was.payload)
    geo = typed("application/geo+json", ("a", "b"))
    publisher.publish("json/2", "[1.50]", 1, properties=geo)
    got = small.next()
    wanted = [("a", "b"), ("lw-media-type", "application/geo+json")]
    check("the publisher's type goes along", properties(got) == wanted, properties(got))
    plain.next()
    for name, value in [
        ("numbers", {"f": 59.9, "i": -(2**70), "z": 0, "u": 2**63}),
        ("what is nested", [{"a": [[], {}]}, "x" * 300]),
    ]:
        coded = cbor2.dumps(value)
        publisher.publish("cbor/1", coded, 1, properties=typed("application/cbor"))
        got, raw = plain.next(), small.next()
        is_same = json.loads(got.payload) == value
        check(f"JSON instead of CBOR of others: {name}", is_same, got.payload)
        check(f"{name}: its type is JSON", kind(got) == "application/json", kind(got))
        check(f"{name}: who has no rule gets the CBOR", raw.payload == coded, raw.payload)
    date, nan = cbor2.CBORTag(1, 5), float("nan")
    for name, value in [("bytes", b"x"), ("a date", date), ("not a number", nan)]:
        coded = cbor2.dumps({"v": value})
        publisher.publish("cbor/1", coded, 1, properties=typed("application/cbor"))
        got = plain.next()
        small.next()
        check(f"CBOR with {name} leaves as it came",
              (got.payload, kind(got)) == (coded, "application/cbor"), got.payload)
    for client in (small, plain, publisher):
        client.stop()


def of_bridge(here, there, admins):
    """XML crosses as EXI and is XML again, and both brokers tell of it."""
    publisher = Client(here, "sensor")
    raw, hq = subscribed(there, "raw"), subscribed(there, "dashboard")
    for _ in range(MAX_STEP_S):
        publisher.publish("unit/ready", "x", 1)
        if raw.next(1):
            break
    while raw.next(SILENCE_S):
        pass
    while hq.next(SILENCE_S):
        pass
    publisher.publish("unit/7/track", TRACK, 1, properties=typed("text/xml"))
    crossed, shown = raw.next(), hq.next()
    check("XML crosses the bridge as EXI", kind(crossed) == "application/exi", kind(crossed))
    check("which is shorter", len(crossed.payload) < len(TRACK) * 3 // 4, len(crossed.payload))
    same = canonicalize(TRACK, with_comments=True) == canonicalize(
        shown.payload.decode(), with_comments=True
    )
    check("behind it is XML that says the same", same, shown.payload)
    check("with the type that it had", kind(shown) == "text/xml", kind(shown))
    check("and nothing besides", properties(shown) == [], properties(shown))
    publisher.publish("unit/7/photo", b"\x89PNG", 1, properties=typed("image/png"))
    crossed = raw.next()
    check("a picture crosses as it is",
          (crossed.payload, kind(crossed)) == (b"\x89PNG", "image/png"), crossed.payload)
    ship, hq_admin = admins
    first = told(ship, "--topic", "unit/+/track")[-1]
    sent = receiver(first, "bridge:hq").get("sent", {})
    check("the first broker tells of EXI over the bridge",
          (sent.get("form"), sent.get("hops")) == ("exi", ["ship"]), first)
    photo = receiver(told(ship, "--topic", "unit/7/photo")[0], "bridge:hq")["sent"]
    check("and why a picture is not", "image/png is none" in photo.get("unchanged", ""), photo)
    second = told(hq_admin, "--topic", "unit/+/track")[-1]
    hop = second.get("hops", [""])[0]
    node, number = hop.split(":")[0], int(hop.rsplit(".")[-1] or "0", 16)
    check("the second where it came in", (node, number) == ("ship", first["id"]), hop)
    again = told(hq_admin, hop)
    check("and finds it by that", [one["id"] for one in again] == [second["id"]], again)
    told_bytes = receiver(second, "mqtt:dashboard").get("sent", {}).get("payload_bytes")
    check("with the bytes that a client got", told_bytes == len(shown.payload), told_bytes)
    status, text, _ = explain(ship, str(first["id"]))
    check("in words", status == 0 and "bridge:hq" in text and "as exi" in text, text)
    for client in (publisher, raw, hq):
        client.stop()


def of_drops(port, admin):
    """What did not arrive, and why."""
    away = subscribed(port, "away", expiry=600, clean=False)
    away.stop()
    publisher = Client(port, "publisher")
    for number in range(4):
        publisher.publish(f"drops/{number}", "x", 1)
    publisher.publish("drops/0/lost", "x", 0)
    all_of = told(admin, "--topic", "drops/#")
    states = [receiver(one, "mqtt:away") for one in all_of]
    whys = [state.get("ended", {}).get("why") for state in states]
    wanted = ["queue-full", "queue-full", None, None, "away"]
    check("each drop has its reason", whys == wanted, whys)
    detail = states[0]["ended"]["detail"]
    check("and its bound", detail.startswith("max_queued = 2"), detail)
    check("what waits is said to wait", states[2]["progress"] == "waiting", states[2])
    publisher.publish("nobody", "x", 0)
    status, text, _ = explain(admin, "--topic", "drops/3", "--last", "1")
    check("one by its topic, in words", status == 0 and text.count("publication ") == 1, text)
    status, _, errors = explain(admin, "--topic", "never/#")
    check("none is said to be none", status == 1 and "remembered" in errors, (status, errors))
    status, _, errors = explain(admin, "--topic", "a/#/b")
    check("a filter that is none is refused", status == 2 and "a/#/b" in errors, (status, errors))
    status, _, errors = explain(free_port(), "1")
    check("no broker is said to be none", status == 2 and "admin" in errors, (status, errors))
    publisher.stop()


def main():
    there, ship, hq = free_port(), free_port(), free_port()
    with (
        Broker(THERE.format(there=there, admin=hq), name="there"),
        Broker(HERE.format(there=there, admin=ship)) as broker,
    ):
        here = broker.ports["mqtt"]
        of_json(here)
        of_bridge(here, there, (ship, hq))
        of_drops(here, ship)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
