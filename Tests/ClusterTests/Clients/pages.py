"""`carillon.js` in a real Chromium on a real `carillon up`: a page that shows what it gets and tells this program of it.

  page     shows, acknowledges, replaces, removes and answers
  article  the page of the article WebPages.md, as it stands there: the person allows notifications, opens, answers and dismisses
  tabs     two tabs are fed at once, and one of them is frozen: each notification is presented once, and no tab misses one
  kills    the browser is killed, and started again with its profile: nothing is presented twice, nothing is acknowledged that is not
           stored, and no response is lost
  scripts  the session scripts of the rulebook for devices, played to the page
  leave    a person signs out without a connection: the cluster hears of it at a later start
  follows  an open panel follows what another tab shows
  locks    a tab that becomes hidden and visible at once, one that leaves a banner behind, and one that takes the socket from itself
  dead     a connection stands still: the page notices it by the cluster's heartbeats, which --ping makes frequent, and connects again
"""
import argparse
import asyncio
import collections
import contextlib
import glob
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException, UnexpectedAlertPresentException

import clients
from clients import APPLICATION, HANG, Failed, Producer, Reader, expect, quietly, say

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SOURCES = os.path.join(TESTS, "../Sources/Web")
CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
ARTICLE = os.path.join(SOURCES, "../carillon/Documentation.docc/WebPages.md")
# What this program starts ends with it.
WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]
EVENTS, OPEN = "notifications.events", "com.apple.UNNotificationDefaultActionIdentifier"

# It tells each event before it goes on: what was told is not lost with the browser. Headless tabs are always visible, so this is handed in.
PAGE = """<!doctype html><meta charset="utf-8"><title>test</title><script type="module">
import { Device, DISMISS, OPEN } from "/carillon.js";
const { url, user, tab, answers, database, leaves } = Object.fromEntries(new URLSearchParams(location.search));
const tell = (kind, detail) => {
  const request = new XMLHttpRequest();
  request.open("POST", "/told", false);
  request.send(JSON.stringify({ tab, kind, ...detail }));
};
const categories = [{ identifier: "order", options: ["customDismissAction"], actions: [{ identifier: "fine", title: "Fine" }] }];
const authorization = { status: "authorized" };
const device = await Device.open({ url, application: "%s", user, database, categories, authorization, deliveredLimit: 100_000,
  signsOut: leaves === "yes" });
device.addEventListener("present", async ({ detail: { notification: { id, identifier, content } } }) => {
  tell("present", { id, identifier, body: content.body });
  if (!answers || !content.body.endsWith("?")) return;
  const { response } = await device.respond(identifier, "fine");
  tell("response", { response, id });
});
device.addEventListener("problem", ({ detail }) => tell("problem", { code: detail.code, message: detail.message }));
device.addEventListener("accepted", ({ detail }) => tell("accepted", detail));
window.device = device;
window.freeze = async () => {
  await fetch("/gate/freeze");
  const request = new XMLHttpRequest();
  request.open("GET", "/gate/thaw", false);
  request.send();
};
window.look = async () => {
  device.visible = false;
  await fetch("/gate/look");
  device.visible = true;
};
device.addEventListener("connection", ({ detail: { state, isLeader, until } }) => {
  tell("connection", { state, isLeader, ...(until && { wait: until - Date.now() }) });
});
window.bodies = () => device.delivered.map(({ content }) => content.body);
</script>""" % APPLICATION


# The lock for the socket is granted only when the same tab, which has waited for it, steals it.
LATE_LOCK = """
const { request } = LockManager.prototype;
let grant;
LockManager.prototype.request = function (name, options, body) {
  const ask = () => request.call(this, name, options, body);
  if (options.signal) return new Promise((resolve, reject) => grant = () => ask().then(resolve, reject));
  if (options.steal) grant();
  return ask();
};
"""


async def until(found, promise, seen=lambda: None):
    """Waits as all clients do. If that ends a hang, it says what each page has."""
    def all_seen():
        states = []
        for look in (seen, *(browser.seen for browser in Browser.running)):
            try:
                states.append(look())
            except Exception as error:  # noqa: BLE001 - a page that does not answer is a state, too
                states.append("%s: %s" % (type(error).__name__, str(error)[:200]))
        return states

    return await clients.until(found, promise, all_seen)


class Site(http.server.ThreadingHTTPServer):
    """Serves the page and carillon.js, and keeps what the page tells."""
    daemon_threads = True

    def __init__(self, port=0, answer=None):
        self.told, self.gates = [], collections.defaultdict(threading.Event)
        super().__init__(("127.0.0.1", port), answer or Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def origin(self):
        return "http://127.0.0.1:%d" % self.server_address[1]

    def all(self, kind):
        return [told for told in self.told if told["kind"] == kind]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = self.path.split("?")[0][1:]
        with contextlib.suppress(OSError):
            if name.startswith("gate/"):
                self.server.gates[name].wait()
                return self.give("text/plain", b"")
            if name == "article":
                with open(ARTICLE, encoding="utf-8") as file:
                    page = file.read().split("```html\n")[1].split("```")[0]
                return self.give("text/html", page.replace("wss://push.example.com/v1/device", self.server.devices).encode())
            if not name:
                return self.give("text/html", PAGE.encode())
            if name.endswith(".js") and "/" not in name:
                with open(os.path.join(SOURCES, name), "rb") as file:
                    return self.give("text/javascript", file.read())
        self.give("text/plain", b"", 404)

    def do_POST(self):
        self.server.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.give("text/plain", b"")

    def give(self, kind, body, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)


class Up:
    """A whole cluster of one process."""

    def __init__(self, binary, site, ping):
        words = [*WITH_PARENT, binary, "up", "--new", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ingress", "127.0.0.1:0"]
        words += ["--allowed-origins", site.origin, "--ping", ping]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.places = json.loads(self.process.stdout.readline())

    def end(self):
        self.process.terminate()
        self.process.wait()


class Proxy:
    """Passes connections on to the worker, until they stand still."""

    def __init__(self, up):
        self.target, self.pipes = urllib.parse.urlsplit(up.places["devices"]), []

    async def start(self):
        self.server = await asyncio.start_server(self.connected, "127.0.0.1", 0)
        return "ws://127.0.0.1:%d%s" % (self.server.sockets[0].getsockname()[1], self.target.path)

    async def connected(self, reader, writer):
        worker_reader, worker_writer = await asyncio.open_connection(self.target.hostname, self.target.port)
        self.pipes += [asyncio.create_task(self.pipe(reader, worker_writer)), asyncio.create_task(self.pipe(worker_reader, writer))]

    async def pipe(self, reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    def stand_still(self):
        for pipe in self.pipes:
            pipe.cancel()


class Browser:
    """A Chromium with a profile that outlives it."""
    running = []

    def __init__(self, folder, up, site):
        self.folder, self.up, self.site, self.process = folder, up, site, None

    async def start(self):
        words = ["--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu"]
        words += ["--user-data-dir=" + self.folder, "--remote-debugging-port=0"]
        place = os.path.join(self.folder, "DevToolsActivePort")
        with contextlib.suppress(FileNotFoundError):
            os.remove(place)
        # It makes a Unix socket among its temporary files, whose path has at most 107 bytes.
        self.sockets = tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [*WITH_PARENT, CHROMIUM, *words, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "TMPDIR": self.sockets.name})

        def is_there():
            expect(self.process.poll() is None, "Chromium runs", self.process.returncode)
            return os.path.exists(place) and open(place).read().count("\n")

        await until(is_there, "Chromium says where it can be driven")
        options = webdriver.ChromeOptions()
        # By default a dialog that opens while a script runs is dismissed, and then nobody sees it.
        options.unhandled_prompt_behavior = "ignore"
        options.debugger_address = "127.0.0.1:" + open(place).readline().strip()
        self.driver = await quietly(webdriver.Chrome, options=options, service=webdriver.ChromeService(DRIVER))
        Browser.running.append(self)
        self.driver.set_page_load_timeout(HANG)
        self.driver.set_script_timeout(HANG)
        return self

    async def open(self, user, tab="one", **more):
        """Opens the page in the tab that the driver is at, and waits until the device is there."""
        query = urllib.parse.urlencode({"url": self.up.places["devices"], "user": user, "tab": tab} | more)
        await quietly(self.driver.get, "%s/?%s" % (self.site.origin, query))
        await self.until("window.device !== undefined")

    async def run(self, script):
        return await quietly(self.driver.execute_script, script)

    async def later(self, script):
        """Runs a script that gives a promise, and gives what comes of it."""
        return await quietly(self.driver.execute_async_script, "(async () => { %s })().then(arguments[0])" % script)

    def seen(self):
        """What the page has, for the word of a wait that ends a hang."""
        return [self.driver.current_url, self.driver.execute_script("return window.device && [device.connection, bodies()]"), self.site.told[-5:]]

    async def until(self, condition):
        return await until(lambda: self.run("return " + condition), "%s in the page" % condition)

    def kill(self):
        """Kills the browser with all of its processes."""
        if self in Browser.running:
            Browser.running.remove(self)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        self.sockets.cleanup()
        self.driver.service.stop()

    def end(self):
        with contextlib.suppress(Exception):
            self.kill()


class PageDevice:
    """The page as a device of session scripts. Each has a database of its own."""

    def __init__(self, browser, name):
        self.browser, self.site, self.name = browser, browser.site, name

    async def start(self, url):
        if not self.browser.process:
            await self.browser.start()
        await self.browser.open("ada", self.name, url=url, database=self.name)

    async def kill(self):
        self.browser.kill()

    async def end(self):
        await quietly(self.browser.driver.get, "about:blank")

    async def do(self, command):
        given = [command.get(name) for name in ("identifier", "action", "userText")]
        calls = {
            "open": "device.open(identifier)", "dismiss": "device.dismiss(identifier)",
            "act": "device.respond(identifier, action, text ?? undefined)",
            "settings": "device.setAuthorization(command.authorization)", "fire": "device.fire(identifier)",
            "connect": "device.reconnect()",
            "quiet": "device.setQuietHours({ from: command.from, to: command.to, timeZone: command.timeZone })"}
        script = "const [command, identifier, action, text] = arguments; return %s" % calls[command["command"]]
        await quietly(self.browser.driver.execute_script, script, command, *given)

    async def list(self):
        return await self.browser.run("return device.delivered.map(({ identifier }) => identifier)")

    async def pending(self):
        return await self.browser.run("return device.pending.map(({ identifier }) => identifier)")

    def told(self, kind):
        return [told for told in self.site.all(kind) if told["tab"] == self.name]

    def shown(self):
        return [(told["identifier"], told["id"]) for told in self.told("present")]

    def waits(self):
        return [told.get("wait") for told in self.told("connection") if told["state"] in ("waiting", "stopped", "storageFull")]


class Pages:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.site = arguments, folder, Site()
        self.up = Up(arguments.binary, self.site, arguments.ping)
        kafka, self.site.devices = self.up.places["kafka"], self.up.places["devices"]
        self.reader, self.producer = Reader(kafka, [EVENTS]), Producer(kafka, "notifications.requests")

    def events(self, kind):
        return [record for record in self.reader.records[EVENTS] if record.type == kind]

    def browser(self, name):
        return Browser(os.path.join(self.folder, name), self.up, self.site)

    def presented(self, user):
        return collections.Counter(told["id"] for told in self.site.all("present") if told["body"].startswith(user))

    async def publish(self, user, text, **more):
        name = await self.producer.notify("user:" + user, "%s %s" % (user, text), aps={"category": "order"}, **more)
        await self.producer.flush()
        return name

    async def page(self):
        browser = await self.browser("page").start()
        try:
            await browser.open("ann")
            await browser.until("device.connection.state === 'connected'")
            await self.publish("ann", "one", apns_collapse_id="order-7")
            await browser.until("bodies().join() === 'ann one'")
            await self.publish("ann", "two", apns_collapse_id="order-7")
            await browser.until("bodies().join() === 'ann two'")
            await until(lambda: self.events("updated"), "the device says that the second one has replaced the first")
            await self.publish("ann", "three", apns_collapse_id="order-8")
            await browser.until("bodies().join() === 'ann three,ann two'")
            self.producer.publish({"target": "user:ann", "apns-topic": APPLICATION, "operation": "remove"}, b'{"identifiers": ["order-7"]}')
            await browser.until("bodies().join() === 'ann three'")
            await until(lambda: self.events("removed"), "the removal is acknowledged")
            await browser.run("return device.respond('order-8', 'fine')")
            await browser.until("bodies().length === 0")
            await until(lambda: any(told.get("identifier") == "order-8" for told in self.site.all("accepted")), "the response is accepted")
            await until(lambda: self.events("response"), "the response becomes an event")
            await until(lambda: len(self.events("delivered")) == 2, "two are delivered, and one replaces")
            expect(sorted(self.presented("ann").values()) == [1, 1, 1], "each is presented once", self.site.told)
        finally:
            browser.end()

    async def article(self):
        browser = await self.browser("article").start()
        try:
            await quietly(browser.driver.get, self.site.origin + "/article")
            await browser.until("document.getElementById('status').textContent === 'Connected.'")
            with contextlib.suppress(UnexpectedAlertPresentException):
                await browser.run("setTimeout(() => document.getElementById('allow').click())")

            async def question():
                with contextlib.suppress(UnexpectedAlertPresentException):
                    isHidden = await browser.run("return document.getElementById('allow').hidden")
                    expect(not isHidden, "nobody but the person answers the question")
                return await quietly(self.dialog, browser.driver)

            question = await until(question, "the page asks the person")
            await quietly(question.accept)
            await until(lambda: self.events("settings-changed"), "the cluster knows what the person allows")
            for text in ("open", "thank", "dismiss"):
                await self.publish("ada", text, apns_collapse_id=text)
            await browser.until("document.getElementsByTagName('li').length === 3")
            expect(await browser.run("return document.getElementById('banner').textContent") == "Order", "a banner is shown")
            for text, title in (("open", "Open"), ("thank", "Say thanks"), ("dismiss", "Dismiss")):
                await browser.run(
                    "const row = [...document.getElementsByTagName('li')].find((row) => row.textContent.includes('ada %s'));"
                    "[...row.children].find((button) => button.textContent === '%s').click()" % (text, title))
            await browser.until("document.getElementsByTagName('li').length === 0")
            await until(lambda: len(self.events("dismissed")) == 1, "the dismissal becomes an event")
            actions = {"thanks", OPEN}
            await until(lambda: {record.json["action"] for record in self.events("response")} >= actions, "the responses become events")
        finally:
            browser.end()

    @staticmethod
    def dialog(driver):
        """The dialog that the page shows; nothing if there is none."""
        with contextlib.suppress(NoAlertPresentException):
            return driver.switch_to.alert

    async def tabs(self):
        browser = await self.browser("tabs").start()
        driver, texts = browser.driver, []

        async def feed(count):
            for _ in range(count):
                texts.append("bob %d" % len(texts))
                await self.producer.notify("user:bob", texts[-1])
            await self.producer.flush()

        async def shows_all(tab):
            await quietly(driver.switch_to.window, tab)
            await browser.until("bodies().sort().join() === %s" % json.dumps(",".join(sorted(texts))))

        try:
            first = driver.current_window_handle
            await browser.open("bob")
            await browser.until("device.connection.state === 'connected'")
            await quietly(driver.switch_to.new_window, "tab")
            second = driver.current_window_handle
            await browser.open("bob", "two")
            await browser.until("device.connection.state === 'connected' && !device.connection.isLeader")
            await feed(60)
            await shows_all(first)
            await shows_all(second)
            await until(lambda: len(self.presented("bob")) == len(texts), "all are presented")

            # The tab with the socket is frozen, and the person looks at the other one. Nobody drives the browser meanwhile: that would wait.
            await quietly(driver.switch_to.window, first)
            expect(await browser.run("return device.connection.isLeader"), "the first tab has the socket")
            await browser.run("device.visible = false; freeze()")
            await quietly(driver.switch_to.window, second)
            await browser.run("look()")
            self.site.gates["gate/freeze"].set()
            await until(lambda: "gate/thaw" in self.site.gates, "the first tab is frozen")
            self.site.gates["gate/look"].set()
            taken = {"tab": "two", "kind": "connection", "state": "connected", "isLeader": True}
            await until(lambda: taken in self.site.told, "the second tab takes the socket", lambda: self.site.all("connection"))
            await feed(60)
            await until(lambda: len(self.presented("bob")) == len(texts), "all are presented", lambda: self.site.told[-3:])
            self.site.gates["gate/thaw"].set()
            await shows_all(second)
            await shows_all(first)
            await browser.until("!device.connection.isLeader")
            await feed(5)
            await shows_all(first)
            await shows_all(second)
            await until(lambda: len(self.presented("bob")) == len(texts), "all are presented")
            expect(set(self.presented("bob").values()) == {1}, "each is presented once", self.presented("bob"))
            say(tabs=2, notifications=len(texts))
        finally:
            browser.end()

    async def leave(self):
        browser, proxy = await self.browser("leave").start(), Proxy(self.up)
        try:
            await browser.open("eve", "leave", url=await proxy.start())
            await browser.until("device.connection.state === 'connected'")
            proxy.stand_still()
            await browser.run("return device.unregister()")
            browser.kill()
            await browser.start()
            await browser.open("eve", "leave", leaves="yes")
            await browser.until("device.connection.code === 4013")
            await until(lambda: self.events("unregistered-device"), "the cluster knows that the person has signed out")
            for leaves, wanted in (("yes", "device.connection.code === 4013"), ("", "device.connection.state === 'connected'")):
                await browser.open("eve", "leave", leaves=leaves)
                await browser.until(wanted)
            expect(len(self.events("unregistered-device")) == 1, "it is told once", len(self.events("unregistered-device")))
        finally:
            browser.end()

    async def follows(self):
        browser = await self.browser("follows").start()
        try:
            await browser.open("fay")
            await browser.until("device.connection.state === 'connected'")
            await self.publish("fay", "one", apns_collapse_id="order-7")
            await browser.until("bodies().join() === 'fay one'")
            await browser.run("return device.expand('order-7').then(() => device.visible = false)")
            first = browser.driver.current_window_handle
            await quietly(browser.driver.switch_to.new_window, "tab")
            await browser.open("fay", "two")
            await browser.until("device.connection.state === 'connected' && !device.connection.isLeader")
            await self.publish("fay", "two", apns_collapse_id="order-7")
            await browser.until("bodies().join() === 'fay two'")
            await until(lambda: [told for told in self.site.all("present") if told["tab"] == "two"], "the second tab shows it")
            await quietly(browser.driver.switch_to.window, first)
            await browser.until("device.panel?.notification.content.body === 'fay two'")
        finally:
            browser.end()

    async def locks(self):
        browser, name = await self.browser("locks").start(), "carillon/locks"

        def held():
            return browser.later("return (await navigator.locks.query()).held.filter(({ name }) => name === '%s visible').length" % name)

        try:
            await browser.open("gus", database=name)
            await browser.until("device.connection.state === 'connected'")
            await self.publish("gus", "one")
            await browser.until("bodies().join() === 'gus one'")
            await browser.run("for (const each of [false, true, false, true]) device.visible = each")
            await until(held, "the tab is visible")
            await browser.run("device.visible = false")
            await until(lambda: self.none(held), "no tab is visible")

            await browser.run(
                "navigator.locks.request('%s visible', { mode: 'shared' }, () => new Promise((resolve) => window.gone = resolve))" % name)
            await until(held, "another tab is visible")
            await self.publish("gus", "two")
            await browser.until("bodies().length === 2")
            await browser.run("gone()")
            await until(lambda: len(self.presented("gus")) == 2, "what the other tab has not shown is shown by this one")

            await quietly(browser.driver.execute_cdp_cmd, "Page.addScriptToEvaluateOnNewDocument", {"source": LATE_LOCK})
            await browser.open("hal", "late", database="late")
            await browser.until("device.connection.state === 'connected' && device.connection.isLeader")
        finally:
            browser.end()

    @staticmethod
    async def none(count):
        return await count() == 0

    async def kills(self):
        lot, left, browsers = random.Random(self.arguments.seed), self.arguments.kills, 0
        while left:
            browsers += 1
            left -= await self.survives(left, "cid%d-" % browsers, lot)

    async def survives(self, kills, user, lot):
        """
        Kills a browser, and says how often it could. Chromium appends to the log of a database whose last record a kill has torn, and deletes
        the database when it reads that log again. What comes then is a new device, and the rest is for another browser.
        """
        browser, names, tokens, publishing, publishes = self.browser(user), [], [], None, True

        def count():
            return sum(told["tab"] == user for told in self.site.told)

        def ended():
            return {record.headers["ce_subject"] for record in self.events("delivered")} & set(names)

        async def starts():
            await browser.start()
            await browser.open(user, user, answers="yes")
            tokens.append(await browser.run("return device.token"))
            return len(set(tokens)) == 1

        async def publish():
            while publishes:
                # A mailbox has a hundred.
                await until(lambda: not publishes or len(names) - len(ended()) < 80, "there is room in the mailbox")
                # A question is answered by the page.
                text = "%s %d%s" % (user, len(names), "?" if len(names) % 3 == 0 else "")
                names.append(await self.producer.notify("user:" + user, text, aps={"category": "order"}))

        try:
            for number in range(kills):
                seen = count()
                if not await starts():
                    say(gone=user, kills=number)
                    return number
                if not publishing:
                    # Before that the person has no device.
                    await browser.until("device.connection.state === 'connected'")
                    publishing = asyncio.create_task(publish())
                wanted = lot.randrange(5, 60)
                await until(lambda: count() >= seen + wanted, "the page tells something", lambda: self.site.told[-5:])
                browser.kill()
                say(killed=number + 1, told=count() - seen, published=len(names))
            publishes = False
            await publishing
            await self.producer.flush()
            if not await starts():
                say(gone=user, kills=kills)
                return kills - 1

            await until(lambda: len(ended()) == len(names), "all are acknowledged",
                        lambda: [len(ended()), len(names), browser.driver.execute_script("return device.connection"), self.site.told[-5:]])
            await browser.until("device.responses.length === 0")
            stored = set(await browser.run("return device.delivered.map(({ id }) => id)"))
            responded = {told["id"] for told in self.site.all("response")}

            def answered():
                # The same event may come again.
                told = {record.headers["ce_id"]: record.headers["ce_subject"] for record in self.events("response")}
                return collections.Counter(name for name in told.values() if name in names)

            await until(lambda: not responded & set(names) - set(answered()), "no response is lost", lambda: responded - set(answered()))
            await until(lambda: not set(names) - stored - set(answered()), "what is acknowledged is stored",
                        lambda: set(names) - stored - set(answered()))
            twice = {name: count for name, count in self.presented(user).items() if count > 1}
            expect(not twice, "nothing is presented twice", twice)
            expect(set(answered().values()) <= {1}, "no response is told twice", answered())
            problems = [told for told in self.site.all("problem") if told["tab"] == user]
            expect(not problems, "the page has had no problem", problems)
            say(kills=kills, notifications=len(names), presented=len(self.presented(user)), responses=len(responded))
            return kills
        finally:
            publishes = False
            browser.end()

    async def scripts(self):
        sys.path.insert(0, os.path.join(TESTS, "Conformance"))
        import sessions

        browser, held = self.browser("scripts"), 0
        try:
            for path in sorted(glob.glob(os.path.join(TESTS, "Conformance/sessions/*.json"))):
                with open(path, encoding="utf-8") as file:
                    script = json.load(file)
                try:
                    await sessions.play(script, PageDevice(browser, os.path.basename(path)))
                except Failed as error:
                    raise Failed("%s: %s: %s" % (os.path.basename(path), script["rule"], error)) from error
                held += 1
            say(scripts=held)
        finally:
            browser.end()

    async def dead(self):
        browser, proxy = await self.browser("dead").start(), Proxy(self.up)
        try:
            await browser.open("dan", "dead", url=await proxy.start())
            await browser.until("device.connection.state === 'connected'")
            proxy.stand_still()
            await self.publish("dan", "one")
            await browser.until("bodies().join() === 'dan one'")
            connected = [told for told in self.site.all("connection") if told["tab"] == "dead" and told["state"] == "connected"]
            expect(len(connected) == 2, "it has connected again", connected)
        finally:
            browser.end()


async def holds(owner, part):
    """Plays a part, says what came of it, and answers whether it held."""
    begun = time.monotonic()
    try:
        await getattr(owner, part)()
    except Exception as error:  # noqa: BLE001 - each part is judged for itself
        say(part=part, result="broken", promise="%s: %s" % (type(error).__name__, error))
        return False
    say(part=part, result="held", seconds=round(time.monotonic() - begun, 1))
    return True


async def run(arguments, folder):
    pages = Pages(arguments, folder)
    reading = asyncio.create_task(pages.reader.run())

    async def play(parts):
        return all([await holds(pages, part) for part in parts])

    # Most of the time of the scripts and of a dead connection is the device's waits.
    parts = arguments.part.split(",")
    waiting = [part for part in parts if part in ("scripts", "dead")]
    try:
        return all(await asyncio.gather(play(waiting), play(part for part in parts if part not in waiting)))
    finally:
        reading.cancel()
        pages.up.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the program under test")
    parser.add_argument(
        "--part", default="page,article,tabs,kills,scripts", help="a part, or several with commas between")
    parser.add_argument("--ping", default="30s", help="how often the cluster sends heartbeats (30s)")
    parser.add_argument("--kills", type=int, default=2, help="how often the browser is killed (2)")
    parser.add_argument("--seed", type=int, default=uuid.uuid4().int & 0xFFFF, help="when the browser is killed")
    arguments = parser.parse_args()
    say(seed=arguments.seed)
    with tempfile.TemporaryDirectory(prefix="carillon-pages-", ignore_cleanup_errors=True) as folder:
        held = asyncio.run(run(arguments, folder))
    sys.stdout.flush()
    os._exit(0 if held else 1)


if __name__ == "__main__":
    main()
