"""A pair with keys at the two ends of an emulated link, and an origin beside the gateway."""

import http.client
import http.server
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "faults"))

from pair import EDGE_PORT, GATEWAY_PORT, ORIGIN_PORT, Lab, Side, enter

ADMIN_PORT = 9100
START_TIMEOUT_S = 30
# Longer than any request may take.
CLIENT_TIMEOUT_S = 120
BODY = b"<position lat='60.1' lon='24.9'/>" * 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


def inside(namespace, work):
    """What `work` gives in a network namespace."""
    out = []

    def run():
        enter(namespace)
        out.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if not out:
        raise OSError("it failed")
    return out[0]


def ask(host, port, target):
    """Status and seconds of one request over a connection of its own; 0 where none came."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(host, port, timeout=CLIENT_TIMEOUT_S)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        body = answer.read()
        status = answer.status
        if status == 200 and body != BODY:
            raise OSError("another body")
    except (OSError, http.client.HTTPException):
        status = 0
    finally:
        connection.close()
    return status, time.perf_counter() - began


class World:
    """A lab with an origin at the gateway's end."""

    def __init__(self, binary, folder, link, fallback):
        self.lab = Lab(binary, f"outage{os.getpid()}", link)
        self.origin = f"http://{self.lab.gateway}:{ORIGIN_PORT}"
        self.server = inside(self.lab.b, lambda: http.server.ThreadingHTTPServer(
            (self.lab.gateway, ORIGIN_PORT), Handler))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        keys = os.path.join(folder, "keys")
        for side in ("edge", "gateway"):
            subprocess.run([binary, "keygen", os.path.join(keys, side)], check=True,
                           capture_output=True, timeout=20)

        def key(own, other):
            return ["--key", os.path.join(keys, own, "longwire.key"),
                    "--peer", os.path.join(keys, other, "longwire.pub")]

        self.edge = Side("edge", self.lab.a, [
            binary, "edge", "--listen", f"127.0.0.1:{EDGE_PORT}", "--fallback", fallback,
            "--admin", f"127.0.0.1:{ADMIN_PORT}",
            "--gateway", f"{self.lab.gateway}:{GATEWAY_PORT}", *key("edge", "gateway")],
            folder, folder)
        self.gateway = Side("gateway", self.lab.b, [
            binary, "gateway", "--listen", f"{self.lab.gateway}:{GATEWAY_PORT}",
            "--allow", f"*://{self.lab.gateway}:*", *key("gateway", "edge")], folder, folder)
        self.gateway.start()
        self.edge.start()

    def through(self):
        """One request through the pair."""
        return inside(self.lab.a, lambda: ask("127.0.0.1", EDGE_PORT, self.origin + "/"))

    def direct(self):
        """The same without the edge."""
        return inside(self.lab.a, lambda: ask(self.lab.gateway, ORIGIN_PORT, "/"))

    def ready(self):
        """What /health/ready says."""
        return inside(self.lab.a, self.ready_here)

    def ready_here(self):
        connection = http.client.HTTPConnection("127.0.0.1", ADMIN_PORT, timeout=10)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def until_ready(self):
        until = time.monotonic() + START_TIMEOUT_S
        while not self.ready():
            if time.monotonic() > until:
                raise OSError("the edge does not become ready")
            time.sleep(0.1)

    def stop(self):
        for side in (self.edge, self.gateway):
            if side.alive():
                side.process.send_signal(signal.SIGCONT)
                side.kill()
        self.server.shutdown()
        self.lab.down()
