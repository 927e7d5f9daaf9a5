"""The proxies that the rows go through, and how each is started.

A proxy listens on addresses of 127.0.0.0/8 that only this run uses. A reverse proxy has one
listener for each row, whose upstream is that row's origin.
"""

import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time

START_TIMEOUT_S = 20
PORT = 8080


def own_network():
    """The first two numbers of addresses that nobody else on this machine listens on."""
    for _ in range(100):
        network = f"127.{random.randint(64, 250)}"
        probe = socket.socket()
        try:
            probe.bind(at(network, 0))
            return network
        except OSError:
            continue
        finally:
            probe.close()
    raise OSError("no free addresses in 127.0.0.0/8")


def at(network, number):
    """The address of this number in a network."""
    return f"{network}.{number // 200 + 1}.{number % 200 + 1}", PORT


def accepts(address):
    try:
        socket.create_connection(address, 1).close()
        return True
    except OSError:
        return False


class Proxy:
    """A proxy in the table: `kind` is forward or reverse, `ours` whether it is longwire."""

    def __init__(self, name, kind, ours, title):
        self.name, self.kind, self.ours, self.title = name, kind, ours, title
        self.processes, self.logs = [], []

    def spawn(self, command, log, ready):
        """Starts a command and waits until it accepts connections at `ready`."""
        with open(log, "ab") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.processes.append(process)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not accepts(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                with open(log, errors="replace") as file:
                    raise OSError(f"{self.name} did not start: {file.read()[-600:]}")
            time.sleep(0.02)
        return process

    def stop(self, process=None):
        for one in [process] if process else self.processes[::-1]:
            if one.poll() is None:
                one.kill()
            one.wait()

    def start(self, run):
        pass

    def address(self, _number, _origin_port):
        """Where the row of this number is to connect; and what is to be stopped after it."""
        raise NotImplementedError


class Longwire(Proxy):
    """Four ways to run longwire; as a reverse proxy, an edge for each attempt."""

    def start(self, run):
        self.run, allow = run, ["--allow", "*://127.0.0.1:*"]
        log = os.path.join(run.dir, f"{self.name}.log")
        number = {"pair": 11, "alone": 12, "edgeless": 13, "reverse": 10}[self.name]
        self.at = at(run.network, number)
        listen = self.gateway = f"{self.at[0]}:{PORT}"
        debug = ["--log", "debug"]
        if self.name == "reverse":
            command = [run.binary, "gateway", "--listen", listen, *allow, *debug]
            self.spawn(command, log, self.at)
        elif self.name == "pair":
            gateway = at(run.network, 14)
            command = [run.binary, "gateway", "--listen", f"{gateway[0]}:{PORT}", *allow, *debug]
            self.spawn(command, log + ".gateway", gateway)
            command = [run.binary, "edge", "--listen", listen, *debug,
                       "--gateway", f"{gateway[0]}:{PORT}"]
            self.spawn(command, log, self.at)
        elif self.name == "alone":
            self.spawn([run.binary, "edge", "--listen", listen, *debug], log, self.at)
        else:
            listener = run.listener_flag
            command = [run.binary, "gateway", "--listen", f"{at(run.network, 15)[0]}:{PORT}",
                       *allow, listener, listen, *debug]
            self.spawn(command, log, self.at)

    def address(self, number, origin_port):
        if self.name != "reverse":
            return self.at, None
        own = at(self.run.network_of("reverse"), number)
        command = [self.run.binary, "edge", "--listen", f"{own[0]}:{PORT}",
                   "--gateway", self.gateway, "--upstream", f"http://127.0.0.1:{origin_port}",
                   "--log", "debug"]
        log = os.path.join(self.run.dir, f"reverse-{number}.log")
        return own, self.spawn(command, log, own)


class Squid(Proxy):
    def start(self, run):
        self.at = at(run.network, 20)
        folder = os.path.join(run.dir, "squid")
        os.mkdir(folder)
        # It leaves root for a user of its own, who has to write there.
        os.chmod(run.dir, 0o755)
        os.chmod(folder, 0o777)
        conf = os.path.join(folder, "conf")
        with open(conf, "w") as file:
            file.write(f"""http_port {self.at[0]}:{PORT}
http_access allow all
http_upgrade_request_protocols websocket allow all
cache deny all
access_log none
cache_log {folder}/cache.log
pid_filename none
coredump_dir {folder}
visible_hostname squid.test
shutdown_lifetime 1 second
""")
        self.spawn(["squid", "-N", "-f", conf], os.path.join(folder, "out"), self.at)

    def address(self, _number, _origin_port):
        return self.at, None


class Nginx(Proxy):
    def start(self, run):
        folder = os.path.join(run.dir, "nginx")
        os.mkdir(folder)
        self.network = run.network_of("nginx")
        servers = "".join(f"""
    upstream u{number} {{ server 127.0.0.1:{port}; keepalive 8; }}
    server {{
        listen {at(self.network, number)[0]}:{PORT};
        location / {{ proxy_pass http://u{number}; }}
    }}""" for number, port in run.origins["nginx"].items())
        conf = os.path.join(folder, "conf")
        with open(conf, "w") as file:
            file.write(f"""daemon off;
pid {folder}/pid;
error_log {folder}/error.log info;
worker_processes 1;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    map $http_upgrade $upgrade {{ default ''; ~*^websocket$ $http_upgrade; }}
    map $upgrade $on_connection {{ default ''; ~. upgrade; }}
    proxy_http_version 1.1;
    proxy_request_buffering off;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $upgrade;
    proxy_set_header Connection $on_connection;
    client_max_body_size 0;{servers}
}}
""")
        first = at(self.network, min(run.origins["nginx"]))
        self.spawn(["nginx", "-e", "stderr", "-p", folder, "-c", conf],
                   os.path.join(folder, "out"), first)

    def stop(self, process=None):
        # The master takes its workers with it when it is asked, not when it is killed.
        for one in self.processes:
            one.terminate()
            try:
                one.wait(5)
            except subprocess.TimeoutExpired:
                one.kill()

    def address(self, number, _origin_port):
        return at(self.network, number), None


class Haproxy(Proxy):
    def start(self, run):
        folder = os.path.join(run.dir, "haproxy")
        os.mkdir(folder)
        self.network = run.network_of("haproxy")
        parts = "".join(f"""
frontend f{number}
    bind {at(self.network, number)[0]}:{PORT}
    default_backend b{number}
backend b{number}
    server s 127.0.0.1:{port}
""" for number, port in run.origins["haproxy"].items())
        conf = os.path.join(folder, "conf")
        with open(conf, "w") as file:
            file.write(f"""global
    maxconn 2000
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    timeout tunnel 30s
{parts}""")
        first = at(self.network, min(run.origins["haproxy"]))
        self.spawn(["haproxy", "-q", "-db", "-f", conf], os.path.join(folder, "out"), first)

    def address(self, number, _origin_port):
        return at(self.network, number), None


def table():
    """All proxies, in the order of the columns."""
    return [
        Longwire("pair", "forward", True, "pair"),
        Longwire("reverse", "reverse", True, "pair, `--upstream`"),
        Longwire("alone", "forward", True, "edge alone"),
        Longwire("edgeless", "forward", True, "no edge"),
        Squid("squid", "forward", False, "squid"),
        Nginx("nginx", "reverse", False, "nginx"),
        Haproxy("haproxy", "reverse", False, "haproxy"),
    ]


class Run:
    """What all proxies of a run share: addresses, a folder, the ports of the origins."""

    def __init__(self, binary, listener_flag, origins):
        self.binary, self.listener_flag, self.origins = binary, listener_flag, origins
        self.network = own_network()
        self.dir = tempfile.mkdtemp(prefix="conformance-")
        self.networks = {}

    def network_of(self, name):
        if name not in self.networks:
            self.networks[name] = own_network()
        return self.networks[name]

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def versions(binary):
    """Which versions were compared."""
    asked = {"longwire": [binary, "--version"], "squid": ["squid", "-v"], "nginx": ["nginx", "-v"],
             "haproxy": ["haproxy", "-v"]}
    found = {}
    for name, command in asked.items():
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        number = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
        found[name] = number.group() if number else "?"
    return found
