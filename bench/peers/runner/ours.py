"""Our own figures of the same run: `duly bench`, and a lone client of the server."""

import json
import re
import socket
import subprocess
import time

from .install import ROOT, TARGET
from .shell import Failure, end_group, say

BINARY = ROOT / "target/release/duly"
PEER = "duly"
SINGLE = 5000
# The names that `duly bench` gives the figures that the peers have, too.
NAMES = {
    "engine: batch submit": "submit bulk",
    "engine: drain": "drain",
    "idle latency p50": "idle latency p50",
    "idle latency p99": "idle latency p99",
    "idle latency max": "idle latency max",
    "delayed: late p50": "lateness p50",
    "delayed: late p99": "lateness p99",
    "delayed: late max": "lateness max",
    "delayed: early": "early",
    "worker elsewhere: drain over HTTP": "drain over HTTP",
    "REST: single submit": "submit single, 64 connections",
}
FIGURES = ("submit single", *NAMES.values())
SETTINGS = "SQLite, WAL, synchronous FULL, embedded"
PAYLOAD = '{"number":1,"due_micros":1700000000000000,"text":"%s"}' % ("0123456789" * 4 + "012")


def version():
    return subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout.split()[-1]


def measure():
    """Rows like those of the peers; what fails is missing, which the end of the run reports."""
    rows = []
    try:
        rows.append(row("submit single", single(), "tasks/s", f"{SETTINGS}; duly dev over HTTP"))
        for figure in bench():
            if name := NAMES.get(figure["name"]):
                rows.append(row(name, figure["value"], figure["unit"], SETTINGS))
    except (Failure, OSError, subprocess.TimeoutExpired) as failure:
        say(f"duly FAILED: {failure}")
    return rows


def row(figure, value, unit, settings):
    return {
        "peer": PEER, "version": version(), "figure": figure,
        "value": value, "unit": unit, "settings": settings,
    }


def bench():
    """All figures of `duly bench`; that it misses a target of its own is not our concern here."""
    say("duly bench: minutes")
    command = [BINARY, "bench", "-o", "json", "--only", "engine,rest,remote,punctuality", "--store", f"sqlite:{TARGET}"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=900).stdout
    if not output.strip():
        raise Failure("duly bench printed nothing: run it by hand")
    return json.loads(output)["figures"]


def single():
    """Submits per second of one client that waits for each answer, over HTTP.

    The handlers are off, as with the peers: only the submit counts.
    """
    data = TARGET / "ours"
    command = [BINARY, "dev", "--listen", "127.0.0.1:0", "--concurrency", "0", "--data", data]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        host, port = server.stdout.readline().strip().removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return post_often(connection, host)
    finally:
        end_group(server.pid)
        server.wait()


def post_often(connection, host):
    body = f'{{"type":"echo","payload":{PAYLOAD}}}'
    head = f"POST /tasks HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    post(connection, request)  # the first one warms up
    begin = time.monotonic()
    for _ in range(SINGLE):
        post(connection, request)
    return SINGLE / (time.monotonic() - begin)


def post(connection, request):
    """By hand: the standard client costs more than the server does."""
    connection.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += more(connection)
    head, body = answer.split(b"\r\n\r\n", 1)
    if not re.match(rb"HTTP/1.1 20\d ", head):
        raise Failure(f"duly dev answered {head[:80]!r}")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        body += more(connection)


def more(connection):
    chunk = connection.recv(65536)
    if not chunk:
        raise Failure("duly dev closed the connection")
    return chunk
