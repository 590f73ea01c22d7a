import { appName, byId, clamp, keyed, moment } from "./dom.js";

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

export const marks = {
  critical: "Critical",
  "time-sensitive": "Time sensitive",
};
const graphemes = new Intl.Segmenter();

/** @param {string} text */
function hue(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.charCodeAt(0)) % 3600;
  return sum / 10;
}

/**
 * Makes an empty row.
 * @param {Shown} shown
 * @returns {any}
 */
export function makeRow(shown) {
  const row = byId("t-row").content.firstElementChild.cloneNode(true);
  for (const part of ["tile", "from", "mark", "open", "text", "thumb", "away", "more"]) {
    row[part + "Part"] = row.querySelector("." + part);
  }
  row.timePart = row.querySelector("time");
  row.openPart.onclick = () => shown.open(row.notification.identifier);
  row.awayPart.onclick = () => shown.dismiss(row.notification.identifier);
  row.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && event.target === row) row.openPart.click();
  };
  return row;
}

/**
 * Draws a notification into a row; nothing is written that stands there.
 * @param {any} row
 * @param {Notification} notification
 * @param {Shown} shown
 */
export function drawRow(row, notification, { device, application }) {
  const time = moment(notification.date);
  if (row.timePart.textContent !== time) row.timePart.textContent = time;
  const looks = `${device.locked} ${device.settings.previews}`;
  if (row.notification === notification && row.looks === looks) return;
  [row.notification, row.looks] = [notification, looks];
  const preview = device.preview(notification), app = appName(application);
  const { interruptionLevel, threadIdentifier } = notification.content;
  const title = clamp(preview.title || app, 200);
  row.dataset.identifier = notification.identifier;
  row.openPart.textContent = title;
  row.textPart.textContent = [preview.subtitle, preview.body].filter(Boolean)
    .map((text) => clamp(text)).join("\n");
  row.fromPart.textContent = app;
  const [first] = graphemes.segment(title), letter = first?.segment ?? "";
  row.tilePart.textContent = letter.length > 8 ? "•" : letter.toUpperCase();
  const color = preview.isHidden ? app : threadIdentifier ?? title;
  row.tilePart.style.setProperty("--hue", String(hue(color)));
  const mark = marks[/** @type {keyof marks} */ (interruptionLevel)];
  row.markPart.hidden = !mark;
  row.markPart.textContent = mark ?? "";
  row.classList.toggle("critical", interruptionLevel === "critical");
  row.classList.toggle("sensitive", interruptionLevel === "time-sensitive");
  row.setAttribute("aria-label", [mark, title].filter(Boolean).join(": "));
  row.timePart.dateTime = new Date(notification.date).toISOString();
  row.awayPart.setAttribute("aria-label", `Dismiss: ${title}`);
  const image = !preview.isHidden &&
    notification.attachments.find(({ type }) => type.startsWith("image/"));
  row.thumbPart.hidden = !image;
  if (image && row.thumbPart.dataset.hash !== image.hash) {
    row.thumbPart.dataset.hash = image.hash;
    row.thumbPart.onerror = () => row.thumbPart.hidden = true;
    device.attachmentURL(notification, image.identifier).then(
      (url) => row.thumbPart.src = url,
      () => row.thumbPart.hidden = true,
    );
  }
}

/** The list: rows by thread, the newest thread on top, those of a thread behind its newest. */
export class Feed {
  /** @type {Set<string>} threads that show all of their rows */
  #opened = new Set();

  /**
   * @param {any} root
   * @param {Shown} shown
   */
  constructor(root, shown) {
    [this.root, this.shown] = [root, shown];
  }

  /**
   * Draws these, the newest first.
   * @param {Notification[]} notifications
   */
  draw(notifications) {
    /** @type {Map<string, Notification[]>} */
    const threads = new Map();
    for (const notification of notifications) {
      const { threadIdentifier } = notification.content;
      const name = threadIdentifier === undefined ? `one ${notification.identifier}` : `thread ${threadIdentifier}`;
      const thread = threads.get(name);
      if (thread) thread.push(notification);
      else threads.set(name, [notification]);
    }
    const drawn = [...threads].map(([name, all]) => ({
      name,
      all,
      rows: this.#opened.has(name) ? all : all.slice(0, 1),
    }));
    const count = drawn.reduce((sum, { rows }) => sum + rows.length, 0);
    const isCalm = Math.abs(threads.size - (this.root.keyed?.size ?? 0)) < 3;
    let place = 0;
    const set = (/** @type {any} */ row, /** @type {string} */ name, /** @type {unknown} */ value) => {
      if (row.getAttribute(name) !== String(value)) row.setAttribute(name, String(value));
    };
    keyed(this.root, drawn, ({ name }) => name, () => {
      const thread = document.createElement("div");
      thread.className = isCalm ? "thread fresh" : "thread";
      return thread;
    }, (element, { name, all, rows }) => {
      keyed(element, rows, ({ identifier }) => identifier, () => makeRow(this.shown), (row, notification) => {
        drawRow(row, notification, this.shown);
        set(row, "aria-posinset", ++place);
        set(row, "aria-setsize", count);
        const isFirst = notification === all[0], isOpened = rows.length > 1;
        row.classList.toggle("stack", isFirst && all.length > 1 && !isOpened);
        row.morePart.hidden = !isFirst || all.length < 2;
        const more = isOpened ? "Show less" : `${all.length - 1} earlier`;
        if (row.morePart.textContent !== more) row.morePart.textContent = more;
        set(row.morePart, "aria-expanded", isOpened);
        row.morePart.onclick = () => {
          if (!this.#opened.delete(name)) this.#opened.add(name);
          this.draw(this.last);
        };
      });
    });
    this.last = notifications;
  }

  /** @returns {any[]} */
  get rows() {
    return [...this.root.querySelectorAll(".row")];
  }
}
