#!/usr/bin/env python3
"""The example in C of the client for devices, against services behind gateways.

LONGWIRE names the binary, LIBRARY the static library, WORK a folder. Exit status 1 where one line
says FAIL. What the machine lacks (valgrind, sanitizers, Kannel, namespaces) is said and left out.
"""

import os
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
POCKET = os.path.join(HERE, "..", "..", "crates", "pocket-c")
sys.path.insert(0, os.path.join(HERE, "..", "wsp"))

from kannel import WSP_PORT, Kannel, is_free  # noqa: E402

LONGWIRE = os.environ["LONGWIRE"]
WORK = os.environ["WORK"]
TRACKS = "urn:longwire:tracks:1"
START_S = 20
LOST = "loss=10 %"
MOST_ROOM = 16384

good = True


def tell(well, what):
    global good
    good &= bool(well)
    print(f"{'ok  ' if well else 'FAIL'} {what}", flush=True)


CALL = os.path.join(POCKET, "examples", "call.c")
INCLUDE = os.path.join(POCKET, "include")


def build(name, *flags, source=CALL):
    program = os.path.join(WORK, name)
    command = ["cc", "-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", *flags,
               "-I", INCLUDE, "-o", program, source, os.environ["LIBRARY"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [program] if done.returncode == 0 else None, done.stderr


def clients():
    """Ways to run the example, by name."""
    plain, errors = build("call")
    tell(plain, "the example builds with -Wall -Wextra -Werror")
    if not plain:
        print(errors)
        return {}
    found = {"plain": plain}
    sanitized, _ = build("call-asan", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    if sanitized:
        found["address sanitizer"] = sanitized
    else:
        print("skip address sanitizer: the compiler has none")
    if shutil.which("valgrind"):
        found["valgrind"] = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", *plain]
    else:
        print("skip valgrind: apt install valgrind")
    return found


def with_other_types():
    """Programs whose compiler has enums of one byte, as those for devices have, and of C++."""
    for name, flags in [("enums", []), ("enums-short", ["-fshort-enums"])]:
        program, errors = build(name, *flags, source=os.path.join(HERE, "enums.c"))
        done = program and subprocess.run(program, capture_output=True, text=True, check=False)
        said = done.stdout.strip() if done else errors
        tell(done and done.returncode == 0, f"{name}: the content of a request arrives, {said}")
    if not shutil.which("c++"):
        print("skip C++: apt install g++")
        return
    done = subprocess.run(["c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           "-x", "c++", os.path.join(INCLUDE, "longwire.h")],
                          capture_output=True, text=True, check=False)
    tell(done.returncode == 0, f"C++ reads the header {done.stderr}".rstrip())


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening(command):
    """A process that says where it listens, and that address."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    return process, line.removeprefix("listening on ").strip()


def call(program, *arguments, timeout=120):
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=timeout,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def with_the_least_room(name, program, options, port, url):
    """One byte too few for the answer is an error, and to the byte enough is enough."""
    def run(room):
        return call(program, *options, "-r", str(room), "127.0.0.1", str(port), url, TRACKS,
                    "GetTrack", "number", "7")

    status, _, err = run(MOST_ROOM)
    if status != 0:
        tell(False, f"{name}, {' '.join(options)}, a room of {MOST_ROOM}: {err.strip()}")
        return
    # What is too little, and what is enough: the answer, and what is around it.
    little, enough = int(err.split(" and ")[1].split()[0]) - 1, MOST_ROOM
    others = set()
    while enough - little > 1:
        room = (little + enough) // 2
        status, _, err = run(room)
        if status == 0:
            enough = room
        else:
            little = room
            others.add((status, err.strip()))
    wrong = others - {(1, "call: buffer too small")}
    tell(others and not wrong,
         f"{name}, {' '.join(options)}: {enough} bytes of room are enough, one less is too few "
         f"{' '.join(f'{status}: {err}' for status, err in wrong)}".rstrip())


def through_ours(found):
    service, address = listening([LONGWIRE, "serve", "tracks", "--listen", "127.0.0.1:0"])
    wsp, coap = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    gateway, _ = listening([LONGWIRE, "gateway", "--listen", "127.0.0.1:0", "--insecure-plain",
                            "--allow", f"http://{address}", "--wsp", f"127.0.0.1:{wsp}",
                            "--coap", f"127.0.0.1:{coap}"])
    url = f"http://{address}/soap"
    try:
        answers = set()
        for name, program in found.items():
            for options, port in [(["-f", "xml"], wsp), (["-f", "wbxml"], wsp),
                                  (["-f", "wbxml", "-n"], wsp),
                                  (["-p", "coap", "-f", "xml"], coap)]:
                status, out, err = call(program, *options, "127.0.0.1", str(port), url, TRACKS,
                                        "GetTrack", "number", "7")
                answers.add(out)
                tell(status == 0 and "NFFIMessage" in out,
                     f"{name}, {' '.join(options)}: {err.strip()}")
            for options, port in [(["-f", "wbxml"], wsp), (["-p", "coap", "-f", "xml"], coap)]:
                with_the_least_room(name, program, options, port, url)
            status, _, err = call(program, "127.0.0.1", str(wsp), url, TRACKS, "GetTrack",
                                  "number", "77")
            tell(status == 1 and "no track '77'" in err, f"{name}, a fault: {err.splitlines()[1]}")
            status, _, err = call(program, "-t", "1500", "127.0.0.1",
                                  str(free_port(socket.SOCK_DGRAM)), url, TRACKS, "GetTrack")
            tell(status == 1 and "no answer in time" in err, f"{name}, nobody there: {err.strip()}")
        tell(len(answers) == 1, "all forms and protocols bring the same answer")
    finally:
        for process in (gateway, service):
            process.terminate()
            process.wait()


def through_kannel(found):
    if not shutil.which("bearerbox") or not is_free():
        print("skip Kannel: apt install kannel, and its ports must be free")
        return
    service, address = listening([LONGWIRE, "serve", "tracks", "--listen", "127.0.0.1:0"])
    kannel = Kannel(WORK)
    url = f"http://{address}/soap"
    try:
        until = time.monotonic() + START_S
        while not kannel.listens() and kannel.runs() and time.monotonic() < until:
            time.sleep(0.1)
        kannel.start_wapbox()
        status, out, err = 1, "", ""
        # Its second box says nothing when it is ready: calls are repeated until one is answered.
        while status != 0 and kannel.runs() and time.monotonic() < until:
            status, out, err = call(found["plain"], "-t", "2000", "-f", "xml", "127.0.0.1",
                                    str(WSP_PORT), url, TRACKS, "GetTrack", "number", "7")
        tell(status == 0 and "NFFIMessage" in out,
             f"through Kannel to an unmodified SOAP service: {err.strip()}")
    finally:
        kannel.stop()
        service.terminate()
        service.wait()


def over_a_lossy_link(found):
    lab = f"pocket-{os.getpid()}"
    up = subprocess.run([LONGWIRE, "lab", "up", lab, "--link", "wifi3", "--set", LOST, "--detach"],
                        capture_output=True, text=True, check=False)
    if up.returncode != 0:
        print(f"skip the lossy link: {up.stderr.strip().splitlines()[-1:]}")
        return
    there = []

    def at(host, *command):
        return [LONGWIRE, "lab", "exec", lab, host, "--", *command]

    try:
        there.append(listening(at("b", LONGWIRE, "serve", "tracks", "--listen", "127.0.0.1:8080")))
        there.append(listening(at("b", LONGWIRE, "gateway", "--listen", "127.0.0.1:0",
                                  "--insecure-plain", "--allow", "http://127.0.0.1:8080",
                                  "--wsp", ":9200", "--wsp-anywhere",
                                  "--coap", ":5683", "--coap-anywhere")))
        hosts = subprocess.run(at("a", "getent", "ahostsv4", "b"), capture_output=True, text=True,
                               check=False)
        host = hosts.stdout.split()[0]
        url = "http://127.0.0.1:8080/soap"
        name, program = next(reversed(found.items()))
        for options, port, count in [(["-f", "wbxml"], "9200", 20),
                                     (["-p", "coap", "-f", "xml"], "5683", 10)]:
            answered, sent, least = 0, 0, 10**9
            for _ in range(count):
                status, out, err = call(at("a", *program), *options, host, port, url, TRACKS,
                                        "GetTrack", "number", "1")
                well = status == 0 and "NFFIMessage" in out
                answered += well
                if well:
                    copies = int(err.split(" sent")[0].split()[-1])
                    sent, least = sent + copies, min(least, copies)
                else:
                    print(f"     {status}: {err.strip()}")
            tell(answered >= count - 1 and sent > least * answered,
                 f"{name}, {' '.join(options)}, {LOST} each way: {answered} of {count} answered, "
                 f"{sent} datagrams sent")
    finally:
        subprocess.run([LONGWIRE, "lab", "down", lab], capture_output=True, check=False)
        for process, _ in there:
            process.wait()


def main():
    found = clients()
    with_other_types()
    if found:
        through_ours(found)
        through_kannel(found)
        over_a_lossy_link(found)
    sys.exit(0 if good else 1)


main()
