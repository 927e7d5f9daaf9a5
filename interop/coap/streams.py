"""CoAP over reliable transports (RFC 8323) with peers of others; see `check` and run.py."""

import asyncio
import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import aiocoap

from run import (
    FAILED, LARGE, MAX_START_S, MAX_STEP_S, SERVER, UPLOAD, WORK, Origin, check, coap,
    gateway, libcoap, process,
)

# In blocks of BERT it takes two messages.
BODY = bytes(i * 13 % 249 for i in range(100_000))
# aiocoap binds its WebSocket so far above the port that it is given.
WEBSOCKET_OFFSET = 3000


def free_port():
    """A port that nobody has, and nobody has that of aiocoap's WebSocket for it."""
    while True:
        with socket.socket() as one, socket.socket() as other, socket.socket(
            type=socket.SOCK_DGRAM
        ) as datagrams:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                other.bind(("127.0.0.1", port + WEBSOCKET_OFFSET))
                datagrams.bind(("127.0.0.1", port))
                return port


def wait_for(url):
    """Until a server takes connections."""
    until = time.monotonic() + MAX_START_S
    while time.monotonic() < until:
        if coap("ping", url)[0] == 0:
            return
        time.sleep(0.1)
    sys.exit(f"nobody answers at {url}")


def of_libcoap():
    """Our client, libcoap's server."""
    port = free_port()
    url = f"coap+tcp://127.0.0.1:{port}"
    name = "libcoap server over TCP"
    with process(SERVER, "-A", "127.0.0.1", "-p", str(port), "-d", "10"):
        wait_for(url)
        status, body, why = coap("get", f"{url}/")
        check(f"{name}: get", status == 0 and b"libcoap" in body, (body, why))
        status, body, _ = coap("discover", url)
        check(f"{name}: discover", status == 0 and b"</time>" in body, body)
        status, body, why = coap("observe", f"{url}/time", "--count", "3", "--json")
        codes = [json.loads(line)["code"] for line in body.splitlines()]
        check(f"{name}: observe", status == 0 and codes == ["2.05"] * 3, (body, why))
        status, _, why = coap("put", f"{url}/large", "--file", "-", stdin=BODY)
        check(f"{name}: put 100 KB", status == 0, why)
        status, body, why = coap("get", f"{url}/large")
        check(f"{name}: get 100 KB", status == 0 and body == BODY, (len(body), why))
        size = ("--block-size", "256")
        status, body, why = coap("get", f"{url}/large", *size)
        check(f"{name}: get it in blocks of 256", status == 0 and body == BODY, (len(body), why))
        status, _, why = coap("get", f"{url}/nothing")
        check(f"{name}: what is not there is 4.04", status == 1 and "4.04" in why, why)


def certificate(folder):
    """Makes an authority and a certificate of it; whether there is a tool for that."""
    os.makedirs(folder, exist_ok=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    with open(os.path.join(folder, "ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    for args in (
        ("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=interop"),
        ("req", *curve, "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=localhost"),
        ("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key",
         "-CAcreateserial", "-out", "cert.pem", "-days", "2", "-extfile", "ext"),
    ):
        done = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, check=False)
        if done.returncode != 0:
            return False
    return True


def of_libcoap_with_tls():
    """Our client, libcoap's server behind TLS."""
    folder, name = os.path.join(WORK, "tls"), "libcoap server over TLS"
    server = shutil.which("coap-server-openssl") or shutil.which("coap-server-gnutls")
    if server is None or shutil.which("openssl") is None or not certificate(folder):
        print(f"skip  {name}: no libcoap with TLS, or no openssl that makes certificates")
        return
    of = {file: os.path.join(folder, file) for file in ("ca.pem", "cert.pem", "key.pem")}
    port = free_port()
    # libcoap has TLS one port above.
    url = f"coaps+tcp://localhost:{port + 1}"
    os.environ["SSL_CERT_FILE"] = of["ca.pem"]
    args = ("-A", "127.0.0.1", "-p", str(port), "-d", "10", "-n")
    with process(server, *args, "-c", of["cert.pem"], "-j", of["key.pem"]):
        wait_for(url)
        status, _, why = coap("put", f"{url}/large", "--file", "-", stdin=BODY)
        check(f"{name}: put 100 KB", status == 0, why)
        status, body, why = coap("get", f"{url}/large")
        check(f"{name}: get 100 KB", status == 0 and body == BODY, (len(body), why))
        os.environ["SSL_CERT_FILE"] = of["key.pem"]
        status, _, why = coap("get", f"{url}/")
        check(f"{name}: not for who trusts nobody", status == 1 and "cannot reach" in why, why)
    del os.environ["SSL_CERT_FILE"]


def of_aiocoap():
    """Our client, a server of aiocoap, over TCP and over a WebSocket."""
    port = free_port()
    urls = {
        "aiocoap server over TCP": f"coap+tcp://127.0.0.1:{port}",
        "aiocoap server over WebSocket": f"coap+ws://127.0.0.1:{port + WEBSOCKET_OFFSET}",
    }
    with process(sys.executable, "server.py", str(port), ready=b"ready"):
        for name, url in urls.items():
            status, body, why = coap("ping", url)
            check(f"{name}: ping", status == 0 and b"is there" in body, (body, why))
            status, body, why = coap("get", f"{url}/large")
            check(f"{name}: get 100 KB", status == 0 and body == LARGE, (len(body), why))
            status, body, why = coap("put", f"{url}/stored", "--file", "-", stdin=BODY)
            check(f"{name}: put 100 KB", status == 0 and body == b"100000", (body, why))
            status, body, why = coap("fetch", f"{url}/stored", "--payload", "7")
            check(f"{name}: fetch", status == 0 and body == BODY[:7], (body, why))
            status, body, why = coap("observe", f"{url}/clock", "--count", "4")
            lines = body.split()
            check(f"{name}: observe", status == 0 and len(set(lines)) == 4, (body, why))
            status, body, why = coap("discover", url)
            check(f"{name}: discover", status == 0 and b"</large>" in body, (body, why))
            status, _, why = coap("delete", f"{url}/stored", "-v")
            check(f"{name}: delete", status == 0 and "2.02" in why, why)


def by_libcoap(by, origin):
    """libcoap's client through our gateway."""
    name = "libcoap client over TCP"
    body, why = libcoap("-P", by, "-m", "get", f"{origin}/small")
    check(f"{name}: get", b'{"a":1}' in body, (body, why))
    into = os.path.join(WORK, "large")
    with contextlib.suppress(FileNotFoundError):
        os.remove(into)
    _, why = libcoap("-P", by, "-m", "get", "-o", into, f"{origin}/large")
    with open(into, "rb") if os.path.exists(into) else contextlib.nullcontext() as file:
        body = file.read() if file else b""
    check(f"{name}: get 100 KB", body == LARGE, (len(body), why))
    upload = os.path.join(WORK, "upload")
    with open(upload, "wb") as file:
        file.write(UPLOAD)
    _, why = libcoap("-P", by, "-m", "put", "-f", upload, f"{origin}/by-libcoap-tcp")
    check(f"{name}: put 50 KB", Origin.stored.get("/by-libcoap-tcp") == UPLOAD, why)


async def by_aiocoap(by, origin):
    """aiocoap's client through our gateway."""
    name = "aiocoap client over TCP"
    context = await aiocoap.Context.create_client_context(transports=["tcpclient"])

    async def ask(code, path, **more):
        request = aiocoap.Message(code=code, **more)
        request.opt.proxy_uri = path if "://" in path else origin + path
        request.unresolved_remote = by.removeprefix("coap+tcp://")
        request.requested_scheme = "coap+tcp"
        return await asyncio.wait_for(context.request(request).response, MAX_STEP_S)

    answer = await ask(aiocoap.GET, "/small")
    good = answer.payload == b'{"a":1}' and int(answer.opt.content_format) == 50
    check(f"{name}: get", good, answer)
    answer = await ask(aiocoap.GET, "/large")
    check(f"{name}: get 100 KB", answer.payload == LARGE, len(answer.payload))
    answer = await ask(aiocoap.PUT, "/by-aiocoap-tcp", payload=BODY)
    good = answer.code == aiocoap.CREATED and Origin.stored.get("/by-aiocoap-tcp") == BODY
    check(f"{name}: put 100 KB", good, answer)
    many = await asyncio.gather(*(ask(aiocoap.GET, "/small") for _ in range(20)))
    check(f"{name}: 20 at once", all(one.payload == b'{"a":1}' for one in many), many)
    answer = await ask(aiocoap.GET, "http://127.0.0.1:9/")
    check(f"{name}: 5.05 for what is not allowed",
          answer.code == aiocoap.PROXYING_NOT_SUPPORTED, answer)
    await context.shutdown()


def by_clients():
    """The clients of others, and ours, through our gateway to an origin of HTTP."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    port = free_port()
    with gateway(origin, port, "--coap", f"127.0.0.1:{port}"):
        url = f"coap+tcp://127.0.0.1:{port}"
        status, body, why = coap("ping", url)
        check("our client over TCP: ping", status == 0 and b"is there" in body, (body, why))
        status, body, why = coap("get", f"{origin}/large", "--proxy", url)
        check("our client over TCP: get 100 KB", status == 0 and body == LARGE, why)
        by_libcoap(url, origin)
        asyncio.run(by_aiocoap(url, origin))
    server.shutdown()


if __name__ == "__main__":
    of_libcoap()
    of_libcoap_with_tls()
    of_aiocoap()
    by_clients()
    print(f"{len(FAILED)} failed" if FAILED else "all ok")
    sys.exit(1 if FAILED else 0)
