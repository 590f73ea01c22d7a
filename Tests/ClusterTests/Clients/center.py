"""The notification center in a real Chromium on a real `carillon up`, used as a person uses it.

  shown     permission, banners, marks, threads, updates, badge, sound, the lock screen, settings, quiet hours, and a list that other devices change
  panels    the invitation and the square of the samples, text input, media, and a refused answer
  outside   the browser's own notifications, whose clicks reach the page of their application
  leave     a person signs out without a connection
  reach     the keyboard alone, the accessibility tree, contrast, sizes and motion
  hostile   texts that pretend to be HTML, scripts or the page itself stay texts, within their bounds
  quiet     what takes long: banners that wait for the pointer and the focus, a provisional application, quiet hours on another device, a cluster that ends
  crowd     1,000 notifications and 50 changes a second
  pictures  takes the pictures of the documentation into the folder of --pictures
"""
import argparse
import asyncio
import contextlib
import http.server
import io
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.parse
import urllib.request
import wave
import zlib

import websockets
from selenium.webdriver.common.keys import Keys

from clients import HANG, Producer, Reader, expect, say
from pages import Browser, holds, until

SHOP, EVENTS, SQUARES = "com.example.shop", "com.example.events", "com.example.squares"
TOPIC = "notifications.events"
PHONE, DESKTOP = (390, 844), (1180, 800)
# Installed before the page: what it breaks, how long its banners stay, and how often it asks for permission.
WATCH = """
window.seen = { violations: [], errors: [], banners: {}, asked: 0 };
addEventListener("securitypolicyviolation", (event) => seen.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
addEventListener("error", (event) => seen.errors.push(String(event.message)));
addEventListener("unhandledrejection", (event) => seen.errors.push(String(event.reason)));
window.WebSocket = class extends WebSocket {
  constructor(url, names) {
    super(localStorage.offline ? url + "/none" : url, names);
    seen.close = () => this.close();
  }
};
const ask = Notification.requestPermission.bind(Notification);
Notification.requestPermission = () => (seen.asked++, ask());
addEventListener("DOMContentLoaded", () => new MutationObserver((changes) => {
  for (const { addedNodes, removedNodes } of changes) {
    for (const row of addedNodes) seen.banners[row.dataset.identifier] ??= [performance.now()];
    for (const row of removedNodes) seen.banners[row.dataset.identifier][1] = performance.now();
  }
}).observe(document.getElementById("banners"), { childList: true }));
"""
# The functions of the scripts below.
TOOLS = """
const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility({ visibilityProperty: true }));
const one = (selector) => all(selector)[0];
const titles = (selector = "#feed .row") => all(selector).map((row) => row.querySelector("h2").textContent);
const row = (title, root = "#feed") => all(`${root} .row`).find((each) => each.querySelector("h2").textContent === title);
const button = (words, root = "body") => all(`${root} button`).find((each) => each.textContent === words || each.ariaLabel === words);
"""
CONTRAST = """
const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }), pixels = new Map();
const rgba = (color) => {
  if (!pixels.has(color)) {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    pixels.set(color, [...pen.getImageData(0, 0, 1, 1).data].map((each) => each / 255));
  }
  return pixels.get(color);
};
const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
const light = (color) => {
  const [r, g, b] = color.map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
// All colors that may lie behind an element: a gradient has several.
const behind = (element) => {
  const layers = [];
  for (let each = element; each; each = each.parentElement) {
    const { backgroundColor, backgroundImage } = getComputedStyle(each);
    if (backgroundImage !== "none") {
      return (backgroundImage.match(/rgba?\\([^)]*\\)/g) ?? []).map(rgba).filter(([, , , a]) => a === 1)
        .map((color) => layers.reduceRight((below, layer) => over(layer, below), color));
    }
    layers.push(rgba(backgroundColor));
    if (layers.at(-1)[3] === 1) break;
  }
  return [layers.reduceRight((below, layer) => over(layer, below), [1, 1, 1])];
};
const poor = [];
for (const element of all("body *")) {
  const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || element.matches("input, select");
  const isDrawing = element.matches("button svg, [type=checkbox]");
  if (!hasText && !isDrawing || element.closest("[aria-disabled=true]")) continue;
  const style = getComputedStyle(element), size = parseFloat(style.fontSize), isLarge = isDrawing || size >= 24 || size >= 18.66 && style.fontWeight >= 700;
  // A switch is seen by its own color.
  const isSwitch = element.matches("[type=checkbox]"), color = rgba(isSwitch ? style.backgroundColor : style.color);
  const ratios = behind(isSwitch ? element.parentElement : element).map((below) => ratio(over(color, below), below));
  if (Math.min(...ratios) < (isLarge ? 3 : 4.5)) poor.push([element.tagName, element.className, element.textContent.slice(0, 20), Math.min(...ratios)]);
}
return poor;
"""
SMALL = """
return all("button, input, select, summary, a").map((element) => {
  const target = element.matches(".open") ? element.closest(".row") : element.matches("[type=checkbox]") ? element.closest("label") : element;
  const { width, height } = target.getBoundingClientRect();
  return [element.ariaLabel ?? element.textContent, width, height];
}).filter(([, width, height]) => width < 44 || height < 44);
"""
HTML = """<img src=x onerror="fetch('/stolen')"><script>document.title="stolen"</script><a href="javascript:alert(1)">here</a><style>*{display:none}</style>"""
# Twice of it is about the largest payload, 32 KiB.
HUGE = HTML * 100
HOSTILE = {
    "html": HTML, "entities": "&lt;b&gt;&amp;amp;&#x3c;", "bidi": "\u202eevil\u2066 \u2067 right\u202d", "long": "w" * 1000,
           "lines": "a\n" * 300,
    "marks": "Z" + "\u0301\u0323\u0489" * 150,
           "odd": "\u0000\u0007\u200b\ufeff\ufffe\U000e0041\u2028\u2029 \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \u0d9e",
    "template": "${alert(1)} {{constructor.constructor('alert(1)')()}} </template></script>", "empty": " ",
           "javascript": "javascript:alert(document.domain)"}


def picture(width=640, height=480):
    """A lake at dusk, as a PNG."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            ridge = height * 0.56 - 64 * abs(math.sin(x / 120)) - 24 * abs(math.sin(x / 47 + 1))
            if (x - 470) ** 2 + (y - 130) ** 2 < 1200:
                color = 255, 236, 200
            elif y > height * 0.56:
                glow = max(0, 1 - abs(x - 470 + 14 * math.sin(y / 6)) / (40 + (y - 270) / 3))
                color = int(52 + 180 * glow), int(62 + 120 * glow), int(112 + 60 * glow)
            elif y > ridge:
                color = 54, 50, 92
            else:
                color = 250 - 70 * y // height, 196 - 80 * y // height, 150 + 50 * y // height
            rows += bytes(color)

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b""))


def tone():
    """A second of A, as a WAV."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(each * 440 / 8000 * 2 * math.pi))) for each in range(8000)))
    return file.getvalue()


class Files(http.server.BaseHTTPRequestHandler):
    """The media that notifications name."""
    # AIFF is what no Chromium plays.
    kinds = {"/photo": ("image/png", picture()), "/tone": ("audio/wav", tone()),
             "/other": ("audio/aiff", b"FORM\0\0\x10\0AIFFCOMM" + bytes(4096))}

    def do_GET(self):
        kind, content = self.kinds[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Person(Browser):
    """A Chromium that shows the notification center."""

    def __init__(self, *what):
        super().__init__(*what)
        # The tabs in which each page is watched.
        self.watched = set()

    async def visit(self, application, user, answer="Allow", size=DESKTOP, scheme="light"):
        """Opens the page, signs in, and answers what it asks."""
        self.size(size, scheme)
        if self.driver.current_window_handle not in self.watched:
            self.watched.add(self.driver.current_window_handle)
            self.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.command("Browser.grantPermissions", permissions=["notifications"])
        self.driver.get("%s?%s" % (self.up.page, urllib.parse.urlencode({"app": application, "user": user})))
        await self.until("button('Start')")
        words = self.js("return document.getElementById('welcome').textContent")
        expect("device" not in words and "redential" not in words, "the form has a person's words", words)
        expect(self.js("return seen.asked") == 0, "nothing is asked before a click")
        await self.press("Start")
        await self.until("one('#connection')?.dataset.state === 'connected'")
        if answer:
            await self.until("button('%s')" % answer)
            await self.press(answer)
            await self.until("!document.getElementById('note-permission')")
            await self.told(application)
        return self

    async def told(self, application):
        """Waits until the cluster has taken what the person has changed: what is published before may be judged by what held then."""
        await until(lambda: self.later(
            "const result = (request) => new Promise((resolve) => request.onsuccess = () => resolve(request.result));"
            "const database = await result(indexedDB.open('carillon/%s'));"
            "const count = await result(database.transaction('changes').objectStore('changes').count());"
            "database.close(); return count === 0;" % application), "the cluster has taken the person's changes")

    def command(self, name, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def size(self, size, scheme="light", **features):
        width, height = size
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        features = {"prefers-color-scheme": scheme, **{name.replace("_", "-"): value for name, value in features.items()}}
        self.command("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features.items()])

    def js(self, script):
        return self.driver.execute_script(TOOLS + script)

    async def until(self, condition):
        return await until(lambda: self.js("return " + condition), "%s in the page" % condition)

    def seen(self):
        return self.js("return [location.href, document.body.innerText.slice(0, 1000), window.seen, document.activeElement.outerHTML.slice(0, 200)]")

    def later(self, script):
        """Runs a script that gives a promise, and gives what comes of it."""
        return self.driver.execute_async_script("(async () => { %s })().then(arguments[0])" % script)

    def outside(self):
        """The browser's own notifications."""
        return self.later("const all = await (await navigator.serviceWorker.ready).getNotifications(); return all.map(({ title, body }) => title + ' ' + body);")

    async def press(self, words, root="body"):
        """Presses a button as soon as it is there and takes a press."""
        await self.until("(() => { const found = button(%s, %s); return found && found.ariaDisabled !== 'true' && (found.click(), true); })()"
                         % (json.dumps(words), json.dumps(root)))

    async def open(self, title):
        await self.until("row(%s)" % json.dumps(title))
        self.js("row(%s).querySelector('.open').click()" % json.dumps(title))
        await self.until("one('.panel')")

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def pointer(self, x, y):
        self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def judge(self, where):
        """Nothing has broken the policy, and nothing has gone wrong."""
        seen = self.js("return seen")
        expect(not seen["violations"] and not seen["errors"], "%s: no policy is violated and no script fails" % where, seen)

    @contextlib.asynccontextmanager
    async def traced(self):
        """Gives, at the end, the milliseconds of a processor that each task of a page's main thread has taken: others on the machine lengthen none."""
        with urllib.request.urlopen("http://%s/json/version" % self.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]) as answer:
            place = json.load(answer)["webSocketDebuggerUrl"]
        events, milliseconds = [], []
        async with websockets.connect(place, max_size=None) as socket:
            config = {"includedCategories": ["toplevel"], "recordMode": "recordContinuously"}
            await socket.send(json.dumps({"id": 1, "method": "Tracing.start", "params": {"traceConfig": config}}))
            async with asyncio.timeout(HANG):
                expect("error" not in json.loads(await socket.recv()), "the browser records its tasks")
            yield milliseconds
            await socket.send(json.dumps({"id": 2, "method": "Tracing.end"}))
            async with asyncio.timeout(HANG):
                while (told := json.loads(await socket.recv())).get("method") != "Tracing.tracingComplete":
                    events += told.get("params", {}).get("value", [])
        main = {(each["pid"], each["tid"]) for each in events if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"}
        milliseconds += [each["tdur"] / 1000 for each in events
                         if each["name"] == "ThreadControllerImpl::RunTask" and (each["pid"], each["tid"]) in main and "tdur" in each]

    async def worker(self, script):
        """Runs a script in the service worker, which a message wakes."""
        self.later("(await navigator.serviceWorker.ready).active.postMessage('')")
        with urllib.request.urlopen("http://%s/json" % self.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]) as answer:
            place = next(each["webSocketDebuggerUrl"] for each in json.load(answer) if each["type"] == "service_worker")
        async with websockets.connect(place, max_size=None) as socket:
            await socket.send(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": {"expression": script, "awaitPromise": True}}))
            async with asyncio.timeout(HANG):
                while json.loads(await socket.recv()).get("id") != 1:
                    pass


class Center:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        threading.Thread(target=self.files.serve_forever, daemon=True).start()
        media = {"name": "media", "use": "attach", "hosts": ["127.0.0.1:%d" % self.files.server_port], "networks": ["127.0.0.0/8"],
                 "plaintext": True, "attachments": [{"url": "/media"}],
                 # A machine that is busy delivers no notification without its photo.
                 "timeout": 30_000, "budget": 30_000, "breaker": 0}
        with open(os.path.join(folder, "extensions.json"), "w") as file:
            json.dump({"applications": {name: [media] for name in (SHOP, EVENTS, SQUARES)}}, file)
        words = [arguments.binary, "up", "--new", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ingress", "127.0.0.1:0",
                 "--extensions", file.name, "--media", os.path.join(folder, "media"), "--payload-bytes", "32KiB", "--log-level", "warning", *arguments.more.split()]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        places = json.loads(self.process.stdout.readline())
        for name in (SHOP, EVENTS, SQUARES):
            subprocess.run([arguments.binary, "applications", "allow", name, "--critical", "--time-sensitive", "--kafka", places["kafka"]],
                           check=True, stdout=subprocess.DEVNULL)
        self.page = arguments.page or places["page"]
        self.reader = Reader(places["kafka"], [TOPIC])
        self.producers = {name: Producer(places["kafka"], "notifications.requests", application=name) for name in (SHOP, EVENTS, SQUARES)}
        self.people = []

    async def person(self, *who, **how):
        person = await Person(tempfile.mkdtemp(dir=self.folder), types.SimpleNamespace(page=self.page),
                              None).start()
        self.people.append(person)
        return await person.visit(*who, **how)

    async def publish(self, application, user, title, body="", identifier=None, custom=None, operation=None, media=None, **aps):
        """Publishes a notification; what has no identifier gets its title as one."""
        headers = {"target": "user:" + user, "apns-topic": application, "apns-collapse-id": identifier or title[:20]}
        if media:
            custom, aps["mutable-content"] = {**(custom or {}), "media": "http://127.0.0.1:%d/%s" % (self.files.server_port, media)}, 1
        payload = {"aps": {"alert": {"title": title, "body": body}, **{name.replace("_", "-"): value for name, value in aps.items()}},
                   **(custom or {})}
        if operation:
            headers["operation"] = operation
        self.producers[application].publish(headers, b"" if operation else json.dumps(payload, ensure_ascii=False).encode(),
                                            key="user:" + user)
        await self.producers[application].flush()

    async def responded(self, action, text=None):
        def found():
            return [data for data in (json.loads(record.value) for record in self.reader.records[TOPIC])
                    if data.get("action") == action and data.get("userText") == text]

        return await until(found, "the response %s of %s arrives" % (action, text),
                           lambda: [record.value for record in self.reader.records[TOPIC]][-3:])

    async def shown(self):
        ada = await self.person(SHOP, "ada")
        expect(ada.js("return seen.asked") == 1, "a click asks the browser for permission")
        await ada.until("document.querySelector('#status[role=status]') && document.querySelector('#alert[role=alert]')")
        ada.keys("j")
        await self.publish(SHOP, "ada", "Order 7", "Packed", "order-7", thread_id="orders", badge=1, sound="default")
        await ada.until("titles('#banners .row').join() === 'Order 7'")
        expect(ada.js("return document.getElementById('status').textContent") == "Order 7. Packed", "the banner is spoken")
        expect(ada.js("return document.getElementById('alert').textContent") == "", "only critical ones interrupt a reader")
        await ada.until("document.title === '(1) Notifications' && document.getElementById('icon').href.startsWith('blob:')")
        await ada.until("document.documentElement.dataset.rung === '1'")
        await self.publish(SHOP, "ada", "Order 8", "Paid", "order-8", thread_id="orders", badge=2)
        await self.publish(SHOP, "ada", "Grace", "Lunch at one?", "grace", category="reply")
        await ada.until("titles().join() === 'Grace,Order 8'")
        expect(ada.js("return row('Order 8').querySelector('.more').textContent") == "1 earlier", "a thread lies behind its newest")
        ada.js("row('Grace').marked = true")
        await self.publish(SHOP, "ada", "Order 7", "On its way", "order-7", thread_id="orders", badge=3)
        await ada.until("titles().join() === 'Order 7,Grace'")
        expect(ada.js("return row('Grace').marked"), "a row that stays is not drawn anew")
        await ada.press("1 earlier")
        await ada.until("titles().join() === 'Order 7,Order 8,Grace'")
        await self.publish(SHOP, "ada", "Grace", "Lunch at two?", "grace", category="reply")
        await ada.until("row('Grace').querySelector('.text').textContent === 'Lunch at two?' && row('Grace').marked")
        await self.publish(SHOP, "ada", "Fire", "Leave the house", sound={"critical": 1, "name": "alarm"})
        await self.publish(SHOP, "ada", "Train", "Platform 4", interruption_level="time-sensitive")
        await ada.until("document.getElementById('alert').textContent === 'Critical. Fire. Leave the house'")
        await ada.until("row('Fire')?.ariaLabel === 'Critical: Fire' && row('Train')?.ariaLabel === 'Time sensitive: Train'")
        await ada.until("row('Fire').querySelector('.mark').checkVisibility() && row('Train').querySelector('.mark').checkVisibility()")
        await self.publish(SHOP, "ada", "", identifier="order-8", operation="remove")
        await ada.until("!row('Order 8')")
        await ada.press("Dismiss: Grace")
        await ada.until("!row('Grace')")
        await self.responded("com.apple.UNNotificationDismissActionIdentifier")
        await ada.press("Settings")
        await ada.until("one('.settings')")
        ada.js("const select = all('.settings select')[0]; select.value = 'whenAuthenticated'; select.dispatchEvent(new Event('change'))")
        await ada.until("all('.settings select')[0].value === 'whenAuthenticated'")
        await ada.press("Back to the list")
        await ada.press("Lock the screen")
        await ada.until("one('#lock')")
        expect(ada.js("return titles('#locked .row').length") == 0, "a locked screen shows what comes from now on")
        await self.publish(SHOP, "ada", "Secret", "of ada")
        await ada.until("titles('#locked .row').join() === 'Shop'")
        await ada.until("document.getElementById('status').textContent === 'Shop. Notification'")
        expect(not ada.js("return titles('#banners .row').includes('Secret') || document.getElementById('lock').innerText.includes('of ada')"),
               "a locked screen shows no banner and no preview")
        ada.js("one('#locked .open').click()")
        await ada.until("one('#unlock').textContent === 'Unlock to see it'")
        ada.js("one('#unlock').click()")
        await ada.until("!one('#lock') && one('#panel-title')?.textContent === 'Secret'")
        await ada.press("Settings")
        ada.js("all('.settings label').find((each) => each.innerText.startsWith('Quiet hours')).click()")
        await ada.until("all('.settings input[type=time]').length === 2 && all('.days button').length === 7")
        # From an hour ago until three hours from now: the day's last minute is in no range from 00:00 on. The page begins with full hours,
        # and draws nothing again for an hour that it has.
        hours = ada.js("return [23, 3].map((hours) => `${String((new Date().getHours() + hours) % 24).padStart(2, '0')}:01`)")
        for index, hour in enumerate(hours):
            ada.js("const input = all('.settings input[type=time]')[%d]; input.value = '%s'; input.old = true; "
                   "input.dispatchEvent(new Event('change'))" % (index, hour))
            await ada.until("(({ value, old }) => !old && value === '%s')(all('.settings input[type=time]')[%d])" % (hour, index))
        await ada.told(SHOP)
        await self.publish(SHOP, "ada", "Later", "It can wait")
        await ada.until("row('Later')")
        await self.publish(SHOP, "ada", "Now", "It cannot wait", interruption_level="time-sensitive")
        await ada.until("row('Now', '#banners')")
        expect(not ada.js("return 'Later' in seen.banners"), "quiet hours show no banner")
        await ada.until("seen.banners.Now[1] > 0")
        stayed = ada.js("const [from, to] = seen.banners.Now; return to - from")
        expect(5_000 <= stayed, "a banner stays for five seconds", stayed)
        expect(ada.js("return one('#connection').innerText").startswith("Connected"), "the connection is told in words")
        ada.judge("shown")
        say(stayed=stayed)

    async def panels(self):
        ada = await self.person(EVENTS, "ada", size=PHONE)
        party = {"date": "Saturday, 20:00", "place": "At the lake"}
        for number, (action, words,
                     color) in enumerate((("Accept", "Going!", "green"), ("Decline", "Not going.", "red"), ("Maybe", "Maybe.", "yellow"))):
            await self.publish(EVENTS, "ada", "Party %d" % number, "You are invited", category="event-invite", custom=party, media="photo")
            await ada.open("Party %d" % number)
            await ada.until("one('.panel img')?.naturalWidth === 640 && one('.panel').innerText.includes('At the lake')")
            ada.js("window.said = []; new MutationObserver(() => said.push(`${one('footer .answer')?.className} ${one('footer .answer')?.textContent}`))"
                   ".observe(one('.panel footer'), { subtree: true, childList: true, attributes: true })")
            await ada.press(action, ".panel")
            await ada.until("said.includes('answer %s %s')" % (color, words))
            expect(ada.js("return said.some((each) => each.endsWith('Sending …'))"), "it says that the answer is being sent",
                   ada.js("return said"))
            ada.js("button('Dismiss', '.panel')?.click()")
            await ada.until("!one('.panel') && !row('Party %d')" % number)
            expect(not ada.js("return one('#note-failed')"), "a button that is off does nothing")
            await self.responded(action.lower())
        await self.publish(EVENTS, "ada", "Party", "You are invited", category="event-invite", custom=party, media="photo")
        await ada.open("Party")
        await ada.press("Comment …", ".panel")
        expect(ada.js("return document.activeElement.placeholder") == "What do you want to say?", "the text field has the focus")
        ada.keys("I bring the cake", Keys.ENTER)
        await ada.until("!one('.panel') && !row('Party')")
        await self.responded("comment", "I bring the cake")

        await self.publish(EVENTS, "ada", "Tone", "Listen", media="tone")
        await ada.open("Tone")
        await ada.until("one('.panel audio')?.duration === 1")
        height = ada.js("const player = one('.panel audio'), { paddingTop, paddingBottom } = getComputedStyle(player);"
                        "return player.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom)")
        expect(height > 40, "the player is seen", height)
        await self.publish(EVENTS, "ada", "Other", "Nobody plays it", media="other", category="reply")
        await ada.press("Back to the list", ".panel")
        await ada.open("Other")
        await ada.until("one('.panel .file')?.innerText.includes('audio/aiff') && one('.file').innerText.includes('bytes')")
        await self.forge(ada, EVENTS, "Other")
        await ada.press("Back to the list", ".panel")
        await ada.press("Dismiss: Other")
        await ada.until("one('#note-refused')?.innerText.startsWith('Your answer was refused')")
        ada.judge("invitations")
        ada.driver.refresh()
        await ada.until("one('#connection')?.dataset.state === 'connected'")

        bob = await self.person(SQUARES, "bob")
        buttons = "all('.panel footer .buttons')[0].innerText"
        turned = "one('.stage div').ariaLabel"
        for color in ("red", "green"):
            await self.publish(SQUARES, "bob", "A square", "It is " + color, color, category=color)
            await bob.until("all('#feed .row')[0]?.innerText.includes('It is %s')" % color)
            await bob.open("A square")
            await bob.until("%s === 'a %s square, turned by 0 degrees'" % (turned, color))
            expect(bob.js("return " + buttons) == "Rotate 20°", "upright there is nothing to reset")
            for turn in range(1, 10 if color == "red" else 2):
                await bob.press("Rotate 20°", ".panel")
                await bob.until("%s === 'a %s square, turned by %d degrees' && one('.panel button[aria-disabled=false]')" % (turned, color,
                                                                                                                             turn * 20))
                expect(bob.js("return " + buttons).split() == ["Rotate", "20°"] + ["Reset", "rotation"] * (turn < 9),
                       "the action comes and goes", turn)
            if color == "red":
                await bob.press("Rotate 20°", ".panel")
            await bob.press("Reset rotation", ".panel")
            await bob.until(turned + ".includes('turned by 0 degrees')")
        bob.judge("squares")

    @staticmethod
    async def forge(person, application, identifier):
        """Changes the receipt of a notification in the page's database, so that the cluster refuses what the person does with it."""
        person.later("""
          const result = (request) => new Promise((resolve) => request.onsuccess = () => resolve(request.result));
          const database = await result(indexedDB.open("carillon/%s")), transaction = database.transaction(["list", "facts"], "readwrite");
          const [list, facts] = ["list", "facts"].map((name) => transaction.objectStore(name));
          const row = await result(list.get("%s")), kept = await result(facts.get("facts"));
          row.frame.receipt = "forged";
          row.order = ++kept.order;
          kept.generation++;
          await Promise.all([result(list.put(row, "%s")), result(facts.put(kept, "facts"))]);
          new BroadcastChannel("carillon/%s").postMessage({ type: "changed" });""" % (application, identifier, identifier, application))

    async def outside(self):
        bob = await self.person(SQUARES, "bob2")
        hide = "Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))"

        async def click(application, action):
            await bob.worker(
                "registration.getNotifications().then((all) => dispatchEvent(new NotificationEvent('notificationclick', "
                "{ notification: all.find(({ data }) => data.application === '%s'), action: '%s' })))" % (application, action))

        await until(lambda: bob.later("return (await navigator.serviceWorker.ready).active.state === 'activated'"), "the service worker runs")
        bob.js(hide)
        for body in ("one", "two"):
            await self.publish(SQUARES, "bob2", "Outside", body, "outside", category="red")
            await until(lambda: bob.outside() == ["Outside " + body], "the browser shows it, in place of the former", bob.outside)
        # Another page is another application's: each click reaches the page of its own.
        mine = bob.driver.current_window_handle
        bob.driver.switch_to.new_window("tab")
        await bob.visit(EVENTS, "bob2")
        bob.js(hide)
        await self.publish(EVENTS, "bob2", "Party", "of Ada", "outside", category="event-invite")
        await until(lambda: len(bob.outside()) == 2, "the browser shows those of both applications", bob.outside)
        for application, action in ((SQUARES, "rotate"), (EVENTS, "maybe")):
            await click(application, action)
            await self.responded(action)
        await until(lambda: bob.outside() == [], "what has left the list is closed", bob.outside)
        # No page of its application is ready.
        await self.publish(SQUARES, "bob2", "Later", "three", "later", category="red")
        await until(lambda: bob.outside() == ["Later three"], "the browser shows it", bob.outside)
        bob.driver.switch_to.window(mine)
        bob.driver.get(self.page + "icon.svg")
        await click(SQUARES, "")
        await bob.visit(SQUARES, "bob2", answer=None)
        await self.responded("com.apple.UNNotificationDefaultActionIdentifier")
        await bob.until("titles().length === 0")
        bob.judge("outside")

    async def leave(self):
        ada = await self.person(SHOP, "ada4")
        ada.js("localStorage.offline = 'yes'; seen.close()")
        await ada.until("one('#connection').innerText.startsWith('Not connected')")
        await ada.press("Settings")
        await ada.press("Sign out")
        await ada.until("button('Start') && one('#leaving')")
        ada.driver.refresh()
        await ada.until("button('Start') && one('#leaving')")
        ada.js("localStorage.removeItem('offline')")
        await ada.until("!one('#leaving')")
        await until(lambda: [record for record in self.reader.records[TOPIC] if record.type == "unregistered-device"],
                    "the cluster knows that the person has signed out")
        await ada.visit(SHOP, "ada4", answer=None)
        ada.judge("leave")

    async def reach(self):
        ada = await self.person(SHOP, "ada2")
        for title in ("First", "Second", "Third"):
            await self.publish(SHOP, "ada2", title, "Read me", category="reply", interruption_level="time-sensitive")
            await ada.until("row('%s')" % title)
        focus = "document.activeElement"
        ada.js("document.activeElement.blur()")
        for key, title in (("j", "Third"), ("j", "Second"), ("j", "First"), ("j", "First"), ("k", "Second"), (Keys.PAGE_DOWN, "First"),
                           (Keys.PAGE_UP, "Second")):
            ada.keys(key)
            expect(ada.js("return %s.ariaLabel" % focus) == "Time sensitive: " + title, "%s goes to %s" % (key, title),
                   ada.js("return %s.outerHTML" % focus))
        expect(ada.js("return getComputedStyle(%s).outlineStyle" % focus) == "solid", "the focus is seen")
        ada.keys(Keys.ENTER)
        await ada.until("one('#panel-title')?.textContent === 'Second' && one('.panel').contains(%s)" % focus)
        expect(ada.js("return one('.panel .answer[role=status]') && document.querySelector('#notes[aria-live=polite]')"),
               "what a reader is to hear is there before it has a text")
        while ada.js("return %s.textContent" % focus) != "Reply …":
            ada.keys(Keys.TAB)
        ada.keys(Keys.ENTER)
        ada.keys("by keyboard", Keys.ENTER)
        await self.responded("reply", "by keyboard")
        await ada.until("!one('.panel')")
        ada.keys("j")
        ada.keys("e")
        await ada.until("titles().length === 1")
        await self.responded("com.apple.UNNotificationDismissActionIdentifier")
        await ada.until("%s.closest('#feed .row')" % focus)
        ada.keys(Keys.ENTER)
        await ada.until("one('.panel')")
        ada.keys(Keys.ESCAPE)
        await ada.until("!one('.panel') && %s.closest('#feed .row')" % focus)

        nodes = [node for node in ada.command("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
        named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes]
        expect(any(role == "feed" and name == "Notifications" for role, name in named), "the list is a feed", named)
        expect(any(role == "article" and name.startswith("Time sensitive: ") for role, name in named), "its rows are articles", named)
        for role in ("button", "link", "textbox", "switch", "combobox", "image", "article", "region"):
            expect(all(name for each, name in named if each == role), "each %s has a name" % role, named)

        await self.publish(SHOP, "ada2", "A critical one", "with a photo", media="photo", sound={"critical": 1, "name": "alarm"},
                           category="reply")
        await ada.until("row('A critical one')")
        for size in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                ada.size(size, scheme, prefers_reduced_motion="reduce")
                for place in ("list", "panel", "settings", "lock"):
                    if place == "panel":
                        await ada.open("A critical one")
                        await ada.press("Reply …", ".panel")
                    elif place == "settings":
                        ada.js("document.getElementById('to-settings').click()")
                    elif place == "lock":
                        ada.js("document.getElementById('to-lock').click()")
                        await ada.until("one('#lock')")
                        await self.publish(SHOP, "ada2", "Locked", "Behind the lock")
                        await ada.until("one('#locked .row')")
                    ada.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 20)))")
                    poor = ada.js(CONTRAST)
                    expect(not poor, "%s, %s, %s: contrast" % (place, scheme, size), poor)
                    small = ada.js(SMALL)
                    expect(not small, "%s, %s: targets of 44 pixels" % (place, size), small)
                    expect(ada.js("return document.documentElement.scrollWidth <= innerWidth"),
                           "%s, %s: nothing lies beside the page" % (place, size))
                    moves = ada.js("return all('body *').filter((each) => /\\d[^m]s|\\d\\dms/.test(getComputedStyle(each).transitionDuration.replaceAll('0.001s', '')"
                                   ".replaceAll('0s', ''))).map((each) => each.outerHTML.slice(0, 80))")
                    expect(not moves, "whoever wants no motion gets none", moves)
                    if place in ("panel", "settings"):
                        ada.js("[...document.querySelectorAll('.back')].at(-1).click()")
                    elif place == "lock":
                        ada.js("document.getElementById('unlock').click()")
                        await ada.until("!one('#lock')")
        # A panel without a picture is the lowest.
        await ada.open("Third")
        for number in range(3):
            await self.publish(SHOP, "ada2", "Banner %d" % number, "It covers something\nin two lines")
            await ada.until("row('Banner %d', '#banners')" % number)
        covered = ada.js("return all('.panel button').filter((each) => { const { x, y, width, height } = each.getBoundingClientRect(); "
                         "return document.elementFromPoint(x + width / 2, y + height / 2)?.closest('#banners') }).map((each) => each.textContent)")
        expect(not covered, "a banner covers no button of the panel", covered)
        ada.judge("reach")

    async def hostile(self):
        eve = await self.person(SHOP, "eve", size=PHONE)
        for name, text in HOSTILE.items():
            await self.publish(SHOP, "eve", text, text, name, custom={"date": text}, category=text if len(text) < 100 else "reply",
                               thread_id=name + text[:50])
        await eve.until("all('#feed .row').length === %d" % len(HOSTILE))
        await self.publish(SHOP, "eve", HUGE, HUGE, "huge")
        await eve.until("document.querySelector('#feed [data-identifier=huge]')")
        for name, text in {**HOSTILE, "huge": HUGE}.items():
            drawn = eve.js("const it = document.querySelector('#feed [data-identifier=%s]'), rect = it.getBoundingClientRect(); return { "
                           "title: it.querySelector('.open').textContent, text: it.querySelector('.text').textContent, height: rect.height, right: rect.right, "
                           "children: it.querySelectorAll('.open *, .text *').length, wide: it.scrollWidth > it.clientWidth + 1, "
                           "bidi: [...it.querySelectorAll('.open, .text')].map((each) => getComputedStyle(each).unicodeBidi) }" % name)
            expect(drawn["children"] == 0 and not drawn["wide"] and drawn["height"] < 180 and drawn["right"] <= PHONE[0],
                   "%s stays within its row" % name, drawn)
            expect(drawn["bidi"] == ["isolate", "isolate"], "directions end with their text", drawn)
            start = text[:100]
            expect(drawn["title"].startswith(start) and drawn["text"].startswith(start), "%s is shown as it is" % name, drawn)
            expect(len(drawn["title"]) <= 401 and len(drawn["text"]) <= 601, "%s is cut" % name, [len(drawn["title"]), len(drawn["text"])])
            eve.js("document.querySelector('#feed [data-identifier=%s] .open').click()" % name)
            await eve.until("one('#panel-title') && one('.panel').contains(document.activeElement)")
            panel = eve.js("const panel = one('.panel'); return { text: panel.innerText.length, children: panel.querySelectorAll('.content h2 *, .content p.body *, "
                           "script, .content img, .content a').length, wide: document.documentElement.scrollWidth > innerWidth, title: document.title }")
            expect(panel["children"] == 0 and not panel["wide"] and panel["text"] < 10_000 and "stolen" not in panel["title"],
                   "%s stays within its panel" % name, panel)
            await eve.press("Back to the list", ".panel")
            await eve.until("!one('.panel')")
        expect(eve.js("return document.querySelectorAll('script').length") == 1, "no script is added")
        eve.judge("hostile")

    async def quiet(self):
        ada = await self.person(SHOP, "ada3", "Quietly")
        await self.publish(SHOP, "ada3", "Quiet", "Only in the list")
        await ada.until("row('Quiet') && button('Keep') && button('Turn off')")
        expect(not ada.js("return 'Quiet' in seen.banners"), "a provisional application shows no banner")
        await ada.press("Allow banners")
        await ada.until("!button('Keep')")
        await ada.told(SHOP)
        for title, hold in (("Pointer", "const { x, y } = row('Pointer', '#banners').getBoundingClientRect(); return [x + 30, y + 30]"),
                            ("Focus", "row('Focus', '#banners').focus()")):
            await self.publish(SHOP, "ada3", title, "Stay")
            await ada.until("row('%s', '#banners')" % title)
            place = ada.js(hold)
            if place:
                ada.pointer(*place)
            begun = time.monotonic()
            await until(lambda: time.monotonic() - begun > 9, "nine seconds")
            expect(ada.js("return seen.banners['%s'].length" % title) == 1, "%s keeps the banner" % title)
            ada.pointer(5, 700)
            ada.js("document.activeElement.blur()")
            await ada.until("seen.banners['%s'].length === 2" % title)
        await ada.press("Settings")
        ada.js("all('.settings label').find((each) => each.innerText.startsWith('Quiet hours')).click()")
        await ada.until("all('.days button').length === 7")
        await ada.press(ada.js("return all('.days button')[6].ariaLabel"))
        await ada.until("all('.days button')[6].ariaPressed === 'false'")
        await ada.told(SHOP)
        other = await self.person(SHOP, "ada3")
        await other.press("Settings")
        await other.until("all('.days button').map(({ ariaPressed }) => ariaPressed === 'true').join() === 'true,true,true,true,true,true,false'")
        await other.press("Sign out")
        await other.until("button('Start')")
        self.process.terminate()
        await ada.until("!one('#connection').innerText.startsWith('Connected')")
        words = ada.js("return one('#connection').innerText")
        expect(words.startswith("Not connected"), "a lost connection is told in words", words)
        ada.judge("quiet")

    async def crowd(self):
        ada = await self.person(SHOP, "crowd")
        for number in range(1000):
            await self.publish(SHOP, "crowd", "Number %d" % number, "Wait for it", "n%d" % number)
        await ada.until("document.querySelectorAll('#feed .row').length === 1000")
        async with ada.traced() as tasks:
            begun = time.monotonic()
            for count in range(500):
                await self.publish(
                    SHOP, "crowd", "Number %d" % count, "Change %d" % count, "n%d" % (count * 37 % 1000), badge=count + 1)
                await asyncio.sleep(max(0, begun + (count + 1) / 50 - time.monotonic()))
            await ada.until("document.title === '(500) Notifications'")
        say(tasks=len(tasks), longest=max(tasks, default=None))
        expect(tasks and max(tasks) < 200, "no task of the page takes it 200 ms", sorted(tasks)[-5:])
        expect(ada.js("return document.querySelectorAll('#feed .row').length") == 1000, "all are there")
        ada.judge("crowd")

    async def pictures(self):
        def take(person, name):
            person.js("document.activeElement.blur(); for (const each of all('#banners .away')) each.click()")
            person.driver.execute_async_script("setTimeout(arguments[0], 900)")
            person.driver.save_screenshot(os.path.join(self.arguments.pictures, name + ".png"))

        async def publish(*what, **more):
            await self.publish(SHOP, "ada", *what, **more)
            await ada.until("row('%s')" % what[0])

        ada = await self.person(SHOP, "ada")
        ada.command("Emulation.setScrollbarsHidden", hidden=True)
        party = {"date": "Saturday, 20:00", "place": "At the lake"}
        await publish("Party", "You are invited", "party", category="event-invite", custom=party, media="photo")
        for text in ("Packed", "It is on its way. Expected between 14:00 and 14:30."):
            await publish("Order 7", text, "order-" + text[0], thread_id="order-7")
        await publish("Cold store 3 is at 9 °C", "The door has been open for 4 minutes.", "cold", sound={"critical": 1, "name": "alarm"})
        await publish("A square", "It is red", "red", category="red")
        await publish("Grace", "Lunch at one? I have the tickets.", "grace", category="reply", interruption_level="time-sensitive", badge=4)
        await ada.open("A square")
        take(ada, "square-upright")
        await ada.press("Rotate 20°", ".panel")
        await ada.until("button('Reset rotation')")
        take(ada, "notification-center")
        await publish("A square", "It is green", "red", category="green")
        await ada.until("!one('.panel')")
        await ada.open("A square")
        for turn in range(2):
            await ada.press("Rotate 20°", ".panel")
            await ada.until("one('.stage div').ariaLabel.includes('by %d ') && one('.panel button[aria-disabled=false]')" % (turn * 20 + 20))
        ada.size(PHONE)
        take(ada, "square-green")
        await ada.press("Back to the list", ".panel")
        take(ada, "phone-list")
        await ada.open("Party")
        await ada.until("one('.panel img')?.naturalWidth === 640")
        take(ada, "invitation")
        await ada.press("Comment …", ".panel")
        ada.keys("I bring the cake")
        take(ada, "invitation-comment")
        await ada.press("Cancel", ".panel")
        ada.size(DESKTOP, "dark")
        take(ada, "notification-center-dark")
        ada.size(PHONE)
        ada.js("window.shows = new MutationObserver(() => one('footer .answer.green') && (seen.answered = true)); shows.observe(one('.panel'), { subtree: true, childList: true, "
               "attributes: true }); const wait = setTimeout; window.setTimeout = (work, time) => wait(work, time === 1500 ? 6000 : time)")
        await ada.press("Accept", ".panel")
        await ada.until("seen.answered")
        take(ada, "invitation-accepted")
        await ada.until("!one('.panel')")
        ada.js("document.getElementById('to-settings').click()")
        ada.js("all('.settings label').find((each) => each.innerText.startsWith('Quiet hours')).click()")
        await ada.until("all('.days button').length === 7")
        ada.size(PHONE, "dark")
        take(ada, "settings")
        ada.js("const select = all('.settings select')[0]; select.value = 'whenAuthenticated'; select.dispatchEvent(new Event('change'))")
        ada.js("all('.settings label').find((each) => each.innerText.startsWith('Quiet hours')).click()")
        await ada.until("all('.days button').length === 0")
        ada.js("document.getElementById('to-lock').click()")
        await ada.until("one('#lock')")
        for title, level in (("Order 7", "active"), ("Train", "time-sensitive")):
            await self.publish(SHOP, "ada", title, "of ada", title, interruption_level=level)
        await ada.until("all('#locked .row').length === 2")
        take(ada, "lock")

    async def end(self):
        for person in self.people:
            person.end()
        self.people = []


async def run(arguments, folder):
    center = Center(arguments, folder)
    reading = asyncio.create_task(center.reader.run())
    held = True
    try:
        for part in arguments.part.split(","):
            held &= await holds(center, part)
            await center.end()
    finally:
        reading.cancel()
        center.process.terminate()
        center.process.wait()
    return held


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the program under test")
    parser.add_argument("--part", default="shown,panels,reach,hostile", help="a part, or several with commas between")
    parser.add_argument("--pictures", help="where the pictures go")
    parser.add_argument("--page", help="the page, if not the program's own")
    parser.add_argument("--more", default="", help="more flags of the program")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="carillon-center-", ignore_cleanup_errors=True) as folder:
        held = asyncio.run(run(arguments, folder))
    sys.stdout.flush()
    os._exit(0 if held else 1)


if __name__ == "__main__":
    main()
