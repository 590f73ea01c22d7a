import { appName, byId, clamp, keyed, make, moment } from "./dom.js";

/** @typedef {import("../carillon.js").Notification} Notification */
/** @typedef {import("../carillon.js").Device} Device */
/**
 * What a row is drawn from, and what it does.
 * @typedef {object} Shown
 * @property {Device} device
 * @property {string} application
 * @property {(identifier: string) => void} open
 * @property {(identifier: string) => void} dismiss
 */

/** @type {Record<string, [string, string]>} the color and the word of a level that is marked */
export const levels = { critical: ["red", "Critical"], "time-sensitive": ["yellow", "Time sensitive"] };
/** How much a notification may interrupt: the cluster may lower it. @param {Notification} notification @returns {string} */
export const levelOf = ({ frame, content }) => frame.interruptionLevel ?? content.interruptionLevel;
const graphemes = new Intl.Segmenter(), parts = ["tile", "mark", "time", "open", "text", "thumb", "away", "more"];

/** @param {string} text */
function hue(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.charCodeAt(0)) % 3600;
  return sum / 10;
}

/** Makes an empty row. @param {Shown} shown @param {(identifier: string) => void} leave what its cross does @returns {any} */
export function makeRow(shown, leave = shown.dismiss) {
  const row = byId("t-row").content.firstElementChild.cloneNode(true);
  row.parts = Object.fromEntries(parts.map((part) => [part, row.querySelector("." + part)]));
  row.parts.open.onclick = () => shown.open(row.notification.identifier);
  row.parts.away.onclick = () => leave(row.notification.identifier);
  row.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && event.target === row) row.parts.open.click();
  };
  return row;
}

/**
 * Draws a notification into a row; nothing is written that stands there.
 * @param {any} row
 * @param {Notification} notification
 * @param {Shown} shown
 * @param {string} leave the word for what its cross does
 */
export function drawRow(row, notification, { device, application }, leave = "Dismiss") {
  const { tile, mark, time, open, text, thumb, away } = row.parts, when = moment(notification.date);
  if (time.textContent !== when) time.textContent = when;
  const looks = `${device.locked} ${device.settings.previews}`;
  if (row.notification === notification && row.looks === looks) return;
  [row.notification, row.looks] = [notification, looks];
  const preview = device.preview(notification), app = appName(application);
  const { threadIdentifier } = notification.content, level = levelOf(notification), [color, word] = levels[level] ?? ["", ""];
  const title = clamp(preview.title || app, 200);
  row.dataset.level = level;
  row.dataset.identifier = notification.identifier;
  row.setAttribute("aria-label", [word, title].filter(Boolean).join(": "));
  open.textContent = title;
  text.textContent = [preview.subtitle, preview.body].filter(Boolean).map((each) => clamp(each)).join("\n");
  mark.className = `mark ${color}`;
  mark.textContent = word;
  mark.hidden = !word;
  time.dateTime = new Date(notification.date).toISOString();
  away.setAttribute("aria-label", `${leave}: ${title}`);
  const letter = [...graphemes.segment(title)][0].segment;
  tile.textContent = letter.length > 8 ? "•" : letter.toUpperCase();
  tile.style.setProperty("--hue", String(hue(preview.isHidden ? app : threadIdentifier ?? title)));
  const image = !preview.isHidden && notification.attachments.find(({ type }) => type.startsWith("image/"));
  thumb.hidden = !image;
  if (!image || thumb.dataset.hash === image.hash) return;
  thumb.dataset.hash = image.hash;
  const fail = thumb.onerror = () => thumb.hidden = true;
  device.attachmentURL(notification, image.identifier).then((url) => thumb.src = url, fail);
}

/** The list: rows by thread, the newest thread on top, those of a thread behind its newest. */
export class Feed {
  /** @type {Set<string>} threads that show all of their rows */
  #opened = new Set();
  /** @type {Notification[]} */
  #last = [];

  /** @param {any} root @param {Shown} shown */
  constructor(root, shown) {
    this.root = root;
    this.shown = shown;
  }

  /** Draws these, the newest first. @param {Notification[]} notifications */
  draw(notifications = this.#last) {
    this.#last = notifications;
    const threads = Map.groupBy(
      notifications,
      ({ identifier, content }) => content.threadIdentifier === undefined ? `one ${identifier}` : `thread ${content.threadIdentifier}`,
    );
    const drawn = [...threads].map(([name, all]) => ({ name, all, rows: this.#opened.has(name) ? all : all.slice(0, 1) }));
    const count = String(drawn.reduce((sum, { rows }) => sum + rows.length, 0));
    let place = 0;
    const set = (/** @type {any} */ element, /** @type {string} */ property, /** @type {unknown} */ value) => {
      if (element[property] !== value) element[property] = value;
    };
    keyed(this.root, drawn, ({ name }) => name, () => make("div.thread"), (thread, { name, all, rows }) => {
      keyed(thread, rows, ({ identifier }) => identifier, () => makeRow(this.shown), (row, notification) => {
        drawRow(row, notification, this.shown);
        set(row, "ariaPosInSet", String(++place));
        set(row, "ariaSetSize", count);
        const { more } = row.parts, isOpened = rows.length > 1, hasMore = notification === all[0] && all.length > 1;
        set(row.dataset, "stack", String(hasMore && !isOpened));
        set(more, "hidden", !hasMore);
        if (!hasMore) return;
        set(more, "textContent", isOpened ? "Show less" : `${all.length - 1} earlier`);
        set(more, "ariaExpanded", String(isOpened));
        more.onclick = () => {
          if (!this.#opened.delete(name)) this.#opened.add(name);
          this.draw();
        };
      });
    });
  }

  /** @returns {any[]} */
  get rows() {
    return [...this.root.querySelectorAll(".row")];
  }
}
