"""Starts a broker for a client that is no Python: rhea=FOLDER or jms=FOLDER; see `check`."""

import subprocess
import sys

from peers import broker

MAX_RUN_S = 200


def main():
    kind, folder = sys.argv[1].split("=", 1)
    with broker() as (amqp, _):
        command = {
            "rhea": ["node", "rhea.js", str(amqp)],
            "jms": ["java", "-cp", f"{folder}/lib/*:{folder}", "Jms", str(amqp)],
        }[kind]
        sys.exit(subprocess.run(command, cwd=folder, timeout=MAX_RUN_S, check=False).returncode)


if __name__ == "__main__":
    main()
