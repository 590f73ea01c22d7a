"""Devices that are one page of `carillon.js` in a real Chromium, each with a database of its own.

The page tells what goes over its sockets. A device acknowledges a notification after it has stored it and told the page, so the
acknowledgement says that it was shown. Where the connection ends between the two, the notification comes again: that the device knows it by
then says that it was shown, if the page was told of it or lists it.
"""
import asyncio
import json
import os
import random

import pages
from common import APPLICATION, CATEGORIES, Log, is_fickle, token_of, users_of

PAGE = """<!doctype html><meta charset="utf-8"><title>nemesis</title><script type="module">
import { Device, DISMISS, OPEN } from "/carillon.js";
const { devices, application, categories, respond } = await (await fetch("/devices")).json();
const numbers = new Map(devices.map(({ number, token }) => [token, number]));
let telling = Promise.resolve(), isSettled = false;
const tell = (device, what, more) => {
  const body = JSON.stringify({ device, what, at: Date.now() / 1000, ...more });
  telling = telling.then(async () => isSettled = (await (await fetch("/told", { method: "POST", body })).json()).settled);
};
const sent = new Set(), counted = new Set(), presented = new Set(), opened = new Map();
window.WebSocket = class extends WebSocket {
  frames = new Map();
  constructor(...place) {
    super(...place);
    this.addEventListener("message", ({ data }) => this.heard(JSON.parse(data)));
    this.addEventListener("close", ({ code }) => this.number !== undefined && tell(this.number, "closed", { why: code, welcomed: this.welcomed }));
  }
  heard(frame) {
    const { type, delivery, response, session, from, to, reason } = frame;
    if (type === "notify" || type === "remove") this.frames.set(delivery, { ...frame, at: Date.now() / 1000 });
    if (type === "welcome") {
      this.welcomed = true;
      tell(this.number, "welcome", { session });
    }
    if (type === "gap") tell(this.number, "gap", { since: from, to });
    if (response) tell(this.number, type, { response, reason });
  }
  send(text) {
    const frame = JSON.parse(text), { type, deliveries = [], updated = [], dropped = [], response, action } = frame;
    if (type === "hello") this.number = numbers.get(frame.device);
    for (const delivery of type === "ack" ? deliveries : []) this.took(delivery, updated.includes(delivery) ? "updated" : "shown");
    for (const { delivery, reason } of dropped) this.took(delivery, reason === "canceled" ? "below" : reason);
    if (type === "response" && !sent.has(response)) tell(this.number, "response", { response, action });
    sent.add(response);
    super.send(text);
  }
  took(delivery, what) {
    const { type, id, identifier, identifiers = [], revision, expiration = 0, payload, at } = this.frames.get(delivery);
    const name = `${this.number} ${id}`, isThere = () => presented.has(name) || opened.get(this.number)?.delivered.some((one) => one.id === id);
    this.frames.delete(delivery);
    if (type !== "remove" && what === "known" && !counted.has(name) && isThere()) what = "shown";
    if (what === "shown" || what === "updated") counted.add(name);
    if (type === "remove") tell(this.number, "removed", { identifiers, revision });
    else tell(this.number, what, { at, id, identifier, revision, expiration, number: payload.number });
  }
};
const getRandomValues = crypto.getRandomValues.bind(crypto);
for (const { number, token, user, url } of devices) {
  // A device makes its token from 32 random bytes.
  const bytes = token.match(/../g).map((pair) => parseInt(pair, 16));
  crypto.getRandomValues = (array) => array.length === 32 ? (array.set(bytes), array) : getRandomValues(array);
  const authorization = { status: "authorized" }, database = `nemesis ${number}`;
  const device = await Device.open({ url, application, user, database, categories, authorization, deliveredLimit: 100_000 });
  device.addEventListener("connection", ({ detail: { state, code } }) => state === "stopped" && tell(number, "banished", { code }));
  device.addEventListener("problem", ({ detail }) => tell(number, "failed", { line: `${detail.code}: ${detail.message}` }));
  opened.set(number, device);
  device.addEventListener("present", ({ detail: { notification: { id, identifier } } }) => {
    presented.add(`${number} ${id}`);
    if (isSettled || Math.random() > respond) return;
    const action = [OPEN, DISMISS, "reply"][Math.floor(Math.random() * 3)];
    // A newer one may have taken its place, or a removal.
    device.respond(identifier, action, action === "reply" ? "on my way \u2713" : undefined).catch(() => {});
  });
}
window.isOpen = true;
</script>"""


def are_web(count, devices, is_program):
    """The numbers of the devices that are the page: the first of those with one person and lasting settings that are no programs."""
    return [number for number in range(devices) if len(users_of(number)) == 1 and not is_fickle(number) and not is_program(number)][:count]


class Answer(pages.Answer):
    def do_GET(self):
        if self.path == "/":
            return self.give("text/html", PAGE.encode())
        if self.path == "/devices":
            return self.give("application/json", json.dumps(self.server.devices).encode())
        super().do_GET()

    def do_POST(self):
        try:
            self.server.took(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        except Exception as error:  # noqa: BLE001 - the run ends with it
            self.server.faults.append(error)
        self.give("application/json", json.dumps({"settled": self.server.crowd.is_settled}).encode())


class WebDevice:
    """What is known of one of the page's devices."""

    def __init__(self, number, crowd):
        self.user, self.connections, self.welcomed, self.outbox, self.list = users_of(number)[0], 0, False, set(), {}
        self.log = Log(os.path.join(crowd.arguments.folder, "%04d.log" % number), 0.0)

    async def run(self):
        await asyncio.Event().wait()

    def took(self, what, at, line):
        if what == "welcome":
            self.welcomed, self.connections, line["user"] = True, self.connections + 1, self.user
        elif what == "closed":
            self.connections -= bool(line.pop("welcomed", False))
        elif what in ("shown", "updated"):
            self.list[line["identifier"]], line["user"] = line["revision"], self.user
        elif what == "removed":
            named = line["identifiers"] or list(self.list)
            line["gone"] = [name for name in named if self.list.get(name, "\uffff") < line["revision"]]
            for name in line["gone"]:
                del self.list[name]
        elif what == "response":
            self.outbox.add(line["response"])
        elif what in ("accepted", "refused"):
            if line["response"] not in self.outbox:
                return
            self.outbox.remove(line["response"])
        self.log.write(what, at=at, **line)


class Web(pages.Site):
    """The browser, the site of the page, and its devices by number."""

    def __init__(self, crowd, numbers):
        self.crowd, self.faults, self.all = crowd, [], {number: WebDevice(number, crowd) for number in numbers}
        lot = random.Random(crowd.arguments.seed)
        self.devices = {
            "application": APPLICATION, "categories": CATEGORIES, "respond": crowd.arguments.respond,
            "devices": [{"number": number, "token": token_of(number), "user": device.user, "url": lot.choice(crowd.arguments.url)}
                        for number, device in self.all.items()]}
        super().__init__(crowd.arguments.web_port, Answer)
        self.browser = pages.Browser(os.path.join(crowd.arguments.folder, "profile"), None, self)

    async def run(self):
        await self.browser.start()
        await pages.quietly(self.browser.driver.get, self.origin)
        await self.browser.until("window.isOpen")
        while not self.faults:
            await asyncio.sleep(0.5)
        raise self.faults[0]

    def took(self, told):
        self.all[told.pop("device")].took(told.pop("what"), told.pop("at"), told)
