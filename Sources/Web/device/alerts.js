import { byId, clamp, keyed, make } from "./dom.js";
import { drawRow, levelOf, levels, makeRow } from "./rows.js";

/** @typedef {import("../carillon.js").Notification} Notification */
/** @typedef {import("./rows.js").Shown} Shown */

const bannerMilliseconds = 7000, moveMilliseconds = 320, mostBanners = 3;
/** @type {Notification[]} the newest first; it lies on the others, whose time begins when it has gone */
let banners = [];
/** @type {number|undefined} */
let timer;

/**
 * Slides a banner in. It stays for seven seconds, longer under the pointer or the focus, and a critical one until the person hides it.
 * @param {Notification} notification
 * @param {Shown} shown
 */
export function showBanner(notification, shown) {
  banners = [notification, ...banners.filter(({ identifier }) => identifier !== notification.identifier)].slice(0, mostBanners);
  drawBanners(shown);
  wait(shown);
  const { title, subtitle, body } = shown.device.preview(notification), level = levelOf(notification);
  const spoken = [levels[level]?.[1], title, subtitle, body].filter(Boolean).map((text) => clamp(text)).join(". ");
  byId(level === "critical" ? "alert" : "status").textContent = spoken;
}

/** @param {Shown} shown */
function wait(shown) {
  clearTimeout(timer);
  const [first] = banners;
  if (!first || levelOf(first) === "critical") return;
  timer = setTimeout(() => {
    if (byId("banners").matches(":hover, :focus-within")) wait(shown);
    else hideBanner(first.identifier, shown);
  }, bannerMilliseconds);
}

/**
 * Draws the banners anew, without those whose notification has left the list.
 * @param {Shown} shown
 */
export function drawBanners(shown) {
  if (banners.length === 0 && !byId("banners").firstChild) return;
  const there = new Map(shown.device.delivered.map((each) => [each.identifier, each]));
  banners = banners.flatMap((each) => there.get(each.identifier) ?? (each.presentation.includes("list") ? [] : each));
  const leave = (/** @type {string} */ identifier) => hideBanner(identifier, shown);
  keyed(byId("banners"), banners, ({ identifier }) => identifier, () => makeRow(shown, leave), (row, notification) => {
    drawRow(row, notification, shown, "Hide");
  });
}

/**
 * @param {string} identifier
 * @param {Shown} shown
 */
export function hideBanner(identifier, shown) {
  byId("banners").keyed?.get(identifier)?.classList.add("leaving");
  setTimeout(() => {
    banners = banners.filter((each) => each.identifier !== identifier);
    drawBanners(shown);
    wait(shown);
  }, moveMilliseconds);
}

/** @type {AudioContext|undefined} a browser lets it sound after the first gesture */
let audio;
for (const gesture of ["pointerdown", "keydown"]) addEventListener(gesture, () => (audio ??= new AudioContext()).resume());

/**
 * Strikes a bell, and lets the device vibrate. A named sound has a pitch of its own.
 * @param {{name: string, isCritical: boolean, volume?: number}|undefined} sound
 */
export function ring(sound) {
  if (navigator.userActivation?.hasBeenActive) navigator.vibrate?.(sound?.isCritical ? [120, 60, 120] : 60);
  if (audio?.state !== "running") return;
  document.documentElement.dataset.rung = String(Number(document.documentElement.dataset.rung ?? 0) + 1);
  const name = sound?.name ?? "default";
  const step = name === "default" ? 0 : [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 12;
  const start = audio.currentTime, loud = 0.2 * (sound?.volume ?? 1);
  for (const again of sound?.isCritical ? [0, 0.35] : [0]) {
    // The partials of a bell: hum, prime, minor third, fifth, octave.
    for (const [ratio, part, length] of [[0.5, 0.5, 1.6], [1, 1, 1.2], [1.2, 0.5, 0.9], [1.5, 0.3, 0.7], [2, 0.6, 0.5]]) {
      const tone = new OscillatorNode(audio, { frequency: 523 * 2 ** (step / 12) * ratio });
      const gain = new GainNode(audio, { gain: loud * part });
      gain.gain.exponentialRampToValueAtTime(0.0001, start + again + length);
      tone.connect(gain).connect(audio.destination);
      tone.start(start + again);
      tone.stop(start + again + length);
    }
  }
}

let badge = 0, iconTimer = 0;
/**
 * Writes the badge into the title and onto the icon.
 * @param {number} count
 */
export function drawBadge(count) {
  document.title = count > 0 ? `(${count}) Notifications` : "Notifications";
  if (count === badge) return;
  badge = count;
  navigator.setAppBadge?.(count).catch(() => {});
  // An icon costs a browser much more than a title.
  clearTimeout(iconTimer);
  iconTimer = setTimeout(drawIcon, 200);
}

function drawIcon() {
  const canvas = make("canvas", { width: 64, height: 64 }), icon = byId("icon");
  const pen = canvas.getContext("2d"), image = new Image();
  image.onload = () => {
    pen.drawImage(image, 0, 0, 64, 64);
    if (badge > 0) {
      pen.fillStyle = "#c8102e";
      pen.arc(42, 22, 22, 0, 7);
      pen.fill();
      pen.fillStyle = "#fff";
      pen.font = `600 ${badge > 9 ? 24 : 30}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.fillText(badge > 99 ? "99" : String(badge), 42, 33);
    }
    canvas.toBlob((/** @type {Blob} */ blob) => {
      if (icon.href.startsWith("blob:")) URL.revokeObjectURL(icon.href);
      icon.href = URL.createObjectURL(blob);
    });
  };
  image.src = "icon.svg";
}

/** @type {Promise<ServiceWorkerRegistration|undefined>|undefined} */
let registration;
/** Starts the service worker, which shows the browser's own notifications and hears their clicks. */
export function startWorker() {
  const { trustedTypes } = /** @type {any} */ (globalThis);
  const policy = trustedTypes?.createPolicy("carillon", { createScriptURL: (/** @type {string} */ url) => url });
  const address = policy?.createScriptURL("service-worker.js") ?? "service-worker.js";
  registration = navigator.serviceWorker?.register(/** @type {string} */ (address))
    .catch((error) => void console.warn("no service worker:", error.message));
  return registration;
}

/** What shows that a click comes from a notification of this page: any site may link to it. */
export function outsideKey() {
  const key = localStorage.getItem("outside") ?? crypto.getRandomValues(new Uint32Array(4)).join("");
  localStorage.setItem("outside", key);
  return key;
}

/**
 * Shows the browser's own notification, in place of the one of its identifier.
 * @param {Notification} notification
 * @param {boolean} isSilent
 * @param {Shown} shown
 */
export async function showOutside(notification, isSilent, { device }) {
  if (globalThis.Notification?.permission !== "granted") return;
  const { title, subtitle, body } = device.preview(notification);
  const actions = (device.category(notification)?.actions ?? []).map(({ identifier, title, textInput }) => (
    { action: identifier, title: clamp(title, 60), type: textInput ? "text" : "button", placeholder: textInput?.placeholder }
  ));
  const options = {
    body: [subtitle, body].filter(Boolean).map((text) => clamp(text)).join("\n"),
    tag: notification.identifier,
    data: { key: outsideKey() },
    renotify: !isSilent,
    silent: isSilent,
    icon: "icon.png",
    requireInteraction: levelOf(notification) === "critical",
    timestamp: notification.date,
    actions: actions.slice(0, /** @type {any} */ (Notification).maxActions ?? 2),
  };
  await (await registration)?.showNotification(clamp(title, 200) || "Notification", options);
}

/**
 * Closes the browser's notifications that are not in the list any more.
 * @param {Notification[]} delivered
 */
export async function tidyOutside(delivered) {
  if (globalThis.Notification?.permission !== "granted") return;
  const there = new Set(delivered.map(({ identifier }) => identifier));
  for (const each of await (await registration)?.getNotifications() ?? []) if (!there.has(each.tag)) each.close();
}
