"""Edge, gateway and an origin at the two ends of an emulated link of their own, and a client."""

import http.client
import http.server
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "faults"))

from pair import EDGE_PORT, GATEWAY_PORT, ORIGIN_PORT, Lab, Side, enter

START_TIMEOUT_S, RETRY_S = 60, 0.1
# Of the side whose section has ADMIN.
ADMIN_PORT, ADMIN_TIMEOUT_S = 3129, 10
ADMIN = f'admin = "127.0.0.1:{ADMIN_PORT}"\n'


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers GET /N with N bytes that do not compress, and POST with 204."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        last = self.path.rsplit("/", 1)[-1]
        content = os.urandom(int(last)) if last.isdigit() else b""
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, 65536)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Says nothing of clients that leave."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Ground:
    """See the module. `settings` are of the link, such as {"loss": "5 %"}; `edge` and `gateway`
    are lines of TOML for either file alone, `common` for the section of either side; `seed` decides
    which packets the link loses."""

    def __init__(self, binary, name, link, folder, carrier, settings=None, edge="", gateway="",
                 common='encoding = "identity"\n', pair=True, seed=1):
        self.sides, self.server, self.stopped = [], None, threading.Event()
        self.lab = Lab(binary, name, link, seed)
        try:
            if settings:
                self.lab.set(**settings)
            self.origin = f"http://{self.lab.gateway}:{ORIGIN_PORT}"
            self.inside(self.lab.b, self.serve).join()
            if pair:
                self.start(binary, folder, carrier, (edge, gateway, common))
        except BaseException:
            self.stop()
            raise

    def start(self, binary, folder, carrier, lines):
        edge, gateway, common = lines
        os.makedirs(folder, exist_ok=True)
        keys = {side: os.path.join(folder, side) for side in ("edge", "gateway")}
        for key in keys.values():
            subprocess.run([binary, "keygen", key], check=True, capture_output=True, timeout=20)

        def side(own, other):
            return (f'key = "{keys[own]}/longwire.key"\npeer = "{keys[other]}/longwire.pub"\n'
                    f'carrier = "{carrier}"\n{common}')

        files = {
            "edge": f'[edge]\nlisten = "127.0.0.1:{EDGE_PORT}"\n'
                    f'gateway = "{self.lab.gateway}:{GATEWAY_PORT}"\n' + side("edge", "gateway")
                    + edge.replace("{origin}", self.origin),
            "gateway": f'[gateway]\nlisten = "{self.lab.gateway}:{GATEWAY_PORT}"\n'
                       f'allow = ["{self.origin}"]\n' + side("gateway", "edge") + gateway,
        }
        for own, namespace in (("gateway", self.lab.b), ("edge", self.lab.a)):
            file = os.path.join(folder, f"{own}.toml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(files[own])
            command = [binary, own, "--config", file]
            self.sides.append(Side(own, namespace, command, folder, folder))
            self.sides[-1].start()

    @staticmethod
    def inside(namespace, work):
        """Runs `work` in a network namespace, in a thread of its own."""
        def run():
            enter(namespace)
            work()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def serve(self):
        """Starts the origin. In host b."""
        self.server = Server((self.lab.gateway, ORIGIN_PORT), Origin)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def post(self, path, size, timeout_s):
        """Whether a message through the edge was answered with 204. In host a."""
        connection = http.client.HTTPConnection("127.0.0.1", EDGE_PORT, timeout=timeout_s)
        try:
            connection.request("POST", self.origin + path, os.urandom(size))
            answer = connection.getresponse()
            answer.read()
            return answer.status == 204
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def get(self, size, timeout_s):
        """Whether an answer of so many bytes came whole through the edge. In host a."""
        connection = http.client.HTTPConnection("127.0.0.1", EDGE_PORT, timeout=timeout_s)
        try:
            connection.request("GET", f"{self.origin}/{size}")
            answer = connection.getresponse()
            return answer.status == 200 and len(answer.read()) == size
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def metrics(self, namespace):
        """What the side in a namespace says of itself: pairs of a name with its labels, without
        what all names begin with, and a value."""
        found = []

        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", ADMIN_PORT,
                                                    timeout=ADMIN_TIMEOUT_S)
            try:
                connection.request("GET", "/metrics")
                lines = connection.getresponse().read().decode().splitlines()
            finally:
                connection.close()
            for line in lines:
                if line.startswith("longwire_"):
                    name, value = line.removeprefix("longwire_").rsplit(" ", 1)
                    found.append((name, float(value)))

        self.inside(namespace, ask).join()
        if not found:
            raise OSError("the /metrics cannot be read")
        return found

    def await_first(self):
        """Waits until a message has got through."""
        until = time.monotonic() + START_TIMEOUT_S
        first = []
        while not first and not self.stopped.is_set() and time.monotonic() < until:
            asks = lambda: first.append(1) if self.post("/", 1, START_TIMEOUT_S) else None
            self.inside(self.lab.a, asks).join()
            if not first:
                self.stopped.wait(RETRY_S)

    def stop(self):
        self.stopped.set()
        for side in self.sides:
            side.kill()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.lab.down()
