"""Drives Celery on Redis, by the same definitions as bench/peers/node/measure.mjs and
bench/peers/rust/src. Called as `driver.py PEER PART TASKS` on an empty store; prints one line of
JSON per figure.

Settings and where they are recommended:

| setting | source |
|---|---|
| prefork pool, one process per core | user guide, "Workers", "Concurrency": the default |
| worker_prefetch_multiplier 64 | user guide, "Optimizing", "Prefetch Limits", for many short tasks |
| task_ignore_result | user guide, "Tasks", "Tips and Best Practices" |
| acknowledged before it runs | the default, task_acks_late is off |

There is no call that submits many tasks: a group sends them one by one.
"""

import json
import mmap
import os
import signal
import sys
import time
from datetime import datetime, timezone

import celery

PAUSE = 0.010  # between lone tasks
LEAD = 15.0  # from the first submit of delayed tasks to the first due time; one by one takes longer
SPREAD = 10.0  # over so long the delayed tasks are due
TEXT = "0123456789012345678901234567890123456789012"  # fills the payload up to about 100 bytes
SETTINGS = "prefork, one process per core, prefetch multiplier 64, results ignored, early acknowledgement"

app = celery.Celery("bench", broker=os.environ.get("REDIS_URL"))
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=64,
    broker_connection_retry_on_startup=True,
)
starts = None  # set before the worker is forked, so that all of its processes share it


class Starts:
    """When each task started, in memory that the processes of the worker share."""

    def __init__(self, tasks):
        size = 8 * (tasks + 1)  # one more for the warm-up
        self.at = memoryview(mmap.mmap(-1, size)).cast("d")
        self.late = memoryview(mmap.mmap(-1, size)).cast("d")

    def record(self, number, due_micros):
        if self.at[number] == 0.0:  # a task that runs twice counts once
            self.late[number] = time.time() * 1000 - due_micros / 1000
            self.at[number] = time.monotonic()  # comparable between processes on Linux

    def wait(self, numbers):
        """Until these have started. Looking does not change what the worker wrote down."""
        for number in numbers:
            while self.at[number] == 0.0:
                time.sleep(0.001)


@app.task
def noop(number, due_micros, text):
    starts.record(number, due_micros)


def submit(number):
    noop.delay(number, int(time.time() * 1e6), TEXT)


def start_worker():
    """The worker as the command line starts it, in a process of its own."""
    pid = os.fork()
    if pid == 0:
        options = ["--loglevel=ERROR", f"--concurrency={os.cpu_count()}", "--without-gossip", "--without-mingle"]
        os.dup2(2, 1)  # its banner must not mix with the figures
        app.worker_main(["worker", *options])
        os._exit(0)
    return pid


def single(tasks):
    begin = time.monotonic()
    for number in range(tasks):
        submit(number)
    return [("submit single", tasks / (time.monotonic() - begin), "tasks/s")], None


def backlog(tasks):
    for number in range(tasks):
        submit(number)
    worker = start_worker()
    starts.wait(range(tasks))
    at = starts.at[:tasks].tolist()
    # No-ops: the start of the last is its end.
    return [("drain", tasks / (max(at) - min(at)), "tasks/s")], worker


def idle(tasks):
    worker = start_worker()
    submit(tasks)
    starts.wait([tasks])
    millis = []
    for number in range(tasks):
        time.sleep(PAUSE)
        submitted = time.monotonic()
        submit(number)
        starts.wait([number])
        millis.append((starts.at[number] - submitted) * 1000)
    return percentiles("idle latency", millis), worker


def delayed(tasks):
    worker = start_worker()
    submit(tasks)
    starts.wait([tasks])
    begin = int(time.time() * 1000) / 1000 + LEAD
    for number in range(tasks):
        due = begin + int(SPREAD * 1000 * number / tasks) / 1000
        eta = datetime.fromtimestamp(due, timezone.utc)
        noop.apply_async((number, round(due * 1e6), TEXT), eta=eta)
    if time.time() > begin:
        raise SystemExit(f"storing {tasks} delayed tasks took longer than {LEAD} s")
    starts.wait(range(tasks))
    millis = starts.late[:tasks].tolist()
    early = sum(late < 0 for late in millis)
    return percentiles("lateness", millis) + [("early", early, "tasks")], worker


def percentiles(figure, millis):
    millis.sort()
    shares = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
    return [(f"{figure} {label}", millis[int((len(millis) - 1) * share)], "ms") for label, share in shares]


def main():
    global starts
    name, part, tasks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    starts = Starts(tasks)
    parts = {"single": single, "backlog": backlog, "idle": idle, "delayed": delayed}
    figures, worker = parts[part](tasks)
    for figure, value, unit in figures:
        row = {"peer": name, "version": celery.__version__, "figure": figure}
        print(json.dumps(row | {"value": value, "unit": unit, "settings": SETTINGS}), flush=True)
    if worker:
        os.kill(worker, signal.SIGTERM)
        os.waitpid(worker, 0)


if __name__ == "__main__":
    main()
