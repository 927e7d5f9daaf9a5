"""Bridges between our broker and those of others; see `check`.

Each line is a check, ok or FAIL with what came instead. Exit status 1 where one failed.
"""

import collections
import shutil
import subprocess
import sys
import threading

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from ours import (
    FAILED, LONGWIRE, MAX_STEP_S, SILENCE_S, WORK, Broker, Client, Headquarters, check, free_port,
)
from peer import Mosquitto, Pair, Relay

# Of a round with failures, and how often the connection is cut in it.
MESSAGES, CUTS, CUT_EVERY_S = 1000, 20, 0.1
# Until a connection is tried again, at most.
MAX_AGAIN_S = 60
ROUTES = """
[[bridge.route]]
filter = "+/track"
comes = false
local = "unit/"
remote = "nato/nor/"
[[bridge.route]]
filter = "orders/#"
goes = false
remote = "hq/"
[[bridge.route]]
filter = "both/#"
"""


def bridge(port, version="5", routes=ROUTES, more="", scheme="mqtt", name="there"):
    """`[[bridge]]` to a port of this machine."""
    return f"""
[[bridge]]
name = "{name}"
url = "{scheme}://127.0.0.1:{port}"
version = "{version}"
client_id = "longwire-{name}"
{more}
{routes}
"""


def ours(text, store=None):
    head = '[broker]\nmqtt = "127.0.0.1:0"\n'
    return head + (f'store = "{store}"\n' if store else "") + text


def fresh(name):
    """A folder for a store, empty."""
    shutil.rmtree(WORK / name, ignore_errors=True)
    return WORK / name


def seen(message):
    return message and (message.topic, message.payload, message.qos, message.retain)


def await_bridge(here, there):
    """Waits until the bridge brings what is published there."""
    for _ in range(MAX_AGAIN_S):
        there.publish("both/ready", "x", 1)
        if here.next(1):
            break
    else:
        sys.exit("there is no bridge")
    while here.next(SILENCE_S):
        pass


def of_routes(version):
    """What crosses, under which topic, and how."""
    with Mosquitto() as mosquitto, Broker(ours(bridge(mosquitto.port, version))) as broker:
        here, there = Headquarters(broker.ports["mqtt"]), Headquarters(mosquitto.port)
        await_bridge(here, there)
        for qos in range(3):
            here.publish("unit/7/track", f"goes {qos}", qos)
            came = seen(there.next())
            wanted = ("nato/nor/7/track", f"goes {qos}".encode(), qos, False)
            check(f"{version}: QoS {qos} goes, under the other topic", came == wanted, came)
            there.publish("hq/orders/1", f"comes {qos}", qos)
            came = seen(here.next())
            wanted = ("orders/1", f"comes {qos}".encode(), qos, False)
            check(f"{version}: QoS {qos} comes, under the other topic", came == wanted, came)
            here.publish("both/1", "a", qos)
            came = seen(there.next())
            check(f"{version}: QoS {qos} goes both ways", came == ("both/1", b"a", qos, False), came)
            there.publish("both/1", "b", qos)
            came = seen(here.next())
            check(f"{version}: QoS {qos} both ways", came == ("both/1", b"b", qos, False), came)
        for topic in ("unit/7/else", "orders/1", "inside"):
            here.publish(topic, "x", 1)
        for topic in ("nato/nor/7/track", "elsewhere"):
            there.publish(topic, "x", 1)
        came = here.next(SILENCE_S), there.next(SILENCE_S)
        check(f"{version}: nothing else crosses, and nothing comes back", came == (None, None), came)
        here.publish("both/kept", "state", 0, retain=True)
        came = seen(there.next())
        check(f"{version}: what is retained crosses so", came[:3] == ("both/kept", b"state", 0), came)
        late = Headquarters(mosquitto.port)
        came = seen(late.next())
        check(f"{version}: and is kept there", came == ("both/kept", b"state", 0, True), came)
        here.publish("both/kept", "", 0, retain=True)
        there.next()
        late = Headquarters(mosquitto.port)
        came = late.next(SILENCE_S)
        check(f"{version}: its deletion too", came is None, seen(came))


def of_properties():
    """What MQTT 5 says beside the payload."""
    with Mosquitto() as mosquitto, Broker(ours(bridge(mosquitto.port))) as broker:
        here, there = Headquarters(broker.ports["mqtt"]), Headquarters(mosquitto.port)
        await_bridge(here, there)
        said = Properties(PacketTypes.PUBLISH)
        said.ContentType, said.ResponseTopic = "text/plain", "answer/here"
        said.CorrelationData, said.PayloadFormatIndicator = b"\0\1", 1
        said.UserProperty = [("k", "2"), ("k", "1")]
        said.MessageExpiryInterval = 60
        for source, target, word in ((here, there, "goes"), (there, here, "comes")):
            source.publish("both/1", "x", 1, properties=said)
            came = target.next().properties
            for name in ("ContentType", "ResponseTopic", "CorrelationData", "PayloadFormatIndicator"):
                found = getattr(came, name, None)
                check(f"{name} {word}", found == getattr(said, name), found)
            pairs = [pair for pair in came.UserProperty if not pair[0].startswith("lw-")]
            check(f"user properties: {word}, in order", pairs == said.UserProperty, pairs)
            check(f"the expiry {word}", 55 <= came.MessageExpiryInterval <= 60, came.json())


def of_absence():
    """Mosquitto is away for a time."""
    store = fresh("mosquitto-store")
    store.mkdir()
    # Where its window is full, what comes overtakes what it has queued.
    window = "max_inflight_messages 0\n"
    kept = f"persistence true\npersistence_location {store}/\n{window}"
    with Mosquitto(kept) as mosquitto:
        relay = Relay(mosquitto.port)
        with Broker(ours(bridge(relay.port))) as broker:
            queued(mosquitto, relay, broker)


def queued(mosquitto, relay, broker):
    """What waits for Mosquitto, and comes to a subscriber there."""
    # It keeps no session of a client that has ever begun anew.
    late = Client(mosquitto.port, "late", expiry=600, clean=False)
    here = Headquarters(broker.ports["mqtt"])
    late.subscribe("#", 2)
    there = Client(mosquitto.port)
    await_bridge(here, there)
    late.stop()
    relay.is_closed = True
    mosquitto.stop()
    there.stop()
    for number in range(MESSAGES):
        info = here.client.publish("unit/7/track", str(number), 1 + number % 2)
        here.client.publish("both/state", str(number), 0, retain=True)
    info.wait_for_publish(MAX_STEP_S)
    mosquitto.start()
    late = Client(mosquitto.port, "late", expiry=600, clean=False)
    check("Mosquitto has kept its subscriber", late.flags.session_present)
    # While its queue is emptied, what comes overtakes.
    relay.is_closed = False
    tracks, states = [[], []], []
    while message := late.next(MAX_AGAIN_S if sum(map(len, tracks)) < MESSAGES else SILENCE_S):
        if message.topic == "nato/nor/7/track":
            tracks[message.qos - 1].append(int(message.payload))
        elif message.topic == "both/state":
            states.append(int(message.payload))
    # Those of one QoS may overtake those of the other (MQTT 5 §4.6).
    wanted = [list(range(0, MESSAGES, 2)), list(range(1, MESSAGES, 2))]
    check(f"{MESSAGES} messages wait, and come in order", tracks == wanted,
          [line[90:110] for line in tracks])
    check("of the state only the newest", states == [MESSAGES - 1], states[:5])


def judged(name, qos, sent, came):
    """All that was acknowledged has come: once, or at least once, and in order."""
    count = collections.Counter(came)
    missing = [number for number in sent if not count[number]]
    check(f"{name}: none of {len(sent)} is lost", not missing, missing[:5])
    twice = [number for number, times in count.items() if times > 1]
    if qos == 2:
        check(f"{name}: none comes twice", not twice, twice[:5])
    first = list(dict.fromkeys(came))
    at = next((at for at, pair in enumerate(zip(first, first[1:])) if pair[0] > pair[1]), None)
    check(f"{name}: in order", at is None, at and (at, first[max(0, at - 3):at + 10]))


def all_of(client, last):
    """The numbers that come, until the last one has and it is quiet."""
    came = []
    while message := client.next(SILENCE_S if last in came[-2000:] else MAX_AGAIN_S):
        came.append(int(message.payload))
    return came


def of_cuts(qos):
    """The connection of the bridge is cut again and again, while messages go both ways."""
    with Mosquitto() as mosquitto:
        relay = Relay(mosquitto.port)
        with Broker(ours(bridge(relay.port))) as broker:
            here, there = Headquarters(broker.ports["mqtt"]), Headquarters(mosquitto.port)
            await_bridge(here, there)
            pause, cut = threading.Event(), threading.Event()
            publishers = [
                threading.Thread(target=publish, args=(here, "unit/7/track", qos, pause)),
                threading.Thread(target=publish, args=(there, "hq/orders/1", qos, pause)),
            ]
            for publisher in publishers:
                publisher.start()
            while relay.cuts < CUTS and any(publisher.is_alive() for publisher in publishers):
                cut.wait(CUT_EVERY_S)
                relay.cut()
            for publisher in publishers:
                publisher.join()
            numbers = range(MESSAGES)
            judged(f"QoS {qos} out, {relay.cuts} cuts", qos, numbers, all_of(there, MESSAGES - 1))
            judged(f"QoS {qos} in, {relay.cuts} cuts", qos, numbers, all_of(here, MESSAGES - 1))
            check("it was cut", relay.cuts > 3, relay.cuts)


def publish(client, topic, qos, pause):
    for number in range(MESSAGES):
        client.client.publish(topic, str(number), qos)
        pause.wait(0.005)


def of_death(qos):
    """Our broker is killed while messages go, and started again on its store."""
    store = fresh("store")
    with Mosquitto() as mosquitto:
        there = Headquarters(mosquitto.port)
        config = ours(bridge(mosquitto.port), store)
        with Broker(config) as broker:
            here = Headquarters(broker.ports["mqtt"])
            await_bridge(here, there)
            infos = [here.client.publish("unit/7/track", str(n), qos) for n in range(MESSAGES)]
            infos[MESSAGES // 2].wait_for_publish(MAX_STEP_S)
            broker.kill()
            here.client.loop_stop()
        acked = [number for number, info in enumerate(infos) if info.is_published()]
        with Broker(config) as broker:
            here = Client(broker.ports["mqtt"])
            here.publish("unit/7/track", str(MESSAGES), qos)
            judged(f"kill -9, QoS {qos}", qos, [*acked, MESSAGES], all_of(there, MESSAGES))


def of_guest(version):
    """Mosquitto is the one that connects."""
    port, mine = free_port(), free_port()
    config = f"""
connection ours
address 127.0.0.1:{mine}
bridge_protocol_version {version}
topic track/# both 2 nato/ unit/
try_private true
notifications false
"""
    text = f'[broker]\nmqtt = "127.0.0.1:{mine}"\n'
    with Broker(text) as broker, Mosquitto(config, port) as mosquitto:
        here, there = Headquarters(broker.ports["mqtt"]), Headquarters(mosquitto.port)
        for _ in range(MAX_AGAIN_S):
            there.publish("nato/track/ready", "x", 1)
            if here.next(1):
                break
        while here.next(SILENCE_S):
            pass
        for qos in range(3):
            here.publish("unit/track/1", f"goes {qos}", qos)
            came = seen(there.next())
            wanted = ("nato/track/1", f"goes {qos}".encode(), qos, False)
            check(f"Mosquitto's bridge, {version}: QoS {qos} to it", came == wanted, came)
            there.publish("nato/track/1", f"comes {qos}", qos)
            came = seen(here.next())
            wanted = ("unit/track/1", f"comes {qos}".encode(), qos, False)
            check(f"Mosquitto's bridge, {version}: QoS {qos} from it", came == wanted, came)
        came = here.next(SILENCE_S), there.next(SILENCE_S)
        check(f"Mosquitto's bridge, {version}: nothing comes back", came == (None, None), came)


def of_rings():
    """Two brokers with a bridge each to the other, and three in a ring."""
    all_topics = '[[bridge.route]]\nfilter = "both/#"\n'
    port, mine = free_port(), free_port()
    config = f"""
connection ours
address 127.0.0.1:{mine}
bridge_protocol_version mqttv50
topic both/# both 2
notifications false
"""
    text = f'[broker]\nmqtt = "127.0.0.1:{mine}"\n' + bridge(port, routes=all_topics)
    with Broker(text) as broker, Mosquitto(config, port) as mosquitto:
        here, there = Headquarters(broker.ports["mqtt"]), Headquarters(mosquitto.port)
        await_bridge(here, there)
        while there.next(SILENCE_S):
            pass
        here.publish("both/1", "x", 1)
        came = [seen(there.next()), seen(there.next(SILENCE_S))]
        check("two bridges between two: once there", came[0] and came[1] in (None, came[0]), came)
        came = seen(here.next(SILENCE_S))
        check("and not again here", came is None, came)
        here.stop()
        there.stop()
    ports = [free_port() for _ in range(3)]
    texts = [
        f'[broker]\nmqtt = "127.0.0.1:{port}"\nnode = "node-{at}"\n'
        + bridge(ports[(at + 1) % 3], routes=all_topics, name=f"from-{at}")
        for at, port in enumerate(ports)
    ]
    brokers = [Broker(text, name=f"broker-{at}") for at, text in enumerate(texts)]
    with brokers[0], brokers[1], brokers[2]:
        clients = [Headquarters(port) for port in ports]
        for client, before in zip(clients, [clients[-1], *clients]):
            await_bridge(before, client)
        while any(client.next(SILENCE_S) for client in clients):
            pass
        for qos in range(3):
            clients[qos].publish("both/ring", f"round {qos}", qos)
            came = [client.next(SILENCE_S * 3) for at, client in enumerate(clients) if at != qos]
            good = [it and it.payload for it in came] == [f"round {qos}".encode()] * 2
            check(f"three in a ring: QoS {qos} comes to the two others", good, came)
        came = [client.next(SILENCE_S) for client in clients]
        check("three in a ring: once", came == [None] * 3, came)


def of_tls():
    """Over TLS, with a user's password."""
    def make(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=WORK)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        make("req", "-x509", *curve, "-days", "30", "-keyout", f"{name}.key", "-out", f"{name}.pem",
             "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE")
    make("req", *curve, "-keyout", "hq.key", "-out", "hq.csr", "-subj", "/CN=hq")
    (WORK / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    make("x509", "-req", "-in", "hq.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "30",
         "-CAcreateserial", "-out", "hq.pem", "-extfile", "ext")
    subprocess.run(["mosquitto_passwd", "-b", "-c", WORK / "passwords", "ship", "secret"], check=True)
    (WORK / "ship.password").write_text("secret\n")
    (WORK / "wrong.password").write_text("wrong\n")
    plain, secure = free_port(), free_port()
    config = f"""
per_listener_settings true
listener {plain} 127.0.0.1
allow_anonymous true
listener {secure} 127.0.0.1
allow_anonymous false
password_file {WORK}/passwords
certfile {WORK}/hq.pem
keyfile {WORK}/hq.key
"""
    with Mosquitto(config, plain) as mosquitto:
        there = Headquarters(mosquitto.port)
        for authority, password, good in (("ca", "ship", True), ("other", "ship", False), ("ca", "wrong", False)):
            more = (f'user = "ship"\npassword_file = "{WORK}/{password}.password"\n'
                    f'authorities = "{WORK}/{authority}.pem"\n')
            log = WORK / "broker.log"
            log.unlink(missing_ok=True)
            with Broker(ours(bridge(secure, more=more, scheme="mqtts"))) as broker:
                here = Headquarters(broker.ports["mqtt"])
                if good:
                    await_bridge(here, there)
                    here.publish("unit/7/track", "x", 1)
                    check("over TLS, with a password", there.next().payload == b"x")
                else:
                    here.publish("unit/7/track", "x", 1)
                    came = there.next(3 * SILENCE_S)
                    check(f"authority {authority}, password {password}: nothing crosses", came is None, came)
            if not good:
                said = [line for line in log.read_text().splitlines() if "there" in line]
                check("and the log says why", bool(said), log.read_text())
                print(f"      {said[-1] if said else ''}")


def of_pair():
    """Through an edge and a gateway, either of which fails."""
    with Mosquitto() as mosquitto, Pair(f"*://127.0.0.1:{mosquitto.port}") as pair:
        more = f'proxy = "http://127.0.0.1:{pair.edge_port}"\nurgency = "priority"\n'
        with Broker(ours(bridge(mosquitto.port, more=more))) as broker:
            here, there = Headquarters(broker.ports["mqtt"]), Headquarters(mosquitto.port)
            await_bridge(here, there)
            here.publish("unit/7/track", "x", 2)
            came = seen(there.next())
            check("through a pair", came == ("nato/nor/7/track", b"x", 2, False), came)
            there.publish("hq/orders/1", "y", 2)
            came = seen(here.next())
            check("through a pair, back", came == ("orders/1", b"y", 2, False), came)
            for side in ("edge", "gateway"):
                pause = threading.Event()
                publisher = threading.Thread(target=publish, args=(here, "unit/7/track", 2, pause))
                other = threading.Thread(target=publish, args=(there, "hq/orders/1", 2, pause))
                publisher.start()
                other.start()
                pause.wait(1)
                pair.kill(side)
                pair.start(side)
                publisher.join()
                other.join()
                judged(f"the {side} is killed, out", 2, range(MESSAGES), all_of(there, MESSAGES - 1))
                judged(f"the {side} is killed, in", 2, range(MESSAGES), all_of(here, MESSAGES - 1))


SCENES = {
    "routes": lambda: [of_routes("5"), of_routes("3.1.1")],
    "properties": of_properties,
    "absence": of_absence,
    "cuts": lambda: [of_cuts(1), of_cuts(2)],
    "death": lambda: [of_death(1), of_death(2)],
    "guest": lambda: [of_guest("mqttv311"), of_guest("mqttv50")],
    "rings": of_rings,
    "tls": of_tls,
    "pair": of_pair,
}


def main():
    for name in sys.argv[1:] or SCENES:
        SCENES[name]()
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
