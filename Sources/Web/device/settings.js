import { byId, icon, make } from "./dom.js";

/** @typedef {import("../carillon.js").Device} Device */

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
const previews = { always: "Always", whenAuthenticated: "When unlocked", never: "Never" };

/**
 * Draws what the person allows; each change holds at once.
 * @param {Device} device
 * @param {{close: () => void, allow: () => Promise<unknown>, leave: () => void, fail: (error: Error) => void}} page
 */
export function showSettings(device, page) {
  const { settings } = device, quiet = device.quietHours;
  const isOn = settings.status === "authorized" || settings.status === "provisional";
  const set = (/** @type {Record<string, unknown>} */ change) =>
    device.setAuthorization({ ...device.settings, ...change }).catch(page.fail);
  const line = (/** @type {string} */ name, /** @type {string|undefined} */ small, /** @type {any} */ control) =>
    make("label", {}, make("span", {}, name, small && make("small", {}, small)), control);
  const group = (/** @type {string} */ title, /** @type {any[]} */ ...lines) =>
    make("section.group", {}, make("h2", {}, title), make("div.lines", {}, ...lines));
  const checkbox = (/** @type {boolean} */ checked, /** @type {(checked: boolean) => unknown} */ changed) =>
    make("input", { type: "checkbox", role: "switch", checked, onchange: (/** @type {any} */ event) => changed(event.target.checked) });

  const outside = {
    granted: "The browser shows them, too, while this page is hidden",
    denied: "The browser does not allow its own; those in this page are shown",
  }[
    String(globalThis.Notification?.permission)
  ];
  const allowed = checkbox(
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
  // 1 is Sunday, as was 1 January 2023.
  const days = [2, 3, 4, 5, 6, 7, 1].map((day) => {
    const name = (/** @type {"short"|"long"} */ weekday) => new Date(2023, 0, day).toLocaleDateString([], { weekday });
    const press = () => {
      if (!chosen.delete(day)) chosen.add(day);
      if (chosen.size === 0) return void chosen.add(day);
      setHours({ days: [...chosen].sort() });
    };
    return make("button", { onclick: press, "aria-label": name("long"), "aria-pressed": chosen.has(day) }, name("short"));
  });
  const zones = make("select", { onchange: (/** @type {any} */ event) => setHours({ timeZone: event.target.value }) });
  for (const zone of new Set([hours.timeZone, ...Intl.supportedValuesOf("timeZone")])) {
    zones.append(make("option", { value: zone, selected: zone === hours.timeZone }, zone));
  }
  const quietLines = quiet
    ? [
      line("From", undefined, clock("from")),
      line("To", undefined, clock("to")),
      make("div.days", { role: "group", "aria-label": "Days on which they begin" }, ...days),
      line("Time zone", undefined, zones),
    ]
    : [];
  const preview = make("select", { onchange: (/** @type {any} */ event) => set({ previews: event.target.value }) });
  for (const [value, name] of Object.entries(previews)) {
    preview.append(make("option", { value, selected: value === (settings.previews ?? "always") }, name));
  }

  const view = make(
    "div.settings",
    {},
    make(
      "div.top",
      {},
      make("button.icon", { "aria-label": "Back to the list", onclick: page.close }, icon("back")),
      make("h1", {}, "Settings"),
      make("span"),
    ),
    group("This device", line("Allow notifications", outside, allowed)),
    isOn && group(
      "How they are shown",
      ...switches.map(([name, title, small]) => {
        const value = /** @type {any} */ (settings)[name];
        return line(
          title,
          small,
          checkbox(name === "scheduledDelivery" ? value === true : value !== false, (checked) => set({ [name]: checked })),
        );
      }),
      line("Show previews", undefined, preview),
    ),
    group(
      "Quiet hours",
      line(
        "Quiet hours",
        "They hold on all your devices",
        checkbox(quiet !== undefined, (checked) => device.setQuietHours(checked ? hours : undefined).catch(page.fail)),
      ),
      ...quietLines,
    ),
    make(
      "section.group",
      {},
      make("div.lines", {}, make("button.destructive", { onclick: page.leave }, "Sign out and forget this device")),
    ),
  );
  byId("detail").replaceChildren(view);
}
