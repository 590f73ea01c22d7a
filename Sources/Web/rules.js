// @ts-check
/**
 * What a device of Carillon decides: without a page, a clock or a database. The rulebook for devices (Tests/Conformance) plays its cases to it.
 *
 * @module
 */

/** @typedef {"banner"|"lockScreen"|"list"|"sound"|"badge"|"quietly"} PresentationOption */
/** @typedef {"passive"|"active"|"time-sensitive"|"critical"} InterruptionLevel */
/** @typedef {{identifier: string, title: string, options?: string[], textInput?: {buttonTitle?: string, placeholder?: string}}} Action */
/**
 * @typedef {{identifier: string, options?: string[], actions?: Action[], intentIdentifiers?: string[], hiddenPreviewsBodyPlaceholder?:
 *   string}} Category
 */
/** @typedef {{status: string, previews?: string, [option: string]: any}} Authorization */
/** @typedef {{from: string, to: string, days?: number[], timeZone: string}} QuietHours */
/** @typedef {{identifier: string, type: string, size: number, hash: string, options?: any}} Attachment */
/**
 * @typedef {object} Content
 * @property {string} title
 * @property {string} subtitle
 * @property {string} body
 * @property {number} [badge]
 * @property {{name: string, isCritical: boolean, volume?: number}} [sound]
 * @property {string} [threadIdentifier]
 * @property {string} [categoryIdentifier]
 * @property {InterruptionLevel} interruptionLevel
 * @property {number} [relevanceScore]
 * @property {boolean} isContentAvailable
 * @property {boolean} hasAlert
 * @property {Record<string, any>} userInfo the payload without `aps`
 */
/**
 * @typedef {object} Notification
 * @property {string} identifier
 * @property {string} id the apns-id
 * @property {number} date when it was taken or shown, in milliseconds
 * @property {boolean} isLocal whether the program has added it
 * @property {PresentationOption[]} presentation
 * @property {Content} content
 * @property {Attachment[]} attachments
 * @property {any} frame as it came
 */
/**
 * @typedef {{frame: any, payload?: any, takenAt: number, isLocal: boolean, presentation: PresentationOption[], order: number, anchor?:
 *   number, after?: number}} Listed
 */
/** @typedef {{listed: Listed, options: PresentationOption[], isUpdate: boolean, wakes: boolean, order: number}} Showing */
/**
 * @typedef {{frame: any, stage: "waiting"|"locked"|"extension", until: number, listed: Listed, options: string[], order: number}} Stored
 */
/** @typedef {{kind: string, request: string, value: any, order: number}} Change */
/** @typedef {{url?: string, expires?: number, refused?: any, order: number}} Link */
/**
 * All that a device knows. A draft of it is changed, and the difference is what the database stores.
 *
 * @typedef {object} State
 * @property {Record<string, any>} facts what is not in a map, such as `floor`, `badge` and `authorization`
 * @property {Map<string, {at: number}>} ids
 * @property {Map<string, {at: number, revision: string}>} revisions
 * @property {Map<string, Listed>} list the oldest first
 * @property {Map<string, Listed>} pending
 * @property {Map<string, Showing>} presenting shown durably, and by no tab yet
 * @property {Map<string, Listed>} extending with the service extension
 * @property {Map<string, Stored>} responses
 * @property {Map<string, Change>} changes of the registration, by their kinds
 * @property {Map<string, Link>} links by hash
 */
/**
 * @typedef {"doNotDismiss"|"dismiss"|"dismissAndForwardAction"|"unanswered"} Ending what becomes of a response that a content extension has
 */
/** @typedef {{deliveries?: number[], updated?: number[], dropped?: {delivery: number, reason: string}[]}} Acknowledgement */
/** @typedef {{ack?: Acknowledgement, shown?: Listed, close?: boolean}} Taken */

/** The action of opening a notification. */
export const OPEN = "com.apple.UNNotificationDefaultActionIdentifier";
/** The action of dismissing a notification. */
export const DISMISS = "com.apple.UNNotificationDismissActionIdentifier";

/** What goes wrong: a code for the program, and a sentence that names field and rule. */
export class CarillonError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "CarillonError";
    this.code = code;
  }
}

// MARK: Frames

export const utf8 = new TextEncoder();
export const isObject = (/** @type {any} */ value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const isInteger = (/** @type {any} */ value) => Number.isSafeInteger(value) && value >= 0;
const textOf = (/** @type {any} */ value) => typeof value === "string" ? value : undefined;

/** Whether a value is a text of 1 to so many bytes without control characters. @param {any} value */
export function isPlain(value, longest = 128) {
  if (typeof value !== "string" || value === "") return false;
  // deno-lint-ignore no-control-regex
  return utf8.encode(value).length <= longest && !/[\0-\x1f\x7f]/.test(value);
}

/** @type {Record<string, (value: any) => boolean>} */
const checks = {
  any: () => true,
  integer: isInteger,
  percent: (value) => isInteger(value) && value <= 100,
  plain: isPlain,
  receipt: (value) => isPlain(value, 4096),
  url: (value) => isPlain(value, 2048),
  free: (value) => typeof value === "string",
  array: (value) => Array.isArray(value) && value.length <= 10,
  names: (value) => Array.isArray(value) && value.length <= 1000 && value.every((each) => typeof each === "string"),
};

/** The members of frames that are checked; `!` marks those that are required. @type {Record<string, string>} */
export const members = {
  welcome: "session:plain! now:integer! pingSeconds:integer! window:integer! rememberSeconds:integer!",
  notify: "delivery:integer! id:plain! identifier:plain! revision:plain! payload:any! expiration:integer priority:percent " +
    "pushType:plain traceparent:plain receipt:receipt attachments:array",
  remove: "delivery:integer! revision:plain! identifiers:names",
  accepted: "response:plain request:plain",
  refused: "response:plain request:plain reason:plain! field:free rule:free",
  linked: "request:plain! url:url! expires:integer!",
  gap: "channel:plain from:free to:free",
  goaway: "",
  heartbeat: "",
};

/**
 * Reads a frame; undefined if it is malformed. A member `null` is absent. A type that this version does not know is ignored by `take`.
 *
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  let frame;
  try {
    frame = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(frame) || typeof frame.type !== "string") return undefined;
  for (const key of Object.keys(frame)) {
    if (frame[key] === null) delete frame[key];
  }
  const rules = Object.hasOwn(members, frame.type) ? members[frame.type] : "";
  for (const rule of rules.split(" ").filter(Boolean)) {
    const [, name, check, required] = /** @type {string[]} */ (/^(\w+):(\w+)(!?)$/.exec(rule));
    const value = Object.hasOwn(frame, name) ? frame[name] : undefined;
    if (value === undefined ? required : !checks[check](value)) return undefined;
  }
  const answers = frame.type === "accepted" || frame.type === "refused";
  return answers && !frame.response && !frame.request ? undefined : frame;
}

// MARK: Content

/** @type {PresentationOption[]} */
const shownWays = ["banner", "lockScreen", "list", "sound", "badge"];
const levels = ["passive", "active", "time-sensitive", "critical"];

/** The content of a payload. A value of another type than expected is absent. @param {any} payload @returns {Content} */
export function contentOf(payload) {
  const aps = isObject(payload) && isObject(payload.aps) ? payload.aps : {};
  const alert = isObject(aps.alert) ? aps.alert : {};
  /** @type {(name: string, key: string) => string} */
  const text = (name, key) => textOf(alert[name]) ?? textOf(alert[name]?.["loc-key"]) ?? textOf(alert[key]) ?? "";
  const title = text("title", "title-loc-key");
  const subtitle = text("subtitle", "subtitle-loc-key");
  const body = textOf(aps.alert) ?? text("body", "loc-key");
  const sound = typeof aps.sound === "string" ? { name: aps.sound, isCritical: false } : isObject(aps.sound)
    ? {
      name: textOf(aps.sound.name) ?? "default",
      isCritical: aps.sound.critical === 1,
      volume: typeof aps.sound.volume === "number" ? aps.sound.volume : undefined,
    }
    : undefined;
  const level = levels.includes(aps["interruption-level"]) ? aps["interruption-level"] : "active";
  const score = aps["relevance-score"];
  const { aps: _, ...userInfo } = isObject(payload) ? payload : {};
  return {
    title,
    subtitle,
    body,
    badge: Number.isSafeInteger(aps.badge) ? aps.badge : undefined,
    sound,
    threadIdentifier: textOf(aps["thread-id"]),
    categoryIdentifier: textOf(aps.category),
    interruptionLevel: sound?.isCritical ? "critical" : level,
    relevanceScore: typeof score === "number" ? score : undefined,
    isContentAvailable: aps["content-available"] === 1,
    hasAlert: `${title}${subtitle}${body}` !== "",
    userInfo,
  };
}

/** The ways that both allow; quietly if either says so. @param {string[]} ways @param {string[]} others @returns {PresentationOption[]} */
function limited(ways, others) {
  const kept = shownWays.filter((way) => ways.includes(way) && others.includes(way));
  const isQuiet = ways.includes("quietly") || others.includes("quietly");
  return kept.length > 0 && isQuiet ? [...kept, "quietly"] : kept;
}

/**
 * The ways in which the person's settings allow to show a content.
 *
 * @param {Content} content
 * @param {string} counted its interruption level
 * @param {Authorization} authorization
 * @param {boolean} hoursHold whether it is quiet hours
 * @returns {PresentationOption[]}
 */
export function allowed(content, counted, authorization, hoursHold) {
  const { status } = authorization;
  if (status === "denied" || status === "notDetermined") return [];
  const allows = (/** @type {string} */ option) => authorization[option] !== false;
  const level = counted === "critical" && !allows("criticalAlert") || counted === "time-sensitive" && !allows("timeSensitive")
    ? "active"
    : counted;
  const breaksThrough = level === "time-sensitive" || level === "critical";
  const isProvisional = status === "provisional";
  const isQuiet = isProvisional || !breaksThrough && (hoursHold || authorization.scheduledDelivery === true);
  const interrupts = !isQuiet && level !== "passive";
  /** @type {PresentationOption[]} */
  const ways = [];
  if (content.hasAlert) {
    if (interrupts && allows("alert")) ways.push("banner");
    if (!isQuiet && allows("lockScreen")) ways.push("lockScreen");
    if (allows("notificationCenter")) ways.push("list");
  }
  const mayPlay = level === "critical" || allows("sound");
  if (content.sound && interrupts && mayPlay) ways.push("sound");
  if (content.badge !== undefined && !isProvisional && allows("badge")) ways.push("badge");
  return isQuiet && ways.length > 0 ? [...ways, "quietly"] : ways;
}

/**
 * Whether quiet hours hold at a time. Those of a zone that is unknown here never do.
 *
 * @param {QuietHours|undefined} hours
 * @param {number} time
 */
function isQuietAt(hours, time) {
  if (!hours) return false;
  /** @type {Record<string, string>} */
  const parts = {};
  try {
    const format = new Intl.DateTimeFormat("en-US", {
      timeZone: hours.timeZone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    for (const { type, value } of format.formatToParts(time)) parts[type] = value;
  } catch {
    return false;
  }
  const day = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(parts.weekday);
  const minute = Number(parts.hour) * 60 + Number(parts.minute);
  const [from, to] = [hours.from, hours.to].map((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));
  const end = to > from ? to : to + 1440;
  const begins = (/** @type {number} */ on) => hours.days?.includes(on % 7 + 1) ?? true;
  return begins(day) && minute >= from && minute < end || begins(day + 6) && minute + 1440 >= from && minute + 1440 < end;
}

// MARK: What the person and the program set

/** What is wrong with the person's permissions; undefined if nothing is. @param {any} value */
export function authorizationFault(value) {
  const statuses = ["notDetermined", "denied", "authorized", "provisional", "ephemeral"];
  if (!statuses.includes(value?.status)) return `authorization.status: A status is ${statuses.join(", ")}.`;
  const { status: _, previews = "always", ...options } = value;
  if (!["always", "whenAuthenticated", "never"].includes(previews)) {
    return "authorization.previews: Previews are always, whenAuthenticated or never.";
  }
  const wrong = Object.keys(options).find((name) => typeof options[name] !== "boolean");
  return wrong && `authorization.${wrong}: An option is true or false.`;
}

/** What is wrong with quiet hours; undefined if nothing is. @param {any} value */
export function quietFault(value) {
  if (!isObject(value)) return "quiet: Quiet hours are an object.";
  const wrong = ["from", "to"].find((name) => !/^([01]\d|2[0-3]):[0-5]\d$/.test(value[name]));
  if (wrong) return `quiet.${wrong}: A time is text from 00:00 to 23:59.`;
  const { days = [1] } = value;
  const areDays = Array.isArray(days) && days.length > 0 && days.length <= 7 && days.every((day) => isInteger(day) && day >= 1 && day <= 7);
  if (!areDays) return "quiet.days: A day is a number from 1, for Sunday, to 7.";
  if (!isPlain(value.timeZone, 64)) return "quiet.timeZone: A zone has a name of the IANA database, such as Europe/Rome.";
}

/** What is wrong with categories; undefined if nothing is. @param {any} value */
export function categoriesFault(value) {
  const differ = (/** @type {any[]} */ all) => all.every(isObject) && new Set(all.map(({ identifier }) => identifier)).size === all.length;
  if (!Array.isArray(value) || value.length > 100) return "categories: There are at most 100 categories.";
  if (!differ(value)) return "categories: Categories are objects, and their identifiers differ.";
  for (const [index, category] of value.entries()) {
    const path = `categories[${index}]`, { actions = [] } = category;
    if (!isPlain(category.identifier)) return `${path}.identifier: This is text of 1 to 128 bytes without control characters.`;
    if (!Array.isArray(actions) || actions.length > 10 || !differ(actions)) {
      return `${path}.actions: These are at most 10 actions with different identifiers.`;
    }
    for (const [number, action] of actions.entries()) {
      if (!isPlain(action.identifier) || action.identifier === OPEN || action.identifier === DISMISS) {
        return `${path}.actions[${number}].identifier: This is text of 1 to 128 bytes, and none that is kept for opening and dismissing.`;
      }
      if (!isPlain(action.title, 256)) return `${path}.actions[${number}].title: This is text of 1 to 256 bytes.`;
    }
  }
}

// MARK: What decides

export const maps =
  /** @type {const} */ (["ids", "revisions", "list", "pending", "presenting", "extending", "responses", "changes", "links"]);
const pendingLimit = 64, locationLimit = 20, lateMilliseconds = 900_000;

/** @param {State} state @returns {State} */
export function draftOf(state) {
  const draft = /** @type {any} */ ({ ...state, facts: { ...state.facts } });
  for (const name of maps) draft[name] = new Map(/** @type {any} */ (state[name]));
  return draft;
}

/** A state without anything. @returns {State} */
export function emptyState() {
  const state = /** @type {any} */ ({
    facts: { order: 0, badge: 0, rememberSeconds: 2_592_000, authorization: { status: "authorized" }, categories: [] },
  });
  for (const name of maps) state[name] = new Map();
  return state;
}

/** Compares two texts by their bytes. @param {string} left @param {string} right */
function precedes(left, right) {
  if (/^[\0-\x7f]*$/.test(left + right)) return left < right;
  const [a, b] = [utf8.encode(left), utf8.encode(right)];
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at < 0 ? a.length < b.length : at < b.length && a[at] < b[at];
}

/** Whether a notification has expired. 0 is one attempt, whose end only the cluster knows. @param {any} frame @param {number} time */
export const isOver = (frame, time) => frame.expiration > 0 && Math.floor(time / 1000) >= frame.expiration;

/**
 * The stored value of a name, unless it is too old.
 *
 * @template {{at: number}} Value
 * @param {State} state
 * @param {Map<string, Value>} map
 * @param {string} name
 * @param {number} now
 */
function remembered(state, map, name, now) {
  const value = map.get(name);
  const earliest = now - state.facts.rememberSeconds * 1000;
  return value && value.at >= earliest ? value : undefined;
}

/**
 * The category with a notification's actions: the device's own, else the published one that came along.
 *
 * @param {Record<string, any>} facts
 * @param {Notification} notification
 * @returns {Category|undefined}
 */
export function categoryOf(facts, { content, frame }) {
  const own = /** @type {Category[]} */ (facts.categories).find(({ identifier }) => identifier === content.categoryIdentifier);
  return own ?? (frame.category !== undefined && !categoriesFault([frame.category]) ? frame.category : undefined);
}

/** Whether a service extension may change a notification. @param {any} frame */
const isMutable = (frame) => (frame.pushType ?? "alert") === "alert" && frame.payload?.aps?.["mutable-content"] === 1;

/** Stops what waits to be shown of an identifier. @param {State} draft @param {(listed: Listed) => boolean} condition */
function withdraw(draft, condition) {
  for (const [name, each] of draft.extending) {
    if (condition(each)) draft.extending.delete(name);
  }
  for (const [name, { listed }] of draft.presenting) {
    if (condition(listed)) draft.presenting.delete(name);
  }
}

/**
 * Takes a frame into a draft.
 *
 * @param {State} draft
 * @param {any} frame
 * @param {number} now by the cluster's clock, the latest time possible
 * @param {number} uncertain so many milliseconds it may be ahead
 * @returns {Taken}
 */
export function take(draft, frame, now, uncertain) {
  const { facts } = draft;
  switch (frame.type) {
    case "notify":
      return takeNotification(draft, frame, now, uncertain);
    case "remove":
      return takeRemoval(draft, frame, now);
    case "welcome":
      facts.rememberSeconds = frame.rememberSeconds;
      // The cluster may not know the person's last change yet.
      if (!draft.changes.has("quiet") && !(now < facts.hoursAcceptedAt + 10_000)) {
        facts.quiet = facts.acceptedHours = quietFault(frame.quiet) ? undefined : frame.quiet;
      }
      break;
    case "accepted":
    case "refused":
      settle(draft, frame, now);
      break;
    case "linked":
      if (draft.links.has(frame.request)) {
        const { url, expires } = frame;
        const order = ++facts.order;
        draft.links.set(frame.request, { url, expires, order });
      }
      break;
    case "gap":
      if (frame.channel === undefined) facts.incomplete = true;
  }
  return {};
}

/** @param {State} draft @param {any} frame @param {number} now @param {number} uncertain @returns {Taken} */
function takeNotification(draft, frame, now, uncertain) {
  const { delivery, id, identifier, revision, trigger } = frame;
  const { floor } = draft.facts;
  const stored = remembered(draft, draft.revisions, identifier, now)?.revision;
  const drop = (/** @type {string} */ reason) => ({ ack: { dropped: [{ delivery, reason }] } });
  if (remembered(draft, draft.ids, id, now)) return drop("known");
  if (stored !== undefined && precedes(revision, stored)) return drop("stale");
  if (floor !== undefined && trigger === undefined && precedes(revision, floor)) return drop("canceled");
  const isExpired = isOver(frame, now);
  if (isExpired && !isOver(frame, now - uncertain)) return { close: true };
  if (!isExpired && revision === stored) return drop("stale");
  draft.revisions.set(identifier, { at: now, revision });
  if (isExpired) {
    withdraw(draft, (each) => each.frame.identifier === identifier);
    return drop("expired");
  }
  draft.ids.set(id, { at: now });
  /** @type {Listed} */
  const listed = { frame, takenAt: now, isLocal: false, presentation: [], order: 0 };
  if (trigger !== undefined) {
    hold(draft, listed, now);
    return { ack: { deliveries: [delivery] } };
  }
  draft.pending.delete(identifier);
  const isUpdate = draft.list.has(identifier);
  const { outcome, shown } = place(draft, listed, now);
  if (outcome === "filtered") return drop("filtered");
  const isListed = outcome === "extending" || shown?.presentation.includes("list");
  const updated = isUpdate && isListed ? [delivery] : [];
  return { ack: { deliveries: [delivery], updated }, shown };
}

/** @param {State} draft @param {any} frame @param {number} now @returns {Taken} */
function takeRemoval(draft, frame, now) {
  const { delivery, revision, identifiers = [], all, scope } = frame;
  const drop = (/** @type {boolean} */ isKnown) => ({ ack: { dropped: [{ delivery, reason: isKnown ? "known" : "stale" }] } });
  const taken = { ack: { deliveries: [delivery] } };
  if (all === true) {
    const { floor } = draft.facts;
    if (floor !== undefined && !precedes(floor, revision)) return drop(floor === revision);
    draft.facts.floor = revision;
    withdraw(draft, ({ frame }) => precedes(frame.revision, revision));
    for (const [name, { frame }] of draft.list) {
      if (precedes(frame.revision, revision)) draft.list.delete(name);
    }
    return taken;
  }
  let isNew = identifiers.length === 0, isKnown = false;
  for (const identifier of identifiers) {
    const stored = remembered(draft, draft.revisions, identifier, now);
    if (stored && !precedes(stored.revision, revision)) {
      isKnown ||= stored.revision === revision;
      continue;
    }
    isNew = true;
    draft.revisions.set(identifier, { at: now, revision });
    const map = scope === "pending" ? draft.pending : draft.list;
    if (map.get(identifier)?.isLocal === false) map.delete(identifier);
    if (scope === "pending") continue;
    withdraw(draft, (each) => !each.isLocal && each.frame.identifier === identifier);
  }
  return isNew ? taken : drop(isKnown);
}

/** Takes the cluster's answer to a response or a change. @param {State} draft @param {any} frame @param {number} now */
function settle(draft, frame, now) {
  const { facts } = draft;
  if (frame.response) draft.responses.delete(frame.response);
  if (frame.response || !frame.request) return;
  const isRefused = frame.type === "refused";
  if (isRefused && draft.links.has(frame.request)) {
    const order = ++facts.order;
    draft.links.set(frame.request, { refused: frame, order });
  }
  for (const [kind, change] of draft.changes) {
    if (change.request !== frame.request) continue;
    draft.changes.delete(kind);
    if (kind !== "quiet") continue;
    if (isRefused) facts.quiet = facts.acceptedHours;
    else [facts.acceptedHours, facts.hoursAcceptedAt] = [change.value, now];
  }
}

/** Keeps a notification until its time or place. @param {State} draft @param {Listed} listed @param {number} time */
export function hold(draft, listed, time) {
  const { pending } = draft, { identifier } = listed.frame;
  pending.delete(identifier);
  const order = ++draft.facts.order;
  pending.set(identifier, { ...listed, order, anchor: time, after: time });
  const places = [...pending].filter(([, each]) => intervalOf(each) === undefined);
  if (places.length > locationLimit && intervalOf(listed) === undefined) {
    pending.delete(places[0][0]);
  } else if (pending.size > pendingLimit) {
    pending.delete([...pending.keys()][0]);
  }
}

/** The milliseconds of a notification's interval; undefined if it waits for something else. @param {Listed} listed */
function intervalOf({ frame: { trigger } }) {
  if (trigger?.type !== "timeInterval") return undefined;
  const milliseconds = Math.ceil(trigger.timeInterval * 1000);
  return milliseconds > 0 ? milliseconds : undefined;
}

/** When a waiting notification is due next; undefined if no time decides. @param {Listed} listed */
export function dueOf(listed) {
  const interval = intervalOf(listed), { anchor = 0, after = 0 } = listed;
  if (interval === undefined) return undefined;
  if (!listed.frame.trigger.repeats) return anchor + interval;
  return anchor + (Math.floor((after - anchor) / interval) + 1) * interval;
}

/**
 * Shows what is due by the device's own clock. Of repeated occurrences only the latest is shown, unless it is too late.
 *
 * @param {State} draft
 * @param {number} time
 */
export function takeTime(draft, time) {
  for (const [identifier, waiting] of [...draft.pending]) {
    const interval = intervalOf(waiting);
    if (interval === undefined) continue;
    // After the clock was set back nothing waits for the time that was undone.
    const listed = time < (waiting.after ?? 0) ? { ...waiting, anchor: time, after: time } : waiting;
    const due = dueOf(listed) ?? Infinity, { anchor = 0 } = listed;
    if (listed !== waiting) draft.pending.set(identifier, listed);
    if (due > time) continue;
    const { repeats } = listed.frame.trigger;
    const latest = anchor + Math.floor((time - anchor) / interval) * interval;
    if (repeats) draft.pending.set(identifier, { ...listed, after: latest });
    else draft.pending.delete(identifier);
    if (repeats && time - latest > lateMilliseconds) continue;
    place(draft, { ...listed, takenAt: time }, time);
  }
}

/**
 * Shows a notification in the ways that the cluster, the person, the screen and the program all allow.
 *
 * @param {State} draft
 * @param {Listed} waiting
 * @param {number} time
 * @param {boolean} isExtended whether the service extension has had it
 * @returns {{outcome: "shown"|"silent"|"filtered"|"extending", shown?: Listed}}
 */
export function place(draft, waiting, time, isExtended = false) {
  const { facts } = draft, { frame } = waiting, { identifier, id } = frame;
  withdraw(draft, (each) => each.frame.identifier === identifier);
  const content = contentOf(waiting.payload ?? frame.payload);
  const level = levels.includes(frame.interruptionLevel) ? frame.interruptionLevel : content.interruptionLevel;
  // The cluster has applied the quiet hours to what is shown at once.
  const wasJudged = !waiting.isLocal && frame.trigger === undefined;
  const isQuiet = !wasJudged && isQuietAt(facts.quiet, time);
  let ways = allowed(content, level, facts.authorization, isQuiet);
  const { presentation } = frame;
  const told = Array.isArray(presentation) ? presentation : [];
  if (presentation !== undefined) ways = limited(ways, told);
  const badgesOnly = facts.platform?.toLowerCase() === "tvos";
  ways = limited(ways, badgesOnly ? ["badge"] : shownWays.filter((way) => way !== (facts.locked ? "banner" : "lockScreen")));
  const isAlert = ["banner", "lockScreen", "list"].some((way) => ways.includes(/** @type {any} */ (way)));
  if (facts.extends && !isExtended && !waiting.isLocal && isAlert && isMutable(frame)) {
    const order = ++facts.order;
    draft.extending.set(identifier, { ...waiting, order });
    return { outcome: "extending" };
  }
  const order = ++facts.order;
  /** @type {Listed} */
  let listed = { ...waiting, presentation: ways, order };
  if (facts.willPresent && !facts.locked && ways.length > 0) {
    ways = limited(ways, facts.willPresent(notificationOf(listed)));
    listed = { ...listed, presentation: ways };
  }
  const isUpdate = draft.list.has(identifier);
  const wakes = content.isContentAvailable;
  if (wakes || ways.length > 0) draft.presenting.set(id, { listed, options: ways, isUpdate, wakes, order });
  if (ways.length === 0) {
    const { hasAlert, badge, sound } = content;
    const isSilent = wakes || !hasAlert && badge === undefined && !sound ||
      presentation !== undefined && limited(shownWays, told).length === 0;
    return { outcome: isSilent ? "silent" : "filtered" };
  }
  if (ways.includes("badge")) facts.badge = Math.max(0, content.badge ?? 0);
  if (ways.includes("list")) {
    draft.list.delete(identifier);
    draft.list.set(identifier, listed);
    if (draft.list.size > (facts.deliveredLimit ?? 500)) draft.list.delete([...draft.list.keys()][0]);
  }
  return { outcome: "shown", shown: listed };
}

/** Removes what belongs to the person who signs out. @param {State} draft */
export function forgetPerson(draft) {
  for (const name of /** @type {const} */ (["list", "pending", "presenting", "extending"])) draft[name].clear();
  for (const [id, { stage }] of draft.responses) {
    if (stage !== "waiting") draft.responses.delete(id);
  }
  draft.changes.delete("quiet");
  const { facts } = draft;
  [facts.badge, facts.incomplete] = [0, false];
  facts.quiet = facts.acceptedHours = undefined;
}

/** A listed notification as a page gets it. @param {Listed} listed @returns {Notification} */
export function notificationOf({ frame, payload, isLocal, presentation, takenAt: date }) {
  const { identifier, id, attachments: all = [] } = frame, content = contentOf(payload ?? frame.payload);
  const attachments = all.filter((/** @type {any} */ each) =>
    isObject(each) && isPlain(each.identifier, 64) && /^[0-9a-f]{64}$/.test(each.hash) && isPlain(each.type)
  );
  return { identifier, id, date, isLocal, presentation, content, attachments, frame };
}

// MARK: Responses and requests

/** A random id, also where the browser withholds `randomUUID`. */
export function newID(bytes = 16) {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return bytes === 16 ? hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5") : hex;
}

/**
 * Checks an action of the person by the rules of the cluster; returns the action's options.
 *
 * @param {Action[]} actions
 * @param {string} action
 * @param {string} [userText]
 * @returns {string[]}
 */
export function judge(actions, action, userText) {
  const offered = actions.find(({ identifier }) => identifier === action);
  if (!offered && action !== OPEN && action !== DISMISS) {
    const names = actions.map(({ identifier }) => identifier).join(", ") || "none";
    throw new CarillonError("noSuchAction", `the notification has no action '${action}'; it has: ${names}`);
  }
  if (offered?.textInput && userText === undefined) throw new CarillonError("wrongText", `the action '${action}' takes text`);
  if (!offered?.textInput && userText !== undefined) throw new CarillonError("wrongText", `the action '${action}' takes no text`);
  if (utf8.encode(userText).length > 4_096) throw new CarillonError("wrongText", "userText: This is text of at most 4096 bytes.");
  return offered?.options ?? [];
}

/**
 * Adds a response to a notification, which leaves the list unless a content extension has the response first.
 *
 * @param {State} draft
 * @param {Listed} listed
 * @param {any} what action, text and time
 * @param {string[]} options those of the action
 * @param {number} [until] when the content extension must have answered
 * @returns {Stored}
 */
export function respond(draft, listed, what, options, until) {
  if (draft.responses.size >= 1_000) {
    throw new CarillonError("tooManyWaiting", "1000 responses wait for the cluster's answer: try again later");
  }
  const { identifier, receipt } = listed.frame, response = newID(), order = ++draft.facts.order;
  const frame = { type: "response", response, receipt, identifier, ...what };
  /** @type {Stored} */
  const stored = { frame, stage: "extension", until: until ?? 0, listed, options, order };
  draft.responses.set(response, stored);
  return until === undefined ? forward(draft, stored) : stored;
}

/** Passes a response on: to the cluster, or until the screen is unlocked. @param {State} draft @param {Stored} stored @returns {Stored} */
function forward(draft, stored) {
  const { frame: { response, identifier, action }, listed, options } = stored;
  const needsScreen = action === OPEN || options.includes("foreground") || options.includes("authenticationRequired");
  const stage = draft.facts.locked && needsScreen ? "locked" : "waiting";
  /** @type {Stored} */
  const next = { ...stored, stage, order: ++draft.facts.order };
  // A newer notification of its identifier stays.
  if (draft.list.get(identifier)?.order === listed.order) draft.list.delete(identifier);
  if (stage === "waiting" && listed.isLocal) draft.responses.delete(response);
  else draft.responses.set(response, next);
  return next;
}

/** Passes on the responses that a condition holds for. @param {State} draft @param {(stored: Stored) => boolean} condition */
export function release(draft, condition) {
  const released = [...draft.responses.values()].filter(condition).map((stored) => {
    const isUnanswered = stored.stage === "extension";
    return forward(draft, isUnanswered ? { ...stored, frame: { ...stored.frame, unanswered: true } } : stored);
  });
  return released.filter(({ stage }) => stage === "waiting");
}

/**
 * Ends what a content extension has of a response; answers what is passed on.
 *
 * @param {State} draft
 * @param {string} response
 * @param {Ending} ending
 */
export function endHeld(draft, response, ending) {
  const stored = draft.responses.get(response);
  // Its time may be over: then it was passed on.
  if (stored?.stage !== "extension") return;
  if (ending === "dismissAndForwardAction") return forward(draft, stored);
  // Also of an unknown word: no response is lost.
  if (ending !== "dismiss" && ending !== "doNotDismiss") return release(draft, (each) => each === stored)[0];
  draft.responses.delete(response);
  const { identifier } = stored.frame;
  if (ending === "dismiss" && draft.list.get(identifier)?.order === stored.listed.order) draft.list.delete(identifier);
}

/** Adds a change for the cluster, in place of a former one of its kind. @param {State} draft @param {string} kind @param {any} [value] */
export function register({ changes, facts }, kind, value) {
  changes.delete(kind);
  changes.set(kind, { kind, request: newID(), value, order: ++facts.order });
}

/** What a program can ask the person for. */
export const askedOptions = [
  "alert",
  "sound",
  "badge",
  "criticalAlert",
  "timeSensitive",
  "carPlay",
  "announcement",
  "providesAppNotificationSettings",
];

/** @param {State} draft @param {Authorization} authorization */
export function authorize(draft, authorization) {
  draft.facts.authorization = authorization;
  draft.facts.isDecided = true;
  register(draft, "settings", authorization);
}

/** What is wrong with a local request; undefined if nothing is. @param {any} identifier @param {any} content @param {any} trigger */
export function localFault(identifier, content, trigger) {
  if (!isPlain(identifier, 64)) return "identifier: This is text of 1 to 64 bytes without control characters.";
  const { hasAlert, sound, badge = 0 } = contentOf(payloadOf(content));
  if (!hasAlert && !sound && badge === 0) return "content: A local request has a text, a sound, or a badge other than 0.";
  if (utf8.encode(JSON.stringify(content)).length > 32_768) return "content: This takes at most 32768 bytes as JSON.";
  if (badge < 0 || badge >= 2 ** 31) return "badge: A badge is a number from 0 to 2147483647.";
  if (trigger && !(trigger.timeInterval > 0)) return "trigger.timeInterval: An interval is longer than 0 seconds.";
  if (trigger?.repeats && trigger.timeInterval < 60) return "trigger.timeInterval: A repeating interval has at least 60 seconds.";
}

/** The payload of a content as a program sets it. @param {any} content @param {any} payload what it was before */
export function payloadOf(content, payload = {}) {
  const { title, subtitle, body, badge, sound, threadIdentifier, categoryIdentifier, interruptionLevel, userInfo = {} } = content;
  const { aps = {} } = payload, former = isObject(aps.alert) ? aps.alert : { body: textOf(aps.alert) }, before = contentOf(payload);
  const alert = { ...former };
  for (const [name, value] of Object.entries({ title, subtitle, body })) {
    // A text that is not changed stays as it was written, such as with a key for translations.
    if ((value ?? "") !== before[/** @type {"title"} */ (name)]) alert[name] = value;
  }
  const name = sound && isObject(sound) && "isCritical" in sound
    ? { ...sound, isCritical: undefined, critical: sound.isCritical ? 1 : 0 }
    : sound;
  const own = { badge, sound: name, "thread-id": threadIdentifier, category: categoryIdentifier };
  const level = interruptionLevel ?? aps["interruption-level"];
  return JSON.parse(JSON.stringify({ ...userInfo, aps: { ...aps, ...own, "interruption-level": level, alert } }));
}

/**
 * Waits for work, so many milliseconds at most.
 *
 * @template Result
 * @param {number} milliseconds
 * @param {Promise<Result>} work
 * @returns {Promise<Result>}
 */
export function within(milliseconds, work) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("its time is over")), milliseconds);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

// MARK: Reconnecting

/**
 * Close codes with the first and the longest wait in milliseconds; none for those after which a device does not reconnect by itself.
 *
 * @type {Record<number, [number, number]|[]>}
 */
export const waits = {
  4000: [60_000, 600_000],
  4001: [1_000, 120_000],
  4002: [],
  4003: [],
  4004: [],
  4005: [1_000, 120_000],
  4009: [2_000, 300_000],
  4010: [60_000, 600_000],
  4011: [60_000, 600_000],
  4012: [10_000, 600_000],
  4013: [],
  4015: [10_000, 600_000],
  4016: [1_000, 120_000],
  4017: [60_000, 600_000],
  4019: [],
};

/** @typedef {{attempt: number, abandoned: number, told?: number}} Plan */

/**
 * Plans the next connection.
 *
 * @param {Plan|undefined} plan undefined at first
 * @param {{goaway?: any, close?: number, stood?: number|null, helloUnanswered?: boolean}} event the cluster's order when to reconnect, or
 *   the end of a connection: `stood` is the duration of its session, null without a welcome
 * @param {number} lot a random number from 0 to 1, so that a fleet does not return at once
 * @returns {{plan: Plan, wait: number|null}} `wait` in milliseconds; null if the device does not reconnect by itself
 */
export function reconnect(plan = { attempt: 0, abandoned: 0 }, event, lot) {
  const code = event.close ?? 0, stood = event.stood ?? -1;
  if (event.close === undefined) {
    const told = isInteger(event.goaway) ? event.goaway : plan.told;
    return { plan: { ...plan, told }, wait: null };
  }
  const hour = 3_600_000, { told } = plan;
  let [first, longest] = waits[code] ?? [0, 120_000];
  let abandoned = plan.abandoned;
  if (event.helloUnanswered && first !== undefined) abandoned = Math.min(abandoned + 1, 4);
  if (stood >= 300_000) abandoned = 0;
  if (code === 4004 && abandoned > 0) [abandoned, first, longest] = [abandoned - 1, 0, 120_000];
  const attempt = stood >= 10_000 ? 0 : plan.attempt;
  if (first === undefined || longest === undefined) return { plan: { attempt: attempt + 1, abandoned }, wait: null };
  if (told !== undefined) {
    const wait = told > hour ? hour / 2 * (1 + lot) : told + lot * 500;
    return { plan: { attempt: 0, abandoned }, wait: Math.floor(wait) };
  }
  const span = attempt === 0 ? 500 : Math.min(1000 * 2 ** Math.min(attempt, 20), longest);
  const wait = Math.min(Math.floor(first + lot * span), Math.max(longest, first));
  return { plan: { attempt: attempt + 1, abandoned }, wait };
}
