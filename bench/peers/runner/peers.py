"""Who is measured, by which command, with how many tasks.

A slow peer gets fewer tasks, so that the whole run stays below twenty minutes; none gets fewer than
2,000 where a rate is measured.
"""

from dataclasses import dataclass

IDLE = ("idle latency p50", "idle latency p99", "idle latency max")
DELAYED = ("lateness p50", "lateness p99", "lateness max", "early")
FIGURES_OF = {
    "single": ("submit single",),
    "backlog": ("submit bulk", "drain"),
    "idle": IDLE,
    "delayed": DELAYED,
}
# Each round measures these again and the best counts; the others are distributions already.
REPEATED = ("single", "backlog")


@dataclass(frozen=True)
class Peer:
    name: str
    command: tuple  # without the arguments PEER PART TASKS
    store: str  # postgres, redis or sqlite
    parts: dict  # part → tasks
    without: tuple = ()  # figures that its interface cannot have

    def figures(self):
        every = (figure for part in self.parts for figure in FIGURES_OF[part])
        return [figure for figure in every if figure not in self.without]


def cargo(name, binary, store, parts):
    return Peer(name, (f"target/peers/cargo/release/{binary}",), store, parts)


def node(name, store, parts):
    return Peer(name, ("node", f"target/peers/node/{name}.mjs"), store, parts)


def sizes(single, backlog, idle, delayed=2000):
    return {"single": single, "backlog": backlog, "idle": idle, "delayed": delayed}


PEERS = [
    Peer(
        "celery",
        ("target/peers/venv/bin/python", "bench/peers/celery/driver.py"),
        "redis",
        sizes(2000, 3000, 200),
        without=("submit bulk",),
    ),
    node("bullmq", "redis", sizes(5000, 20_000, 300)),
    node("graphile-worker", "postgres", sizes(2000, 20_000, 300)),
    # Half a second each on the idle one.
    node("pg-boss", "postgres", sizes(2000, 40_000, 40)),
    cargo("apalis-postgres", "peer-apalis", "postgres", sizes(3000, 20_000, 300)),
    cargo("apalis-postgres-unlocked", "peer-apalis", "postgres", {"backlog": 20_000}),
    # From about 8,000 due tasks on its worker ends.
    cargo("apalis-redis", "peer-apalis", "redis", sizes(5000, 6000, 100)),
    cargo("apalis-redis-unlocked", "peer-apalis", "redis", {"backlog": 6000}),
    # Each fetch sorts all that wait.
    cargo("apalis-sqlite", "peer-apalis", "sqlite", sizes(5000, 2000, 300)),
    cargo("apalis-sqlite-tuned", "peer-apalis", "sqlite", {"backlog": 20_000}),
    cargo("river-postgres", "peer-river", "postgres", sizes(2000, 20_000, 100)),
    cargo("river-sqlite", "peer-river", "sqlite", sizes(2000, 10_000, 100)),
    cargo("awa", "peer-awa", "postgres", sizes(2000, 5000, 200)),
]
