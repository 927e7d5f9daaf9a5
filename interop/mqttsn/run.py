"""MQTT-SN with peers of others; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import pathlib
import shutil
import signal
import socket
import subprocess
import sys

from mqttsn12.client.MqttSnClient import MqttSnClient
from scapy.contrib import mqttsn as sn
from scapy.layers.inet import IP, UDP
from scapy.utils import wrpcap

from ours import FAILED, MAX_STEP_S, SILENCE_S, WORK, Broker, Headquarters, check
from wire import MAX_DATAGRAM_BYTES, Came, Relay, Sensor, doubts

BIN = pathlib.Path(sys.executable).parent
CONFIG = """
[broker]
mqtt = "127.0.0.1:0"
[[mqtt_sn]]
listen = "127.0.0.1:0"
gateway_id = 7
advertise_to = ["127.0.0.1:{air}"]
advertise_interval = "1 s"
[[topic_id]]
id = 7
topic = "sn/predefined"
"""


def run(program, port, *args, **more):
    """One of mqtt-sn-12's programs to its end."""
    command = [BIN / program, "-h", "127.0.0.1", "-p", str(port), *args]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=MAX_STEP_S, check=False, **more
    )


def came_to(there, seconds=MAX_STEP_S):
    """The next that headquarters has got; None if nothing comes."""
    message = there.next(seconds)
    return message and Came(message.topic, message.payload, message.qos, message.retain)


def of_publisher(port, there):
    """mqtt_sn_pub."""
    for qos in (-1, 0, 1, 2):
        # One cannot register a name without a connection.
        topics = [(["-t", "ab"], "ab"), (["-T", "7"], "sn/predefined")]
        if qos >= 0:
            topics.append((["-t", "sn/name"], "sn/name"))
        for said, topic in topics:
            done = run("mqtt_sn_pub", port, *said, "-m", f"hello {qos}", "-q", str(qos))
            came = came_to(there)
            wanted = Came(topic, f"hello {qos}".encode(), max(qos, 0), False)
            check(f"mqtt_sn_pub {' '.join(said)} -q {qos}", came == wanted and not done.returncode,
                  (came, done.stderr))
    run("mqtt_sn_pub", port, "-t", "sn/kept", "-m", "state", "-q", "1", "-r")
    check("mqtt_sn_pub -r: retained", came_to(there) == Came("sn/kept", b"state", 1, True))
    long = "x" * 600
    run("mqtt_sn_pub", port, "-t", "sn/long", "-s", "-q", "1", input=long)
    check("a publication of 600 bytes", came_to(there) == Came("sn/long", long.encode(), 1, False))
    done = run("mqtt_sn_pub", port, "-t", "sn/name", "-m", "x", "-q", "1", "-e", "60")
    check("mqtt_sn_pub -e: it goes to sleep", not done.returncode, done.stderr)
    came_to(there)
    child = subprocess.Popen(
        [BIN / "mqtt_sn_pub", "-h", "127.0.0.1", "-p", str(port), "-t", "sn/name", "-m", "last words",
         "-k", "2", "-q", "1", "--will-topic", "sn/will", "--will-payload", "gone", "--will-qos", "1",
         "--repeat-delay", "60"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    check("mqtt_sn_pub --will-topic: it publishes", came_to(there) is not None)
    child.send_signal(signal.SIGKILL)
    child.wait()
    came = came_to(there)
    check("its will is published when it is gone", came == Came("sn/will", b"gone", 1, False), came)


def of_subscriber(port, there):
    """mqtt_sn_sub: what it prints of what MQTT publishes."""
    for said, topic in [
        (["-t", "down/name", "-q", "0"], "down/name"),
        (["-t", "down/name", "-q", "1"], "down/name"),
        (["-t", "down/+/x", "-q", "0"], "down/any/x"),
        (["-t", "cd", "-q", "0"], "cd"),
        (["-T", "7", "-q", "1"], "sn/predefined"),
    ]:
        # It says to nobody that it has subscribed, so it is told what is retained.
        there.publish(topic, "kept for it", 1, retain=True)
        done = run("mqtt_sn_sub", port, *said, "-1")
        check(f"mqtt_sn_sub {' '.join(said)}", done.stdout == "kept for it\n", done)
        there.publish(topic, "", 1, retain=True)


def of_api(port, there):
    """mqtt-sn-12 as a library: what its programs do not do."""
    client = MqttSnClient()
    client.set_client_id("library")
    client.set_will("sn/will", "first", 1, False)
    client.open("127.0.0.1", port)
    client.send_search_gateway(1)
    check("SEARCHGW is answered", True)
    client.set_keep_alive(2)
    client.send_connect()
    client.send_will_topic_update("sn/will/new")
    client.send_will_message_update("second")
    client.send_subscribe("sn/in", 0, None)
    client.send_unsubscribe("sn/in")
    client.send_ping_req()
    came = came_to(there)
    wanted = Came("sn/will/new", b"second", 1, False)
    check("a will that was changed is published", came == wanted, came)


def of_advertising(air, relay):
    """The gateway says that it is there."""
    data = air.recv(MAX_DATAGRAM_BYTES)
    relay.keep(air.getsockname(), False, data)
    told = sn.MQTTSN(data)
    check("ADVERTISE", (told.type, told.gw_id, told.duration) == (sn.ADVERTISE, 7, 1), told)


def of_sleep(port, there):
    """A client sleeps: what comes is kept, and all of it is given once."""
    sensor = Sensor(port, "sleeper", clean=False)
    answer = sensor.subscribe("zz/+", 1)
    check("a wildcard has no id", (answer.return_code, answer.tid) == (0, 0), answer)
    sensor.sleep(60)
    for number in range(5):
        there.publish(f"zz/{number}", str(number), 1)
    check("nothing comes to who sleeps", sensor.take(SILENCE_S) is None)
    sensor.send(sn.MQTTSNPingReq(client_id="sleeper"))
    check("awake, PINGRESP comes last", sensor.until(sn.PINGRESP) is not None)
    got = [(it.topic, it.payload) for it in sensor.came]
    check("and all before it, in order", got == [(f"zz/{n}", b"%d" % n) for n in range(5)], got)
    sensor.came.clear()
    sensor.send(sn.MQTTSNPingReq(client_id="sleeper"))
    check("a second time nothing", sensor.until(sn.PINGRESP) is not None and not sensor.came)
    sensor.stop()


def of_scapy(port, there):
    """What scapy builds, in all levels and forms of topics."""
    sensor, other = Sensor(port, "one"), Sensor(port, "two")
    check("CONNECT is accepted", (sensor.code, other.code) == (0, 0))
    for topic, name in [("up/down", "up/down"), ("ef", "ef"), (7, "sn/predefined")]:
        answer = other.subscribe(topic, 2)
        check(f"a subscription to {topic}", (answer.return_code, answer.qos) == (0, sn.QOS_2), answer)
        for qos in (-1, 0, 1, 2):
            if qos >= 0 or topic != "up/down":
                sensor.publish(topic, f"level {qos}", qos)
                wanted = Came(topic, f"level {qos}".encode(), max(qos, 0), False)
                came = other.take()
                check(f"{topic} at level {qos} to MQTT-SN", came == wanted, came)
                came = came_to(there)
                check(f"{topic} at level {qos} to MQTT", came == wanted._replace(topic=name), came)
    sensor.send(sn.MQTTSNPublish(qos=sn.QOS_1, tid=999, mid=9, data="x"))
    check("an id that is none is refused", sensor.until(sn.PUBACK).return_code == sn.REJ_TID)
    mute = Sensor(port, "mute")
    mute.answers = False
    mute.subscribe("mute/#", 1)
    there.publish("mute/1", "x", 1)
    check("who answers nothing gets one", mute.take() == Came("mute/1", b"x", 1, False))
    there.publish("mute/2", "x", 1)
    check("and no other before it is answered", mute.take(SILENCE_S) is None)
    stranger = Sensor(port)
    stranger.send(sn.MQTTSNPublish(qos=sn.QOS_0, tid_type=sn.TID_PREDEF, tid=7, data="x"))
    check("who has not connected is told so", stranger.until(sn.DISCONNECT) is not None)
    inner = bytes(sn.MQTTSN() / sn.MQTTSNPublish(
        qos=sn.QOS_NEG1, tid_type=sn.TID_PREDEF, tid=7, data="by way of"))
    stranger.send(sn.MQTTSNEncaps(radius=1, w_node_id=b"n7") / inner)
    check("a forwarder's", came_to(there) == Came("sn/predefined", b"by way of", 0, False))
    sensor.stop()
    other.stop()


def judged(relay):
    """Every datagram before scapy and tshark."""
    found = [doubt for _, _, data in relay.kept if (doubt := doubts(data))]
    check(f"scapy reads and writes {len(relay.kept)} datagrams", not found, found[:3])
    kinds = {data[3] if data[0] == 1 else data[1] for _, _, data in relay.kept}
    missing = [name for kind, name in sn.PACKET_TYPE.items() if kind not in kinds]
    check("of all kinds", not missing, missing)
    if not shutil.which("tshark"):
        return
    path = str(WORK / "seen.pcap")
    wrpcap(path, [
        IP(src="127.0.0.1", dst="127.0.0.1")
        / UDP(sport=client if is_up else 1885, dport=1885 if is_up else client) / data
        for client, is_up, data in relay.kept
    ])
    command = ["tshark", "-r", path, "-d", "udp.port==1885,mqttsn"]
    seen = subprocess.run([*command, "-Y", "mqttsn"], capture_output=True, text=True, check=True).stdout
    check("tshark sees all", seen.count("\n") == len(relay.kept), seen.count("\n"))
    bad = subprocess.run(
        [*command, "-Y", "_ws.malformed || _ws.expert.severity == error"],
        capture_output=True, text=True, check=True,
    ).stdout
    check("none of them malformed", not bad, bad)


def main():
    air = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    air.bind(("127.0.0.1", 0))
    air.settimeout(MAX_STEP_S)
    with Broker(CONFIG.format(air=air.getsockname()[1])) as broker:
        ports = broker.ports
        relay = Relay(ports["mqtt-sn"])
        there = Headquarters(ports["mqtt"])
        of_publisher(relay.port, there)
        of_subscriber(relay.port, there)
        of_api(relay.port, there)
        of_advertising(air, relay)
        of_sleep(relay.port, there)
        of_scapy(relay.port, there)
        judged(relay)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
