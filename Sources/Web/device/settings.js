import { byId, icon, make } from "./dom.js";

/** @typedef {import("../carillon.js").Device} Device */

/** @type {[string, string, string?][]} */
const switches = [
  ["alert", "Banners"],
  ["lockScreen", "Lock screen"],
  ["notificationCenter", "Notification center"],
  ["sound", "Sounds", "They play once you have clicked or typed on this page"],
  ["badge", "Badges"],
  ["timeSensitive", "Time-sensitive notifications"],
  ["criticalAlert", "Critical alerts"],
  ["scheduledDelivery", "Gather in a summary", "Quietly into the list, but for time-sensitive and critical ones"],
];
/** @type {Record<string, string>} */
const outside = {
  granted: "The browser shows them, too, while this page is hidden",
  denied: "The browser does not allow its own; those in this page are shown",
};

const line = (/** @type {string} */ name, /** @type {any} */ control, /** @type {string|undefined} */ small = undefined) =>
  make("label", {}, make("span", {}, name, small && make("small", {}, small)), control);
const group = (/** @type {string} */ title, /** @type {any[]} */ ...lines) =>
  make("section.group", {}, make("h2", {}, title), make("div.lines", {}, ...lines));
const toggle = (/** @type {boolean} */ checked, /** @type {(checked: boolean) => unknown} */ changed) =>
  make("input", { type: "checkbox", role: "switch", checked, onchange: (/** @type {any} */ event) => changed(event.target.checked) });
const choice = (
  /** @type {[string, string][]} */ options,
  /** @type {string} */ value,
  /** @type {(value: string) => unknown} */ changed,
) =>
  make(
    "select",
    { onchange: (/** @type {any} */ event) => changed(event.target.value) },
    ...options.map(([each, name]) => make("option", { value: each, selected: each === value }, name)),
  );

/**
 * Draws what the person allows; each change holds at once.
 * @param {Device} device
 * @param {{close: () => void, allow: () => unknown, signOut: () => Promise<void>, fail: (error: Error) => void}} page
 */
export function showSettings(device, page) {
  const { settings, quietHours: quiet } = device, isOn = settings.status === "authorized" || settings.status === "provisional";
  const set = (/** @type {Record<string, unknown>} */ change) =>
    device.setAuthorization({ ...device.settings, ...change }).catch(page.fail);
  const allowed = toggle(
    isOn,
    (checked) => checked && settings.status === "notDetermined" ? page.allow() : set({ status: checked ? "authorized" : "denied" }),
  );

  const hours = { from: "22:00", to: "07:00", timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, ...quiet };
  const setHours = (/** @type {Record<string, unknown>} */ change) => device.setQuietHours({ ...hours, ...change }).catch(page.fail);
  const clock = (/** @type {"from"|"to"} */ name) =>
    make("input", {
      type: "time",
      value: hours[name],
      required: true,
      onchange: (/** @type {any} */ event) => event.target.value && setHours({ [name]: event.target.value }),
    });
  const chosen = new Set(hours.days ?? [1, 2, 3, 4, 5, 6, 7]);
  // Monday is drawn first. 1 is Sunday, as was 1 January 2023.
  const days = [2, 3, 4, 5, 6, 7, 1].map((day) => {
    const name = (/** @type {"short"|"long"} */ weekday) => new Date(2023, 0, day).toLocaleDateString([], { weekday });
    const onclick = () => {
      if (!chosen.delete(day)) chosen.add(day);
      if (chosen.size > 0) setHours({ days: [...chosen].sort() });
      else chosen.add(day);
    };
    return make("button", { onclick, "aria-label": name("long"), "aria-pressed": chosen.has(day) }, name("short"));
  });
  const zones = [...new Set([hours.timeZone, ...Intl.supportedValuesOf("timeZone")])];
  const quietLines = quiet
    ? [
      line("From", clock("from")),
      line("To", clock("to")),
      make("div.days", { role: "group", "aria-label": "Days on which they begin" }, ...days),
      line("Time zone", choice(zones.map((zone) => [zone, zone]), hours.timeZone, (timeZone) => setHours({ timeZone }))),
    ]
    : [];

  byId("detail").replaceChildren(make(
    "div.settings",
    { tabIndex: -1 },
    make(
      "header",
      {},
      make("button.icon.back", { "aria-label": "Back to the list", onclick: page.close }, icon("back")),
      make("h1", {}, "Settings"),
    ),
    group("This device", line("Allow notifications", allowed, outside[globalThis.Notification?.permission])),
    isOn && group(
      "How they are shown",
      ...switches.map(([name, title, small]) => {
        const value = name === "scheduledDelivery" ? settings[name] === true : settings[name] !== false;
        return line(title, toggle(value, (checked) => set({ [name]: checked })), small);
      }),
      line(
        "Show previews",
        choice(
          [["always", "Always"], ["whenAuthenticated", "When unlocked"], ["never", "Never"]],
          settings.previews ?? "always",
          (previews) => set({ previews }),
        ),
      ),
    ),
    group(
      "Quiet hours",
      line(
        "Quiet hours",
        toggle(quiet !== undefined, (checked) => device.setQuietHours(checked ? hours : undefined).catch(page.fail)),
        "They hold on all your devices",
      ),
      ...quietLines,
    ),
    group("This browser", make("button.red", { onclick: () => page.signOut().catch(page.fail) }, "Sign out")),
  ));
}
