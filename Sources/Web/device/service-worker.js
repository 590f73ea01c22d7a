// Shows nothing by itself: the page does, through its registration. It hands the person's clicks to a page, or opens one.
const worker = /** @type {any} */ (globalThis);

/**
 * @param {string} identifier
 * @param {string} action empty: it was opened
 * @param {string} [text]
 */
async function tell(identifier, action, text) {
  const pages = await worker.clients.matchAll({ type: "window" });
  const isDismissal = action === "dismiss:";
  if (pages.length > 0) {
    pages[0].postMessage({ identifier, action, text });
    if (!isDismissal) await pages[0].focus();
  } else if (!isDismissal) {
    const query = new URLSearchParams({ identifier, action, text: text ?? "" });
    await worker.clients.openWindow(`${worker.registration.scope}?${query}`);
  }
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(tell(event.notification.tag, event.action, event.reply));
});
worker.addEventListener("notificationclose", (/** @type {any} */ event) => event.waitUntil(tell(event.notification.tag, "dismiss:")));
