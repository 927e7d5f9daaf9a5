"""Posts messages to the consumer through its WSDL and by plain HTTP, and compares its own figures.

The process is a new one for each profile. Profile 1 must be real-time, or say why it is not.
"""

import atexit
import http.client
import json
import os
import signal
import subprocess
import sys

import zeep
from lxml import etree

LONGWIRE = os.environ["LONGWIRE"]
MAX_STEP_S = 30
NAMESPACE = "urn:longwire:realtime:1"
SENT = 40


def entity(number):
    return {
        "id": number, "name": f"TRACK {number} <&>", "kind": "surface", "latitudeDeg": 38.5,
        "longitudeDeg": -77.25, "altitudeM": 0.0, "courseDeg": 359.5, "speedMps": 12.5,
        "timeMs": 1700000000000,
    }


class Consumer:
    """`longwire serve consumer` with options; its figures behind the end."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [LONGWIRE, "serve", "consumer", "--listen", "127.0.0.1:0", "--json", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        # Where a check fails before its end.
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            sys.exit(f"realtime: it said {line!r}: {self.process.stderr.read()}")
        self.address = line.split()[-1]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, self.said = self.process.communicate(timeout=MAX_STEP_S)
        assert self.process.returncode == 0, (self.process.returncode, self.said)
        return json.loads(out)


def by_zeep(address):
    """Messages through both ports, and faults that zeep understands."""
    client = zeep.Client(f"http://{address}/consumer?wsdl")

    def header(number):
        block = etree.Element(f"{{{NAMESPACE}}}Class")
        block.text = str(number)
        return block

    for port in ("ConsumerSoap11", "ConsumerSoap12"):
        service = client.bind("ConsumerService", port)
        for sequence in range(1, SENT // 2 + 1):
            entities = [entity(number) for number in range(5)]
            service.Process(sequence=sequence, entity=entities, _soapheaders=[header(sequence % 2)])
        for wrong, word in ((dict(entity(7), id=5000), "0 to 4095"),
                            (dict(entity(7), name="x" * 33), "limit of 32")):
            try:
                service.Process(entity=[wrong])
            except zeep.exceptions.Fault as fault:
                assert word in fault.message, fault.message
            else:
                raise AssertionError(f"{port}: no fault for {word}")
        try:
            service.Process(entity=[entity(1)], _soapheaders=[header(2)])
        except zeep.exceptions.Fault as fault:
            assert "no class 2" in fault.message, fault.message
        else:
            raise AssertionError(f"{port}: no fault for a class that there is not")
    print(f"zeep {zeep.__version__}: {SENT} messages by SOAP 1.1 and 1.2, faults understood")


def by_sockets(address):
    """Chunks, a class by path, an urgency, and what is no message."""
    body = (
        f'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>'
        f'<Process xmlns="{NAMESPACE}"><entity>'
        + "".join(f"<{name}>{value}</{name}>" for name, value in entity(3).items()
                  if name != "name").replace("</id>", "</id><name>A</name>")
        + "</entity></Process></e:Body></e:Envelope>"
    ).encode()
    connection = http.client.HTTPConnection(address, timeout=MAX_STEP_S)
    fields = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'}

    def post(path, content, more=()):
        connection.request("POST", path, content, {**fields, **dict(more)},
                           encode_chunked=not isinstance(content, bytes))
        answer = connection.getresponse()
        return answer.status, answer.read()

    assert post("/consumer/1", body) == (202, b"")
    assert post("/consumer", iter([body[:90], body[90:]])) == (202, b"")
    assert post("/consumer", body, {"Priority": "u=0"}.items()) == (202, b"")
    assert post("/consumer/9", body)[0] == 500
    assert post("/nowhere", body)[0] == 404
    assert post("/consumer", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")[0] == 500
    assert post("/consumer", body, {"Content-Type": "application/json"}.items())[0] == 415
    assert post("/consumer", b"x" * 65537)[0] == 413
    connection.close()
    print("plain HTTP: chunks, a path, an urgency; what is no message is refused")


def main():
    for profile in ("5", "1"):
        consumer = Consumer("--profile", profile, "--queues", "2")
        by_zeep(consumer.address)
        by_sockets(consumer.address)
        figures = consumer.end()
        counts = [(one["accepted"], one["processed"]) for one in figures["classes"]]
        # By the paths one each, by the usual urgency (3 of 8) the first of two, by u=0 as well.
        assert counts == [(SENT // 2 + 2, SENT // 2 + 2), (SENT // 2 + 1, SENT // 2 + 1)], counts
        refused = [one["refused"] for one in figures["granted"] if one["refused"]]
        assert figures["as_asked"] == (not refused), figures["granted"]
        assert len(refused) == consumer.said.count("runs as ordinary"), consumer.said
        print(f"profile {profile}: {'as asked' if figures['as_asked'] else 'ordinary, and said so'}")
    produced = producer()
    assert produced["accepted"] == produced["sent"] == 20, produced
    print("produce: 20 messages on schedule, all accepted and stored")


def producer():
    consumer = Consumer()
    url = f"http://{consumer.address}/consumer"
    out = subprocess.run([LONGWIRE, "produce", "--url", url, "--duration", "1 s", "--json"],
                         capture_output=True, text=True, timeout=MAX_STEP_S, check=False)
    assert out.returncode == 0, out
    figures = consumer.end()
    assert figures["classes"][0]["t2_t0"]["samples"] == 100, figures
    return json.loads(out.stdout)


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "127.0.0.1"
    main()
