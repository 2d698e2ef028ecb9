"""Our own figures of the same run: `duly bench`, and a lone client of the server."""

import json
import os
import re
import socket
import subprocess
import time

from .install import ROOT, TARGET
from .shell import Failure, end_group, say

BINARY = ROOT / "target/release/duly"
PEER = "duly"
PEER_POSTGRES = "duly-postgres"
NAMES_OF_OURS = (PEER, PEER_POSTGRES)
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
    "REST: batch submit": "submit bulk over HTTP",
    "remote worker: drain over HTTP": "drain over HTTP",
    "REST: single submit": "submit single, 64 connections",
}
FIGURES = ("submit single", *NAMES.values())
SETTINGS = {
    PEER: "SQLite, WAL, synchronous FULL, embedded",
    PEER_POSTGRES: "PostgreSQL, synchronous_commit on, one node",
}
PAYLOAD = '{"number":1,"due_micros":1700000000000000,"text":"%s"}' % ("0123456789" * 4 + "012")


def version():
    return subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout.split()[-1]


def measure(names, stores):
    """Rows like those of the peers; what fails is missing, which the end of the run reports."""
    rows = []
    for name in names:
        try:
            rows.extend(measure_one(name, stores))
        except (Failure, OSError, subprocess.TimeoutExpired) as failure:
            say(f"{name} FAILED: {failure}")
    return rows


def measure_one(peer, stores):
    rows = [row(peer, "submit single", single(peer, stores), "tasks/s", "; over HTTP")]
    store = f"sqlite:{TARGET}" if peer == PEER else f"{stores.postgres}/postgres"
    for figure in bench(peer, store):
        if name := NAMES.get(figure["name"]):
            rows.append(row(peer, name, figure["value"], figure["unit"]))
    return rows


def row(peer, figure, value, unit, remark=""):
    return {
        "peer": peer, "version": version(), "figure": figure,
        "value": value, "unit": unit, "settings": SETTINGS[peer] + remark,
    }


def bench(peer, store):
    """All figures of `duly bench`; that it misses a target of its own is not our concern here."""
    say(f"{peer}: duly bench, minutes")
    command = [BINARY, "bench", "-o", "json", "--only", "engine,rest,remote,punctuality"]
    environment = os.environ | {"DULY_BENCH_STORE": store}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=900, env=environment).stdout
    if not output.strip():
        raise Failure("duly bench printed nothing: run it by hand")
    return json.loads(output)["figures"]


def single(peer, stores):
    """Submits per second of one client that waits for each answer, over HTTP.

    The handlers are off, as with the peers: only the submit counts.
    """
    environment = stores.fresh("sqlite" if peer == PEER else "postgres")
    if peer == PEER:
        command = [BINARY, "dev", "--concurrency", "0", "--data", environment["PEER_DATA"]]
    else:
        command = [BINARY, "serve", "--insecure", "--roles", "api,scheduler"]
        environment["DULY_STORE"] = environment["DATABASE_URL"]
    server = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
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
        raise Failure(f"duly answered {head[:80]!r}")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        body += more(connection)


def more(connection):
    chunk = connection.recv(65536)
    if not chunk:
        raise Failure("duly closed the connection")
    return chunk
