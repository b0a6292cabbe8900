# SPDX-License-Identifier: Apache-2.0
"""A host for Weir, by the contract in README.md: python3 host.py PORT [CORES]. Sleeping stands for its work."""
import collections, http.server, json, random, sys, threading, time, urllib.parse

PORT, CORES = int(sys.argv[1]), int((sys.argv + ["2"])[2])
KEYS, FETCH, RUN = 100, 0.05, 0.01  # keys that the cache has room for; seconds of a job
CLASSES = {"high": 0, "low": 16}  # as `priorities` in the filter's configuration
lock, core = threading.RLock(), threading.Semaphore(CORES)
queued, busy, jobs, waited, delay = dict.fromkeys(CLASSES.values(), 0), 0, 0, 0.0, 0.0
cache, epoch, version, log = {}, random.getrandbits(63), 0, collections.deque(maxlen=1000)

def page():
    lines = [f'queued{{priority="{of}"}} {number}' for of, number in queued.items()]
    lines += [f"in_progress {busy + sum(queued.values())}", f"busy_cores {busy}", f"cores {CORES}"]
    lines += [f"queuing_delay_seconds_sum {waited}", f"queuing_delay_seconds_count {jobs}"]
    return "".join(f"weir_host_{line}\n" for line in lines)

def orca(**costs):
    figures = {f"queued.{of}": number for of, number in queued.items()}
    figures |= {"in_progress": busy + sum(queued.values()), "busy_cores": busy, "queuing_delay_seconds": delay}
    parts = [f"named_metrics.weir.{name}={value}" for name, value in figures.items()]
    return "TEXT " + ",".join(parts + [f"request_cost.weir.{name}={value}" for name, value in costs.items()])

def contents(query):  # the net change since `since`; everything where that is not known
    since = int(query.get("since", 0))
    reset = query.get("epoch") != str(epoch) or not version - len(log) <= since <= version
    changed = set(cache) if reset else {key for number, key in log if number > since}
    added, removed = [key for key in changed if key in cache], [key for key in changed if key not in cache]
    return json.dumps({"version": version, "epoch": epoch, "reset": reset, "added": added, "removed": removed})

def keep(key):
    global version
    cache[key] = f"data of {key}"
    for changed in [key] + [old for old in list(cache)[:-KEYS] if cache.pop(old)]:
        version += 1
        log.append((version, changed))

def job(key, of, may_wait):
    global busy, jobs, waited, delay
    with lock:
        if may_wait and busy == CORES and (sum(queued.values()) + 1) * RUN / CORES > int(may_wait.split(";")[0]) / 1e6:
            return 429, "", {"x-weir-bounced": "1", "endpoint-load-metrics": orca()}
        queued[of] += 1
    came = time.monotonic()
    with core:
        with lock:
            delay, costs = time.monotonic() - came, {"run_seconds": RUN}
            queued[of], busy, jobs, waited = queued[of] - 1, busy + 1, jobs + 1, waited + delay
            if key and key not in cache:
                costs["fetch_seconds"] = FETCH
        time.sleep(sum(costs.values()))
        with lock:
            busy -= 1
            if "fetch_seconds" in costs:
                keep(key)
            return 200, f"{cache.get(key)} of {PORT}\n", {"endpoint-load-metrics": orca(**costs)}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, log_message = "HTTP/1.1", True, lambda *_: None

    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        url, status, headers = urllib.parse.urlsplit(self.path), 200, {}
        if url.path in ("/metrics", "/cache"):
            with lock:
                text = page() if url.path == "/metrics" else contents(dict(urllib.parse.parse_qsl(url.query)))
        else:
            key, of, may_wait = map(self.headers.get, ["x-weir-key", "x-weir-priority", "x-weir-may-wait"])
            status, text, headers = job(key, CLASSES.get(of, 16), may_wait)
        self.send_response(status)
        for name, value in {"content-length": len(text.encode()), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET

http.server.ThreadingHTTPServer.request_queue_size = 1024  # of 5 a burst would wait for seconds
http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
