"""Calls the tracks service through its WSDL and compares the answers with its REST forms.

zeep makes requests and objects from the WSDL alone. Of the wrappers with one child each it gives
the innermost, the list of tracks.
"""

import os
import subprocess
import sys

import requests
import zeep
from lxml import etree
from zeep.helpers import serialize_object

FILES = 22
NFFI = "{urn:nato:fft:protocols:nffi13}"


def plain(value):
    """A zeep object or a JSON value as nested dicts and lists that compare equal."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        members = {name: plain(item) for name, item in value.items() if item not in (None, [])}
        if "_value_1" in members:
            inner = members.pop("_value_1")
            if isinstance(inner, list):  # the content of an xsd:any
                # zeep gives an element that the WSDL declares as its value, without its name.
                members["note"] = inner[0]
            else:  # the value of an element that may have attributes
                members["value"] = inner
        return members["value"] if list(members) == ["value"] else members
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return value


def canonical(element):
    """A subtree as bytes that do not depend on what declares its namespaces."""
    return etree.tostring(element, method="c14n", exclusive=True)


def check_port(client, port, rest):
    """Every track through one port, as objects and as XML; then a fault."""
    service = client.bind("TracksService", port)
    for number in range(1, FILES + 1):
        answer = plain(serialize_object(service.GetTrack(number=number), dict))
        json = plain(requests.get(f"{rest}/rest/json/{number}", timeout=30).json())
        assert answer == json["NFFIMessage"]["track"], f"{port}, track {number}: objects differ"

        with client.settings(raw_response=True):
            raw = service.GetTrack(number=number)
        message = etree.fromstring(raw.content).find(f".//{NFFI}NFFIMessage")
        xml = requests.get(f"{rest}/rest/xml/{number}", timeout=30).content
        assert canonical(message) == canonical(etree.fromstring(xml)), f"{port}, track {number}"

    try:
        service.GetTrack(number=FILES + 1)
    except zeep.exceptions.Fault as fault:
        assert "1 to 22" in fault.message, fault.message
        assert fault.detail is not None, "a fault in the body needs a detail"
    else:
        raise AssertionError(f"{port}: no fault for a track that does not exist")
    print(f"zeep {zeep.__version__}, {port}: {FILES} tracks equal to REST, fault understood")


def main():
    server = subprocess.Popen(
        [os.environ["LONGWIRE"], "serve", "tracks", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            sys.exit(f"zeep: the service did not start: {line!r}")
        rest = "http://" + line.split()[-1]
        client = zeep.Client(f"{rest}/soap?wsdl")
        for port in ("TracksSoap11", "TracksSoap12"):
            check_port(client, port, rest)
    finally:
        server.terminate()
        status = server.wait(timeout=20)
    if status != 0:
        sys.exit(f"zeep: the service ended with status {status} after SIGTERM")


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "127.0.0.1"
    main()
