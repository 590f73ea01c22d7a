/** The element of an id, which the page has. @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/**
 * Makes an element. Strings become text, never HTML.
 * @param {string} tag with classes: "p.answer.green"
 * @param {Record<string, unknown>} properties names with a dash are attributes
 * @param {(Node|string|false|undefined)[]} children
 * @returns {any}
 */
export function make(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-")) element.setAttribute(key, String(value));
    else Object.assign(element, { [key]: value });
  }
  element.append(.../** @type {Node[]} */ (children.filter(Boolean)));
  return element;
}

/** A drawing of the page's own: `icon("lock")`. @param {string} name */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg"), use = document.createElementNS(space, "use");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Shortens a text of somebody else's. @param {string|undefined} text @param {number} length */
export const clamp = (text = "", length = 300) =>
  text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, "") + "…";

/**
 * Makes the children of an element those of a list, in its order. A child that stays is kept as it is, with its focus and its media.
 * @template Item
 * @param {any} root
 * @param {Item[]} items
 * @param {(item: Item) => string} key
 * @param {(item: Item) => any} create
 * @param {(element: any, item: Item) => void} draw
 */
export function keyed(root, items, key, create, draw) {
  /** @type {Map<string, any>} */
  const former = root.keyed ?? new Map(), now = new Map();
  for (const item of items) now.set(key(item), former.get(key(item)) ?? create(item));
  for (const [name, element] of former) if (!now.has(name)) element.remove();
  let next = root.firstElementChild;
  for (const item of items) {
    const element = now.get(key(item));
    draw(element, item);
    if (element === next) next = next.nextElementSibling;
    else if (element.parentNode === root && root.moveBefore) root.moveBefore(element, next);
    else root.insertBefore(element, next);
  }
  root.keyed = now;
}

/** @param {string} application such as com.example.shop: "Shop" */
export function appName(application) {
  const word = application.split(".").at(-1) || application;
  return clamp(word[0].toUpperCase() + word.slice(1), 40);
}

const times = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const days = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });

/** @param {number} date in milliseconds */
export function moment(date) {
  const minutes = Math.floor((Date.now() - date) / 60_000);
  if (minutes < 60) return minutes < 1 ? "now" : `${minutes} min`;
  return (date >= new Date().setHours(0, 0, 0, 0) ? times : days).format(date);
}
