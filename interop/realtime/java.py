#!/usr/bin/env python3
"""RT-SOA's five profiles on Axis2: what the runtime axis is to a service in Java.

  LONGWIRE=target/release/longwire WORK=target/interop/realtime interop/realtime/java.py [--duration 80]

A real-time runtime is ZGC with memory that was touched, an ordinary one the parallel collector without
tiered compilation, which is nearest to the paper's. A real-time engine or worker are its threads in
SCHED_FIFO, set from outside, as a Java machine has no such threads. Messages are those of
`longwire produce`; the first 20 s are left out. Microseconds. Axis2 listens at all addresses, so that
the run has a network namespace of its own. A measurement, not a check: `check` does not run it. It
wants root, mvn and a JDK of 17 or later.
"""

import argparse
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LONGWIRE, WORK = os.path.abspath(os.environ["LONGWIRE"]), os.path.abspath(os.environ["WORK"])
# Profile: runtime, engine and worker are real-time.
PROFILES = {1: (True, True, True), 2: (True, False, True), 3: (True, True, False),
            4: (True, False, False), 5: (False, False, False)}
MEMORY = ("-Xms512m", "-Xmx512m")
RUNTIMES = {True: ("-XX:+UseZGC", "-XX:+AlwaysPreTouch"),
            False: ("-XX:+UseParallelGC", "-XX:-TieredCompilation")}
WORKER, ENGINE = 70, 60
PORT = 8096
WARM_UP_S = 20
# How often threads that came are looked for: Axis2 makes one for each connection.
LOOK_S = 0.2
MAX_READY_S, MAX_END_S = 90, 60
LATE_US = 300
# Set for the second start of this program, in the namespace: where the consumer is.
FOLDER = "AXIS2_FOLDER"


def prepared():
    """The class path of the consumer."""
    folder = os.path.join(WORK, "axis2")
    os.makedirs(os.path.join(folder, "repository"), exist_ok=True)
    shutil.copy(os.path.join(HERE, "axis2", "pom.xml"), folder)
    subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"],
                   cwd=folder, check=True)
    subprocess.run(["javac", "-cp", os.path.join(folder, "lib", "*"), "-d", folder,
                    os.path.join(HERE, "axis2", "Consumer.java")], check=True)
    return folder


def raised(pid, engine, worker, stop):
    """Sets threads of the process real-time as they come, until told to stop."""
    wanted = [("worker", WORKER, worker), ("Http", ENGINE, engine)]
    done = set()
    while not stop.wait(LOOK_S):
        for path in glob.glob(f"/proc/{pid}/task/*/comm"):
            thread = int(path.split("/")[-2])
            try:
                with open(path, encoding="utf-8") as comm:
                    name = comm.read().strip()
                for begin, priority, is_wanted in wanted:
                    if is_wanted and thread not in done and name.startswith(begin):
                        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
                        done.add(thread)
            except (FileNotFoundError, ProcessLookupError):
                continue


def run(folder, profile, duration_s):
    runtime, engine, worker = PROFILES[profile]
    samples = os.path.join(WORK, f"axis2-{profile}.txt")
    command = ["java", *MEMORY, *RUNTIMES[runtime], "--add-opens", "java.base/java.lang=ALL-UNNAMED",
               "-cp", f"{folder}:{folder}/lib/*", "Consumer", str(PORT),
               os.path.join(folder, "repository"), samples]
    with open(os.path.join(WORK, f"axis2-{profile}.log"), "w", encoding="utf-8") as log:
        consumer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    alarm = threading.Timer(MAX_READY_S, consumer.kill)
    alarm.start()
    while (line := consumer.stdout.readline()) != "ready\n":
        if not line:
            sys.exit(f"axis2 ended before it was ready; see {log.name}")
    alarm.cancel()
    stop = threading.Event()
    raising = threading.Thread(target=raised, args=(consumer.pid, engine, worker, stop))
    raising.start()
    try:
        produced = subprocess.run(
            [LONGWIRE, "produce", "--url", f"http://127.0.0.1:{PORT}/axis2/services/consumer",
             "--duration", f"{duration_s} s", "--same-clock", "--real-time", "--json"],
            capture_output=True, text=True, timeout=duration_s + MAX_READY_S, check=False)
    finally:
        stop.set()
        raising.join()
        consumer.send_signal(signal.SIGTERM)
        consumer.wait(MAX_END_S)
    if not produced.stdout:
        sys.exit(f"produce: {produced.stderr.strip()}")
    times, refused = [], 0
    with open(samples, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[0] == "refused":
                refused = int(words[1])
            else:
                times.append([int(word) for word in words])
    first = min(stored for _, _, stored in times)
    kept = [each for each in times if each[2] >= first + WARM_UP_S * 10**9]
    return json.loads(produced.stdout), kept, refused


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(profile, produced, times, refused):
    inside = sorted((stored - handed) / 1e3 for _, handed, stored in times)
    before = sorted((handed - sent) / 1e3 for sent, handed, _ in times)
    whole = sorted((stored - sent) / 1e3 for sent, _, stored in times)
    return {
        "profile": profile, "samples": len(times), "due": produced["due"],
        "accepted": produced["accepted"], "refused": refused,
        "t2_t1_mean_us": statistics.fmean(inside), "t2_t1_p99_us": at(inside, 0.99),
        "t2_t1_p999_us": at(inside, 0.999), "t2_t1_max_us": inside[-1],
        "over_300_us": sum(each > LATE_US for each in inside), "t1_t0_p99_us": at(before, 0.99),
        "t2_t0_mean_us": statistics.fmean(whole), "t2_t0_max_us": whole[-1],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=int, default=80, help="seconds for each profile")
    parser.add_argument("--profiles", default="1,2,3,4,5")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.duration <= WARM_UP_S:
        sys.exit(f"--duration {options.duration}: the first {WARM_UP_S} s do not count; give more")
    folder = os.environ.get(FOLDER)
    if folder is None:
        os.environ[FOLDER] = prepared()
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    rows = []
    for profile in (int(word) for word in options.profiles.split(",")):
        began = time.monotonic()
        rows.append(row(profile, *run(folder, profile, options.duration)))
        print(f"profile {profile}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.json:
        print(json.dumps(rows))
        return
    print("| profile | T2-T1 mean | p99 | p99.9 | max | over 300 us | T1-T0 p99 | T2-T0 mean | max | "
          "entities | accepted |\n| --- |" + " ---: |" * 10)
    for each in rows:
        print(f"| {each['profile']} | {each['t2_t1_mean_us']:.0f} | {each['t2_t1_p99_us']:.0f} | "
              f"{each['t2_t1_p999_us']:.0f} | {each['t2_t1_max_us']:.0f} | {each['over_300_us']} | "
              f"{each['t1_t0_p99_us']:.0f} | {each['t2_t0_mean_us']:.0f} | {each['t2_t0_max_us']:.0f} | "
              f"{each['samples']} | {each['accepted']} of {each['due']} |")


main()
