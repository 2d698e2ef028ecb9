"""A Duly worker on the standard library alone: python3 worker.py [SERVER]. See README.md."""
import http.client, json, os, random, signal, sys, threading, time, urllib.error, urllib.request

HANDLERS = {"word-count": lambda payload: {"words": len(payload["text"].split())}}  # add yours
SERVER, SLOTS, JSON = (sys.argv[1:] or ["http://127.0.0.1:8080"])[0], 4, {"Content-Type": "application/json"}
session, waiting, running, outcomes, gone = {"seq": 0}, [], [], [], set()  # waiting, running: tasks held
claiming, sending, stop = threading.Lock(), threading.Lock(), threading.Event()

def call(path, body=None, method="POST", timeout=5, wait=0.05):  # answers None if the session has ended
    while True:  # every request is safe to repeat
        request = urllib.request.Request(f"{SERVER}/v1{path}", body and json.dumps(body).encode(), JSON, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer: return json.loads(answer.read() or "{}")
        except urllib.error.HTTPError as error:
            if b"SESSION_NOT_FOUND" in (problem := error.read()): return None
            if error.code < 500 and error.code != 429: raise RuntimeError(problem)
            wait = float(error.headers.get("Retry-After") or min(2 * wait, 2))
        except (OSError, http.client.HTTPException, ValueError): wait = min(2 * wait, 2)  # no answer
        time.sleep(wait * random.uniform(1, 1.5))

def claim():
    if not session["seq"]: session.update(call("/sessions", {"name": f"py-{os.getpid()}", "types": [*HANDLERS]}), seq=1)
    ask = {"sessionId": session["sessionId"], "seq": session["seq"], "max": SLOTS, "waitSeconds": 20}
    if not (answer := call("/leases", ask, timeout=25)): return session.update(seq=0)  # register again
    session["seq"] += bool(answer["leases"])  # goes up only after leases have arrived
    waiting.extend(lease["task"] | {"epoch": lease["epoch"], "seq": ask["seq"]} for lease in answer["leases"])

def slot():
    while not stop.is_set():
        with claiming:  # one claim at a time; what it brings waits for the next free slots
            if not waiting and not stop.is_set(): claim()  # or a session would open after the last one was left
            if not waiting or stop.is_set(): continue
            running.append(task := waiting.pop(0))
        try: finish(task, run(task))
        except Exception as error: print(error, file=sys.stderr)  # refused: the server ends the lease in time
        running.remove(task)

def run(task):  # a thread cannot be stopped: after timeoutSeconds the server takes the task back
    if (task["taskId"], task["epoch"]) in gone: return {"outcome": "release"}
    try: return {"outcome": "success", "result": HANDLERS[task["type"]](task["payload"])}
    except Exception as error: return {"outcome": "retry", "error": {"code": "PYTHON", "message": repr(error)}}

def finish(task, ended):
    outcomes.append({"taskId": task["taskId"], "epoch": task["epoch"], **ended})
    with sending:  # takes along what has piled up while the last call was under way
        batch, outcomes[:] = outcomes[:1000], outcomes[1000:]
        if batch: call("/leases/finish", {"sessionId": session["sessionId"], "outcomes": batch})

def beat():
    body = {"received": [*{task["seq"] for task in waiting + running}], "unstarted": [task["taskId"] for task in waiting]}
    answer = call(f"/sessions/{session['sessionId']}/heartbeat", body) or {"lost": waiting, "cancel": [], "drain": False}
    gone.update((task["taskId"], task["epoch"]) for task in answer["lost"] + answer["cancel"])
    if answer["drain"]: stop.set()

for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, lambda *_: stop.set())
for _ in range(SLOTS): threading.Thread(target=slot, daemon=True).start()
while not stop.wait(session.get("heartbeatSeconds", 0.1)): beat() if "sessionId" in session else None
while waiting: finish(waiting.pop(), {"outcome": "release"})  # hand back what has not started
while running: beat() or time.sleep(0.1)  # what runs may finish; a late claim's tasks go back below
if "sessionId" in session: call(f"/sessions/{session['sessionId']}", method="DELETE")
