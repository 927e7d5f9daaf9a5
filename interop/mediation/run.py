"""Every protocol to every other; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
With --write the document is written from the table. Exit status 1 where a check failed.
"""

import contextlib
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "mqttsn"), str(HERE.parent / "wsn")]

import scenes  # noqa: E402: the folders of other peers are looked into.
import table  # noqa: E402
from buses import Amqp10, Amqp091  # noqa: E402
from ours import FAILED, MAX_START_S, MAX_STEP_S, WORK, Broker, check  # noqa: E402
from schemas import Schemas  # noqa: E402
from soap import Wsn  # noqa: E402
from things import UDP_PORT, Mqtt, MqttSn, MqttUdp  # noqa: E402

DOCUMENT = HERE.parent.parent / "docs/mediation.md"
TYPES = HERE.parent / "wsn/target/schemas/org/apache/cxf/wsn/wsdl"
CONFIG = """
[broker]
anonymous = true
mqtt = "127.0.0.1:0"
amqp = "127.0.0.1:0"
amqp091 = "127.0.0.1:0"
wsn = "127.0.0.1:0"
wsn_default_topic = "m/WS-Notification/raw"
[[mqtt_sn]]
listen = "127.0.0.1:0"
[[topic_id]]
id = 7
topic = "m/MQTT-SN/grade-1"
[[mqtt_udp]]
listen = "0.0.0.0:1883"
exit = ["m/#"]
targets = ["255.255.255.255:1883"]
# What WS-Notification and MQTT/UDP do not say is said by topic.
[[rule]]
filter = "m/WS-Notification/kept"
retain = true
[[rule]]
filter = "m/MQTT_UDP/kept"
retain = true
[[rule]]
filter = "m/+/text,-typed-by-a-rule"
content_type = "text/plain"
"""


@contextlib.contextmanager
def captured(path):
    """All that passes while the block runs, where there is a tshark."""
    if not shutil.which("tshark"):
        print("mediation: no tshark, so its opinion is left out; apt install tshark")
        yield
        return
    process = subprocess.Popen(
        ["tshark", "-q", "-i", "lo", "-w", str(path)], stderr=subprocess.PIPE, text=True
    )
    timer = threading.Timer(MAX_START_S, process.kill)
    timer.start()
    if not any("Capturing on" in line for line in process.stderr):
        sys.exit("tshark does not capture")
    timer.cancel()
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=MAX_STEP_S)


def of_capture(path, ports):
    """What tshark has against what passed."""
    if not path.exists():
        return
    kinds = {"mqtt": "mqtt", "amqp": "amqp", "amqp091": "amqp", "mqtt-sn": "mqttsn", "wsn": "http"}
    known = []
    for name, kind in kinds.items():
        layer = "udp" if name == "mqtt-sn" else "tcp"
        known += ["-d", f"{layer}.port=={ports[name]},{kind}"]
    # It takes this port for that of MQTT-SN, and knows no MQTT/UDP.
    about = f"!(udp.port == {UDP_PORT})"

    def seen(wanted):
        done = subprocess.run(
            ["tshark", "-r", str(path), *known, "-Y", f"{about} && ({wanted})"],
            capture_output=True, text=True, check=True,
        )
        return done.stdout.splitlines()

    counts = {kind: len(seen(kind)) for kind in sorted(set(kinds.values()))}
    check(f"tshark sees {counts}", all(counts.values()), counts)
    bad = seen("_ws.malformed")
    check("none of them malformed", not bad, bad[:3])


def of_document():
    """The document says what the table says."""
    text = table.document()
    if "--write" in sys.argv:
        DOCUMENT.write_text(text)
    written = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    check("docs/mediation.md is that of the table", written == text, "write it: check --write")


def main():
    of_document()
    schemas = Schemas(TYPES)
    seen = WORK / "seen.pcap"
    seen.unlink(missing_ok=True)
    with captured(seen), Broker(CONFIG) as broker:
        ports = broker.ports
        wsn = Wsn(ports["wsn"], schemas)
        ends = [
            Mqtt(ports["mqtt"]), MqttSn(ports["mqtt-sn"]), Amqp10(ports["amqp"]),
            Amqp091(ports["amqp091"]), wsn, MqttUdp(),
        ]
        rows = {}
        lines = open(WORK / "rows.tsv", "w", encoding="utf-8")
        for source in ends:
            others = [end for end in ends if end is not source]
            for (field, target), word in scenes.all_of(source, others):
                rows[source.name, field, target] = word
                print(source.name, field, target, word, sep="\t", file=lines, flush=True)
                wanted = table.said(source.name, field, target)
                name = f"{source.name} to {target}: {field}: {wanted}"
                check(name, word == wanted, word)
    check(f"{wsn.judged} envelopes are valid", not wsn.wrong, wsn.wrong)
    of_capture(seen, ports)
    missing = [key for key in table.keys() if key not in rows]
    check("all of the table was looked at", not missing, missing)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
