"""A worker for Pawl with nothing but Python's standard library.

    PAWL_URL=http://127.0.0.1:7070 PAWL_TOKEN=pawl_... python3 worker.py

docs/reference/worker-protocol.md describes the requests that it sends.
"""
import json, os, signal, socket, threading, time, traceback, urllib.error, urllib.request

URL = os.environ.get("PAWL_URL", "http://127.0.0.1:7070")
TOKEN = os.environ.get("PAWL_TOKEN")
WORKER = os.environ.get("PAWL_WORKER", f"{socket.gethostname()}-{os.getpid()}")
LEASE_MS = int(os.environ.get("PAWL_LEASE_MS", "30000"))


class LeaseLost(Exception):
    """Another worker may have the job: stop, and report nothing."""


class Suspended(BaseException):
    """The job waits, and its lease is gone: stop, and report nothing. Let it pass."""


class Mismatch(Exception):
    """The handler waits for other things than its earlier attempts."""


class Cancelled(Exception):
    """The cancellation of the job was asked for."""


def call(method, path, body=None, timeout=40):
    headers = {"content-type": "application/json"}
    if TOKEN:
        headers["authorization"] = f"Bearer {TOKEN}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        if problem["code"] in ("E_STALE_FENCE", "E_JOB_NOT_FOUND"):
            raise LeaseLost(problem["title"])
        raise RuntimeError(f"{problem['code']}: {problem['title']} {problem['hint']}")


class Attempt:
    """One attempt at a job. A thread renews its lease until the attempt ends."""

    def __init__(self, job):
        self.id, self.input, self.lease = job["id"], job["input"], job["lease"]
        self.results = {(s["name"], s["n"]): s["result"] for s in job["steps"]}
        self.counts, self.error, self.ended = {}, None, threading.Event()
        self.effects, self.waits, self.waited = [], job["waits"], 0

    def step(self, name, work):
        """Runs work once: a later attempt gets the result that an earlier one recorded."""
        n = self.counts[name] = self.counts.get(name, 0) + 1
        if (name, n) not in self.results:
            self.check()
            result = work()
            self.report("step", name=name, n=n, result=result)
            self.results[name, n] = result
        return self.results[name, n]

    def sleep(self, name, seconds):
        """Returns when the time has passed. The job holds nothing meanwhile."""
        self.wait("sleep", name, seconds)

    def wait_for_signal(self, name, seconds=None):
        """Returns the end of the wait: {"kind": "received", "payload", "by"}, or "passed"."""
        return self.wait("signal", name, seconds)

    def wait(self, what, name, seconds):
        n = self.counts[what, name] = self.counts.get((what, name), 0) + 1
        known = self.waits[self.waited] if self.waited < len(self.waits) else None
        self.waited += 1
        if known and (known["for"], known["name"]) != (what, name):
            raise Mismatch(f"it has waited for {known['for']} {known['name']}, now {what} {name}")
        if known and "end" in known:
            return known["end"]
        self.check()
        fields = {} if seconds is None else {"timeoutMs": int(seconds * 1000)}
        answer = self.report("wait", **{"for": what}, name=name, n=n, **fields)
        if answer["kind"] == "suspended":
            raise Suspended(name)
        return answer["end"]

    def check(self):
        """Call it in long work: raises if the attempt must not go on."""
        if self.error:
            raise self.error

    def report(self, verb, **fields):
        return call("POST", f"/api/v1/leases/{verb}", {"lease": self.lease, **fields})

    def renew(self):
        while not self.ended.wait(LEASE_MS / 3000):
            body = {"beats": [{"lease": self.lease}], "leaseMs": LEASE_MS}
            try:
                answer = call("POST", "/api/v1/leases/heartbeat", body, timeout=LEASE_MS / 3000)
            except (OSError, RuntimeError):
                continue  # The next beat may come through before the lease ends.
            if answer["lost"]:
                self.error = LeaseLost("the lease has ended")
            elif answer["cancelling"]:
                self.error = Cancelled("the cancellation was asked for")

    def run(self, handler):
        threading.Thread(target=self.renew, daemon=True).start()
        try:
            result = handler(self)
            self.check()
            self.report("commit", result=result, effects=self.effects)
        except (LeaseLost, Suspended):
            pass
        except Cancelled:
            self.report("cancel")
        except Exception as error:
            name, stack = type(error).__name__, traceback.format_exc()
            kind = "invalid_input" if isinstance(error, Mismatch) else "error"
            self.report("fail", message=str(error), name=name, kind=kind, stack=stack[-20000:])
        finally:
            self.ended.set()


def work(handlers, stopped):
    """Claims and runs jobs of these types until the event is set."""
    types = list(handlers)
    while not stopped.is_set():
        try:
            call("POST", f"/api/v1/workers/{WORKER}", {"types": types, "concurrency": 1})
            asked = {"worker": WORKER, "types": types, "leaseMs": LEASE_MS, "waitMs": 4000}
            for job in call("POST", "/api/v1/claim", asked)["jobs"]:
                Attempt(job).run(handlers[job["type"]])
        except (OSError, LeaseLost, RuntimeError) as error:
            print(f"trying again: {error}", flush=True)
            stopped.wait(1)
    call("DELETE", f"/api/v1/workers/{WORKER}")


def resize(attempt):
    """An example: two steps, and a result."""
    size = attempt.step("measure", lambda: len(attempt.input["name"]))
    print(f"resizing {attempt.id}", flush=True)
    time.sleep(float(os.environ.get("RESIZE_SECONDS", "0")))  # Stands for real work.
    return {"size": size * attempt.input.get("factor", 2)}


def publish(attempt):
    """An example that waits: for an hour at most for an answer, then for a moment."""
    attempt.step("ask", lambda: print(f"asking about {attempt.id}", flush=True))
    answer = attempt.wait_for_signal("approval", seconds=3600)
    if answer["kind"] == "passed" or not answer["payload"]["approved"]:
        return {"published": False}
    attempt.sleep("cool-off", 0.1)
    return {"published": True, "by": answer["by"]}


if __name__ == "__main__":
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    work({"resize": resize, "publish": publish}, stopped)
