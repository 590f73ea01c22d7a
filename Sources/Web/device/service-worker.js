// Shows nothing by itself: the page does, through its registration. It keeps the person's clicks until a page of their application takes them.
const worker = /** @type {any} */ (globalThis);

/** Tells a page that there are clicks, and waits until it has taken one. @param {any} page */
const ask = (page) =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(page);
    page.postMessage("clicked", [port2]);
  });

/** @param {any} notification @param {string} action empty: it was opened @param {string} [text] */
async function keep({ data }, action, text = "") {
  const cache = await caches.open("clicks"), pages = await worker.clients.matchAll({ type: "window" });
  await cache.put(`click/${crypto.randomUUID()}`, Response.json({ ...data, action, text }));
  // The page of the application may be another one, or not be ready. It takes the click also later.
  const isOver = new Promise((resolve) => setTimeout(resolve, pages.length > 0 ? 3_000 : 0));
  const page = await Promise.race([...pages.map(ask), isOver]);
  if (action === "dismiss:") return;
  if (page) await page.focus();
  else await worker.clients.openWindow(worker.registration.scope);
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(keep(event.notification, event.action, event.reply));
});
worker.addEventListener("notificationclose", (/** @type {any} */ event) => event.waitUntil(keep(event.notification, "dismiss:")));
