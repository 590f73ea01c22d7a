import { appName, byId, clamp, keyed } from "./dom.js";
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
  speak(notification, shown);
}

/** Has a screen reader say what is shown. @param {Notification} notification @param {Shown} shown */
export function speak(notification, { device, application }) {
  const { title, subtitle, body } = device.preview(notification), level = levelOf(notification);
  const spoken = [levels[level]?.[1], title || appName(application), subtitle, body].filter(Boolean).map((text) => clamp(text)).join(". ");
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

/** Draws the banners anew, without those whose notification has left the list. @param {Shown} shown */
export function drawBanners(shown) {
  if (banners.length === 0 && !byId("banners").firstChild) return;
  const there = new Map(shown.device.delivered.map((each) => [each.identifier, each]));
  banners = banners.flatMap((each) => there.get(each.identifier) ?? (each.presentation.includes("list") ? [] : each));
  const leave = (/** @type {string} */ identifier) => hideBanner(identifier, shown);
  keyed(byId("banners"), banners, ({ identifier }) => identifier, () => makeRow(shown, leave), (row, notification) => {
    drawRow(row, notification, shown, "Hide");
  });
}

/** @param {string} identifier @param {Shown} shown */
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
/** Writes the badge into the title and onto the icon. @param {number} count */
export function drawBadge(count) {
  document.title = count > 0 ? `(${count}) Notifications` : "Notifications";
  if (count === badge) return;
  badge = count;
  navigator.setAppBadge?.(count).catch(() => {});
  // An icon costs a browser much more than a title.
  clearTimeout(iconTimer);
  iconTimer = setTimeout(() => drawIcon().catch(console.warn), 200);
}

async function drawIcon() {
  const icon = byId("icon"), drawn = await (await fetch("icon.svg")).text(), number = badge > 99 ? "99" : badge;
  const mark =
    `<circle cx="336" cy="176" r="176" fill="#c8102e"/><text x="336" y="250" font-size="210" fill="#fff" text-anchor="middle">${number}</text>`;
  const text = badge > 0 ? drawn.replace("</svg>", `${mark}</svg>`) : drawn;
  if (icon.href.startsWith("blob:")) URL.revokeObjectURL(icon.href);
  icon.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
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

/**
 * Shows the browser's own notification, in place of the one of its identifier.
 * @param {Notification} notification
 * @param {boolean} isSilent
 * @param {Shown} shown
 */
export async function showOutside(notification, isSilent, { device, application }) {
  if (globalThis.Notification?.permission !== "granted") return;
  const { title, subtitle, body } = device.preview(notification);
  const actions = (device.category(notification)?.actions ?? []).map(({ identifier, title, textInput }) => (
    { action: identifier, title: clamp(title, 60), type: textInput ? "text" : "button", placeholder: textInput?.placeholder }
  ));
  const options = {
    body: [subtitle, body].filter(Boolean).map((text) => clamp(text)).join("\n"),
    tag: `${application} ${notification.identifier}`,
    data: { application, identifier: notification.identifier },
    renotify: !isSilent,
    silent: isSilent,
    icon: "icon.png",
    requireInteraction: levelOf(notification) === "critical",
    timestamp: notification.date,
    actions: actions.slice(0, /** @type {any} */ (Notification).maxActions ?? 2),
  };
  await (await registration)?.showNotification(clamp(title, 200) || "Notification", options);
}

/** Closes the browser's notifications of the application that are not in the list any more. @param {Shown} shown */
export async function tidyOutside({ device, application }) {
  if (globalThis.Notification?.permission !== "granted") return;
  const all = await (await registration)?.getNotifications() ?? [];
  // What was shown meanwhile is in the list of now.
  const there = new Set(device.delivered.map(({ identifier }) => identifier));
  for (const each of all) if (each.data?.application === application && !there.has(each.data.identifier)) each.close();
}
