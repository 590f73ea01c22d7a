// Shows nothing by itself: the page does, through its registration. It hands the person's clicks to a page, or opens one.
const worker = /** @type {any} */ (globalThis);

/**
 * @param {any} notification
 * @param {string} action empty: it was opened
 * @param {string} [text]
 */
async function tell({ tag: identifier, data }, action, text = "") {
  const pages = await worker.clients.matchAll({ type: "window" });
  const isDismissal = action === "dismiss:";
  if (pages.length > 0) {
    pages[0].postMessage({ identifier, action, text });
    if (!isDismissal) await pages[0].focus();
  } else if (!isDismissal) {
    // Behind # no server hears what the person wrote.
    const click = new URLSearchParams({ identifier, action, text, key: data.key });
    await worker.clients.openWindow(`${worker.registration.scope}#${click}`);
  }
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(tell(event.notification, event.action, event.reply));
});
worker.addEventListener("notificationclose", (/** @type {any} */ event) => event.waitUntil(tell(event.notification, "dismiss:")));
