#!/usr/bin/python3
"""metrics_test.py PROGRAM: has the observer's metrics read by Prometheus' own parser of OpenMetrics. 77: there is none.

PROGRAM says where it answers, with the token, and goes on until its input ends.
"""
import subprocess
import sys
import tempfile
import urllib.request


def main():
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    except ImportError:
        print("SKIPPED: no prometheus_client here (Debian's python3-prometheus-client)")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        observed = subprocess.Popen([sys.argv[1], scratch + "/weft"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            url, token = observed.stdout.readline().split()

            def scrape():
                request = urllib.request.Request(url + "metrics", headers={"Authorization": "Bearer " + token})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"), answer.headers
                    return {family.name: family for family in parse(answer.read().decode())}

            first = scrape()
            while True:  # until the workers have run jobs
                second = scrape()
                if sum(one.value for one in second["weft_worker_jobs"].samples) > sum(one.value for one in first["weft_worker_jobs"].samples):
                    break
        finally:
            observed.stdin.close()
            observed.wait()
    for name, kind in {"weft_build": "info", "weft_worker_jobs": "counter", "weft_worker_awake_seconds": "counter", "weft_worker_waiting_jobs": "gauge",
                       "weft_pool_workers": "gauge", "weft_tasks": "gauge", "weft_deadlocks": "gauge", "process_cpu_seconds": "counter",
                       "process_resident_memory_bytes": "gauge", "weft_observer_answers": "counter"}.items():
        assert second[name].type == kind, (name, second.get(name))
        assert second[name].samples, name
    assert {one.labels["pool"] for one in second["weft_pool_workers"].samples} == {"serve", "<b>batch</b>"}, second["weft_pool_workers"]
    for name, family in first.items():
        if family.type != "counter":
            continue
        later = {tuple(sorted(one.labels.items())): one.value for one in second[name].samples}
        for one in family.samples:
            assert later[tuple(sorted(one.labels.items()))] >= one.value, (name, one)
    assert second["weft_observer_answers"].samples[0].value >= 2
    print(f"{len(second)} families")
    return 0


if __name__ == "__main__":
    sys.exit(main())
