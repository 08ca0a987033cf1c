#!/usr/bin/python3
"""page_test.py PROGRAM [FOLDER]: looks at the observer's page in headless Chromium, wide and narrow, light and dark.

PROGRAM says where it answers, with the token, and goes on until its input ends. The page asks for the token, shows what the program
does, fits into its window, and writes no error to the console. With FOLDER, screenshots are left there. 77: no Chromium.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 120.0  # seconds; the machine may be busy


def fail(what):
    print(f"page_test: {what}", file=sys.stderr)
    sys.exit(1)


class Browser:
    """Chromium, spoken to through two pipes: messages of its debugging protocol, each ended by a zero byte."""

    def __init__(self, program, profile):
        to_read, self.write_to = os.pipe()
        self.read_from, to_write = os.pipe()
        arguments = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--disable-gpu",
                     "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")

        def give_pipes():  # as its descriptors 3 and 4
            high_in, high_out = os.dup(to_read) if to_read < 5 else to_read, os.dup(to_write) if to_write < 5 else to_write
            while high_in < 5:
                high_in = os.dup(high_in)
            while high_out < 5:
                high_out = os.dup(high_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(arguments, preexec_fn=give_pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.came, self.errors = 0, b"", []

    def next_message(self):
        while b"\0" not in self.came:
            some = os.read(self.read_from, 1 << 20)
            if not some:
                fail("the browser has ended")
            self.came += some
        message, self.came = self.came.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(what["exceptionDetails"].get("exception", {}).get("description", str(what)))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(str(what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            entry = what["entry"]
            # Without the token, the page itself comes with the status 401: that is how it begins.
            if not ("401" in entry["text"] and entry.get("url", "").endswith("/")):
                self.errors.append(f"{entry['text']} {entry.get('url', '')}")

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    fail(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def end(self):
        self.process.terminate()
        self.process.wait()


class Page:
    def __init__(self, browser, width, height, scheme):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            fail(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if self.value(f"Boolean({expression})"):
                return
            time.sleep(0.1)
        fail(f"this does not come true: {expression}\n{self.value('document.body.innerText')}\n{self.browser.errors}")

    def screenshot(self, path, whole):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))


def look(browser, url, token, width, scheme, folder):
    page = Page(browser, width, 900, scheme)
    page.call("Page.navigate", url=url)
    page.wait_for("document.getElementById('door') && !document.getElementById('door').hidden")
    name = f"{width}-{scheme}"
    if folder:
        page.screenshot(os.path.join(folder, f"door-{name}.png"), False)
    # The wrong token first: it says so, and shows nothing.
    enter = """(token => {{ const field = document.getElementById('token'); field.value = token;
               document.querySelector('#door button').click(); }})({})"""
    page.value(enter.format(json.dumps("x y")))
    page.wait_for("document.getElementById('wrong').textContent !== ''")
    if page.value("sessionStorage.length") != 0:
        fail("a wrong token was kept")
    page.value(enter.format(json.dumps(token)))
    page.wait_for("!document.getElementById('all').hidden")
    page.wait_for("document.querySelectorAll('#circles .circle').length === 1")
    page.wait_for("document.querySelectorAll('#figures dd')[3].textContent.trim()[0] !== '–'")
    for what in ("transfer", "mutex"):
        if what not in page.value("document.getElementById('circles').textContent"):
            fail(f"the deadlock does not name {what}")
    if "<b>batch</b>" not in page.value("document.getElementById('workers').textContent") or page.value(
            "document.querySelectorAll('#workers b').length") != 0:
        fail("a name has become HTML")
    for there in ("#tree .row", "#functions tbody tr", "#workers tbody tr", "#graph svg .waits.bad"):
        if not page.value(f"document.querySelectorAll({json.dumps(there)}).length"):
            fail(f"there is no {there}")
    page.value("[...document.querySelectorAll('#tree .row')].find(row => row.textContent.includes('deadlock')).click()")
    page.wait_for("document.querySelector('#tree .frames')")
    wider = page.value("document.documentElement.scrollWidth - window.innerWidth")
    if wider > 0:
        fail(f"at {width} pixels the page is {wider} pixels too wide")
    # Dark text on dark paper, or light on light: less than 4.5 to 1.
    contrast = page.value("""(() => {
      const parse = (text) => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = text; c.fillRect(0, 0, 1, 1);
        return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); };
      const light = (text) => { const [r, g, b] = parse(text); return .2126 * r + .7152 * g + .0722 * b; };
      const paper = (one) => { for (; one; one = one.parentElement) { const c = getComputedStyle(one).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return 'white'; };
      let worst = [99, ''];
      for (const one of document.querySelectorAll('main *, header *')) {
        if (![...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) || one.closest('svg') || !one.offsetParent) continue;
        const a = light(getComputedStyle(one).color), b = light(paper(one)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < worst[0]) worst = [ratio, one.className + ': ' + one.textContent.slice(0, 40)];
      }
      return worst; })()""")
    if contrast[0] < 4.5:
        fail(f"too little contrast, {scheme}: {contrast}")
    if folder:
        page.screenshot(os.path.join(folder, f"page-{name}.png"), False)
        page.screenshot(os.path.join(folder, f"whole-{name}.png"), True)
    if token in page.value("location.href"):
        fail("the token is in the URL")
    # A name that is typed finds tasks, and nothing else.
    page.value("(() => { const field = document.getElementById('filter'); field.value = 'serve_client'; field.dispatchEvent(new Event('input')); })()")
    page.wait_for("document.querySelectorAll('#tree .row').length === 1")
    page.value("document.getElementById('leave').click()")
    page.wait_for("!document.getElementById('door').hidden")
    if page.value("sessionStorage.length") != 0:
        fail("the token was kept")


def main():
    program, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("SKIPPED: no chromium here")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        directory = os.path.join(scratch, "weft")
        observed = subprocess.Popen([program, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url, token = observed.stdout.readline().split()
        browser = Browser(chromium, os.path.join(scratch, "profile"))
        try:
            for width in (1400, 390):
                for scheme in ("light", "dark"):
                    look(browser, url, token, width, scheme, folder)
        finally:
            browser.end()
            observed.stdin.close()
            observed.wait()
    if browser.errors:
        fail("the console has errors:\n" + "\n".join(browser.errors))
    print("the page was looked at in four ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
