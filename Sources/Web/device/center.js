import { Device, DISMISS, OPEN } from "../carillon.js";
import { drawBadge, drawBanners, hideBanner, ring, showBanner, showOutside, speak, startWorker, tidyOutside } from "./alerts.js";
import { appName, byId, make } from "./dom.js";
import { PanelView } from "./panel.js";
import { Feed } from "./rows.js";
import { categories, contentExtensions } from "./samples.js";
import { showSettings } from "./settings.js";

/** @typedef {{application: string, user?: string, credential?: string}} SignIn */
/** @typedef {{devices: string, credential: boolean, origins?: string[]}} Config */
/** @typedef {import("./rows.js").Shown} Shown */

const query = new URLSearchParams(location.search);
/** Who has signed in, or has signed out while the cluster does not know, in whichever tab. @param {"sign-in"|"sign-out"} name */
const stored = (name) => /** @type {SignIn|null} */ (JSON.parse(localStorage.getItem(name) ?? "null"));

/** Whether this page has opened a device: the next one is another page's. */
let hasDevice = false;

/** @param {Config} config */
function askWho(config) {
  const form = byId("sign-in");
  form.application.value = query.get("app") ?? "com.example.shop";
  form.user.value = query.get("user") ?? "";
  byId("with-credential").hidden = !config.credential;
  byId("leaving").hidden = !stored("sign-out");
  byId("welcome").hidden = false;
  form.onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const [application, user, credential] = ["application", "user", "credential"].map((name) => form[name].value.trim() || undefined);
    localStorage.setItem("sign-in", JSON.stringify({ application, user, credential }));
    if (stored("sign-out")?.application === application) localStorage.removeItem("sign-out");
    if (hasDevice) return location.assign(location.pathname);
    byId("welcome").hidden = true;
    run(config).catch(fail);
  };
}

/** Opens the device of who has signed in, or has signed out. @param {Config} config @param {"sign-in"|"sign-out"} name */
function openDevice(config, name) {
  hasDevice = true;
  const url = new URL(config.devices, location.href), { application, user } = /** @type {SignIn} */ (stored(name));
  url.protocol = url.protocol.replace("http", "ws");
  const what = { categories, contentExtensions, deliveredLimit: 1000, signsOut: name === "sign-out" };
  return Device.open({ url: url.href, application, user, credential: () => (stored(name) ?? stored("sign-out"))?.credential, ...what });
}

/** Keeps a device whose person has signed out until the cluster knows it. @param {Device} device */
function leave(device) {
  const check = () => {
    if (device.connection.code !== 4013) return;
    localStorage.removeItem("sign-out");
    byId("leaving").hidden = true;
    device.close();
  };
  device.addEventListener("connection", check);
  check();
}

/** @param {unknown} error */
function fail(error) {
  console.warn(error);
  byId("app").hidden = false;
  addNote("failed", "Something went wrong", error instanceof Error ? error.message : String(error));
}

/**
 * Shows a note above the list, in place of the one of its name. Its buttons take it away.
 * @param {string} name
 * @param {string} title
 * @param {string} text
 * @param {[words: string, press?: () => unknown, kind?: string][]} buttons
 */
function addNote(name, title, text, buttons = [["Close"]]) {
  removeNote(name);
  const drawn = buttons.map(([words, press, kind], index) => {
    const onclick = () => {
      removeNote(name);
      press?.();
    };
    return make(`button.${kind ?? (index === 0 ? "filled" : "plain")}`, { onclick }, words);
  });
  byId("notes").append(make(
    "section.note",
    { id: `note-${name}`, "aria-label": title },
    make("h2", {}, title),
    make("p", {}, text),
    make("div.buttons", {}, ...drawn),
  ));
}

/** @param {string} name */
const removeNote = (name) => byId(`note-${name}`)?.remove();

/** @param {Config} config */
async function run(config) {
  const { application, user } = /** @type {SignIn} */ (stored("sign-in")), device = await openDevice(config, "sign-in");
  const detail = byId("detail"), nothing = byId("nothing"), name = appName(application), narrow = matchMedia("(max-width: 860px)");
  /** @type {"nothing"|"panel"|"settings"} what the detail shows */
  let view = "nothing";
  /** @type {any} what had the focus before the detail */
  let opener;
  /** @type {string|undefined} what was opened on the lock screen */
  let waiting;
  /** @type {string|undefined} */
  let drawnSettings;
  /** @type {Shown} */
  const shown = { device, application, open, dismiss };
  const feed = new Feed(byId("feed"), shown), locked = new Feed(byId("locked"), shown), panel = new PanelView(shown, close);

  /** @param {"nothing"|"panel"|"settings"} next */
  function turn(next) {
    if (view === "nothing") opener = document.activeElement;
    view = next;
    detail.classList.toggle("shown", next !== "nothing");
    detail.scrollTop = 0;
    if (next === "nothing") detail.replaceChildren(nothing);
    else detail.firstElementChild.focus({ preventScroll: true });
    if (next !== "panel") device.panel?.close();
    for (const row of feed.rows) {
      row.classList.toggle("selected", next === "panel" && row.notification.identifier === panel.panel?.identifier);
    }
    arrange();
  }

  /** On a phone the detail lies over the list, and the lock screen over everything. */
  function arrange() {
    byId("app").inert = byId("banners").hidden = device.locked;
    byId("center").inert = narrow.matches && view !== "nothing";
  }
  narrow.onchange = arrange;

  function close() {
    if (view === "nothing") return;
    turn("nothing");
    (opener?.isConnected ? opener : feed.rows[0] ?? byId("to-settings")).focus();
  }

  /** @param {string} identifier */
  async function open(identifier) {
    hideBanner(identifier, shown);
    if (device.locked) {
      waiting = identifier;
      byId("unlock").lastChild.textContent = "Unlock to see it";
      return byId("unlock").focus();
    }
    const opened = await device.expand(identifier).catch(fail);
    if (!opened) return;
    panel.show(opened);
    turn("panel");
  }

  /** @param {string} identifier */
  function dismiss(identifier) {
    const { rows } = device.locked ? locked : feed, index = rows.findIndex((row) => row.notification.identifier === identifier);
    const next = rows[index + 1] ?? rows[index - 1] ?? byId("to-settings"), hadFocus = rows[index]?.contains(document.activeElement);
    if (panel.panel?.identifier === identifier) close();
    device.dismiss(identifier).then(() => hadFocus && next.focus(), fail);
  }

  function draw() {
    const { delivered } = device;
    feed.draw(delivered);
    byId("empty").hidden = delivered.length > 0;
    byId("clear").hidden = delivered.length < 2;
    byId("count").textContent = delivered.length || "";
    drawLock();
    drawBanners(shown);
    const settings = JSON.stringify([device.settings, device.quietHours]);
    if (settings === drawnSettings) return;
    drawnSettings = settings;
    ask();
    if (view === "settings") openSettings();
  }

  function drawLock() {
    const lock = byId("lock");
    locked.draw(device.locked ? device.delivered.filter(({ presentation }) => presentation.includes("lockScreen")) : []);
    if (lock.hidden !== device.locked) return;
    lock.hidden = !device.locked;
    if (device.locked) close();
    arrange();
    byId("unlock").lastChild.textContent = "Unlock";
    byId(device.locked ? "unlock" : "to-lock").focus();
    if (!device.locked && waiting) open(waiting);
    waiting = undefined;
  }

  function tick() {
    const now = new Date();
    byId("clock").textContent = now.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    byId("day").textContent = now.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
    feed.draw();
    setTimeout(tick, 60_000 - now.getTime() % 60_000);
  }

  const options = ["alert", "sound", "badge", "timeSensitive", "criticalAlert"];
  const allow = () =>
    device.requestAuthorization(options, async () => {
      await globalThis.Notification?.requestPermission();
      return true;
    }).catch(fail);
  const become = (/** @type {string} */ status) => device.setAuthorization({ ...device.settings, status }).catch(fail);

  /** Asks for what the person has not decided yet. */
  function ask() {
    const { status } = device.settings;
    for (const each of ["permission", "quietly"]) removeNote(each);
    if (status === "notDetermined") {
      addNote("permission", `May ${name} notify you?`, "Banners, sounds and a badge. You can change each of them at any time.", [
        ["Allow", allow],
        ["Quietly", () => device.requestAuthorization([...options, "provisional"]).catch(fail)],
        ["Don’t allow", () => device.requestAuthorization(options, () => Promise.resolve(false)).catch(fail)],
      ]);
    } else if (status === "provisional" && localStorage.getItem("keep") !== application) {
      addNote("quietly", `${name} delivers quietly`, "Its notifications come only into this list. Keep it so, or let it interrupt?", [
        ["Keep", () => localStorage.setItem("keep", application)],
        ["Allow banners", () => become("authorized")],
        ["Turn off", () => become("denied"), "plain.red"],
      ]);
    }
  }

  function openSettings() {
    const all = () => [...detail.querySelectorAll("input, select, button")];
    const place = view === "settings" ? all().indexOf(document.activeElement) : -1, { scrollTop } = detail;
    showSettings(device, { close, allow, signOut, fail });
    if (view !== "settings") return turn("settings");
    all()[place]?.focus();
    detail.scrollTop = scrollTop;
  }

  async function signOut() {
    await device.unregister();
    localStorage.setItem("sign-out", localStorage.getItem("sign-in") ?? "null");
    for (const name of ["sign-in", "keep"]) localStorage.removeItem(name);
    close();
    byId("app").hidden = true;
    askWho(config);
    leave(device);
  }

  function drawConnection() {
    const { state, words, code = 0 } = device.connection, line = byId("connection"), isOut = code === 4003 || code === 4013;
    const button = line.lastElementChild;
    line.dataset.state = state;
    line.firstElementChild.textContent = [words.replace(/\.$/, ""), user, application].filter(Boolean).join(" · ");
    button.hidden = state !== "stopped";
    button.textContent = isOut ? "Sign in again" : "Connect here";
    button.onclick = () => {
      if (isOut) localStorage.removeItem("sign-in");
      location.reload();
    };
  }

  const on = (/** @type {string} */ type, /** @type {(detail: any) => void} */ take) =>
    device.addEventListener(type, (event) => take(/** @type {CustomEvent} */ (event).detail));
  // A badge is drawn also while the page is hidden, when there are no frames.
  let isDue = false;
  on("change", () => {
    drawBadge(device.badge);
    tidyOutside(shown);
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      draw();
    });
  });
  on("present", ({ notification, options, state }) => {
    if (options.includes("sound")) ring(notification.content.sound);
    if (state === "locked" && options.includes("lockScreen")) speak(notification, shown);
    if (!options.includes("banner")) return;
    if (state === "foreground") showBanner(notification, shown);
    if (state === "background") showOutside(notification, !options.includes("sound"), shown).catch(console.warn);
  });
  on("connection", drawConnection);
  on("panel", (next) => {
    if (next) panel.draw();
    else if (view === "panel" && !panel.sent) close();
  });
  on("accepted", (answer) => panel.settled(answer));
  on("refused", (refusal) => {
    if (panel.settled(refusal)) return;
    const text = [refusal.field, refusal.rule].filter(Boolean).join(" ") || refusal.reason;
    addNote("refused", refusal.response ? "Your answer was refused" : "Your change was refused", text);
  });
  on("problem", fail);
  on("lost", () => {
    const text = "Your notifications here went with it. New ones come when you start again.";
    addNote("lost", "The browser has deleted this page’s storage", text, [["Start again", () => location.reload()]]);
  });

  byId("to-settings").onclick = () => view === "settings" ? close() : openSettings();
  byId("to-lock").onclick = () => device.setLocked(true);
  byId("unlock").onclick = () => device.setLocked(false);
  byId("clear").onclick = () => {
    byId("to-settings").focus();
    device.removeAllDelivered().catch(fail);
  };
  addEventListener("keydown", (event) => {
    const from = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || from.matches("input, select") || device.locked) return;
    if (event.key === "Escape") return close();
    const rows = feed.rows,
      within = from.closest("#feed .row"),
      current = /** @type {any} */ (within) ?? byId("feed").querySelector(".selected");
    const step = { j: 1, k: -1 }[event.key] ?? (within && { PageDown: 1, PageUp: -1 }[event.key]);
    if (step) {
      rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(current) + step))]?.focus();
      event.preventDefault();
    } else if (event.key === "e" && current) {
      dismiss(current.notification.identifier);
    }
  });

  /** Does what the person did with the browser's own notification. @param {{identifier: string, action: string, text: string}} click */
  async function clicked({ identifier, action, text }) {
    const notification = device.delivered.find((each) => each.identifier === identifier);
    if (!notification) return;
    const wanted = device.category(notification)?.actions?.find((each) => each.identifier === action);
    if (wanted?.textInput && !text) return open(identifier);
    const isBusy = () => device.panel?.identifier === identifier && device.panel.isBusy;
    while (isBusy()) await new Promise((resolve) => device.addEventListener("panel", resolve, { once: true }));
    await device.respond(identifier, action === "dismiss:" ? DISMISS : action || OPEN, text || undefined).catch(fail);
  }

  /** Takes the clicks that the service worker has kept, one tab at a time. @param {MessagePort} [port] which hears that there was one */
  const takeClicks = (port) =>
    navigator.locks.request("clicks", async () => {
      const cache = await caches.open("clicks");
      for (const request of await cache.keys()) {
        const click = await (await cache.match(request))?.json();
        if (click?.application !== application) continue;
        await clicked(click);
        await cache.delete(request);
        port?.postMessage("taken");
      }
    }).catch(console.warn);
  startWorker();
  navigator.serviceWorker?.addEventListener("message", ({ ports }) => takeClicks(ports[0]));

  for (const { feature, effect } of device.withheld) addNote(`without-${feature}`, "Not everything works here", effect);
  if (config.origins && !config.origins.includes(location.origin)) {
    addNote("origin", "The server does not let this page in", `Start its workers with --allowed-origins ${location.origin}`);
  }
  byId("app").hidden = false;
  drawBadge(device.badge);
  drawConnection();
  draw();
  tick();
  if (navigator.serviceWorker) takeClicks();
}

/** @type {Config} */
const config = await (await fetch("config.json")).json();
if (stored("sign-out")) openDevice(config, "sign-out").then(leave, console.warn);
const known = stored("sign-in"), isMeant = (query.get("app") ?? known?.application) === known?.application;
if (known && isMeant && (query.get("user") ?? known.user) === known.user) run(config).catch(fail);
else askWho(config);
sessionStorage.removeItem("boot");
