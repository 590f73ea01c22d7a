// @ts-check
/**
 * A device of Carillon in JavaScript, as safe as the library in Swift.
 *
 * `Device.open` keeps a page connected. What comes is stored durably, then shown, then acknowledged; a response is stored with its change of
 * the list before it is sent. `receive` and `reconnect` are what decides, without a page, a clock or a database.
 *
 * @module
 */

/** @typedef {"banner"|"lockScreen"|"list"|"sound"|"badge"|"quietly"} PresentationOption */
/** @typedef {"passive"|"active"|"time-sensitive"|"critical"} InterruptionLevel */
/** @typedef {{identifier: string, title: string, options?: string[], textInput?: {buttonTitle?: string, placeholder?: string}}} Action */
/** @typedef {{identifier: string, options?: string[], actions?: Action[], intentIdentifiers?: string[], hiddenPreviewsBodyPlaceholder?: string}} Category */
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
/** @typedef {{frame: any, payload?: any, takenAt: number, isLocal: boolean, presentation: PresentationOption[], order: number, anchor?: number, after?: number}} Listed */
/** @typedef {{listed: Listed, options: PresentationOption[], isUpdate: boolean, wakes: boolean, order: number}} Showing */
/** @typedef {{frame: any, stage: "waiting"|"locked"|"extension", until: number, listed: Listed, options: string[], order: number}} Stored */
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

const utf8 = new TextEncoder();
const isObject = (/** @type {any} */ value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isInteger = (/** @type {any} */ value) => Number.isSafeInteger(value) && value >= 0;
const textOf = (/** @type {any} */ value) => typeof value === "string" ? value : undefined;

/** Whether a value is a text of 1 to so many bytes without control characters. @param {any} value */
function isPlain(value, longest = 128) {
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
const members = {
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
function parse(text) {
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

/**
 * The content of a payload. A value of another type than expected is absent.
 *
 * @param {any} payload
 * @returns {Content}
 */
function contentOf(payload) {
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

/**
 * The ways that both allow; quietly if either says so.
 *
 * @param {string[]} ways
 * @param {string[]} others
 * @returns {PresentationOption[]}
 */
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
function allowed(content, counted, authorization, hoursHold) {
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

/** Whether quiet hours hold at a time. Those of a zone that is unknown here never do. @param {QuietHours|undefined} hours @param {number} time */
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
function authorizationFault(value) {
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
function quietFault(value) {
  if (!isObject(value)) return "quiet: Quiet hours are an object.";
  const wrong = ["from", "to"].find((name) => !/^([01]\d|2[0-3]):[0-5]\d$/.test(value[name]));
  if (wrong) return `quiet.${wrong}: A time is text from 00:00 to 23:59.`;
  const { days = [1] } = value;
  const areDays = Array.isArray(days) && days.length > 0 && days.length <= 7 && days.every((day) => isInteger(day) && day >= 1 && day <= 7);
  if (!areDays) return "quiet.days: A day is a number from 1, for Sunday, to 7.";
  if (!isPlain(value.timeZone, 64)) return "quiet.timeZone: A zone has a name of the IANA database, such as Europe/Rome.";
}

/** What is wrong with categories; undefined if nothing is. @param {any} value */
function categoriesFault(value) {
  const differ = (/** @type {any[]} */ all) => new Set(all.map(({ identifier }) => identifier)).size === all.length;
  if (!Array.isArray(value) || value.length > 100) return "categories: There are at most 100 categories.";
  if (!differ(value)) return "categories: The identifiers of an application's categories differ.";
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

const maps = /** @type {const} */ (["ids", "revisions", "list", "pending", "presenting", "extending", "responses", "changes", "links"]);
const pendingLimit = 64, locationLimit = 20, lateMilliseconds = 900_000;

/** @param {State} state @returns {State} */
function draftOf(state) {
  const draft = /** @type {any} */ ({ ...state, facts: { ...state.facts } });
  for (const name of maps) draft[name] = new Map(/** @type {any} */ (state[name]));
  return draft;
}

/** A state without anything. @returns {State} */
function emptyState() {
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
const isOver = (frame, time) => frame.expiration > 0 && Math.floor(time / 1000) >= frame.expiration;

/** The stored value of a name, unless it is too old. @template {{at: number}} Value @param {State} state @param {Map<string, Value>} map @param {string} name @param {number} now */
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
function categoryOf(facts, { content, frame }) {
  const own = /** @type {Category[]} */ (facts.categories).find(({ identifier }) => identifier === content.categoryIdentifier);
  return own ?? (isObject(frame.category) ? frame.category : undefined);
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
function take(draft, frame, now, uncertain) {
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
function hold(draft, listed, time) {
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
function dueOf(listed) {
  const interval = intervalOf(listed), { anchor = 0, after = 0 } = listed;
  if (interval === undefined) return undefined;
  if (!listed.frame.trigger.repeats) return anchor + interval;
  return anchor + (Math.floor((after - anchor) / interval) + 1) * interval;
}

/** Shows what is due by the device's own clock. Of repeated occurrences only the latest is shown, unless it is too late. @param {State} draft @param {number} time */
function takeTime(draft, time) {
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
function place(draft, waiting, time, isExtended = false) {
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
function forgetPerson(draft) {
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
function notificationOf({ frame, payload, isLocal, presentation, takenAt: date }) {
  const { identifier, id, attachments: all = [] } = frame, content = contentOf(payload ?? frame.payload);
  const attachments = all.filter((/** @type {any} */ each) =>
    isObject(each) && isPlain(each.identifier, 64) && /^[0-9a-f]{64}$/.test(each.hash) && isPlain(each.type)
  );
  return { identifier, id, date, isLocal, presentation, content, attachments, frame };
}

/** Reads a state as JSON has it: the form of the rulebook. @param {any} json @returns {State} */
function stateOf(json) {
  const state = emptyState(), { facts } = state;
  /** @type {(map: Map<string, Listed>, rows: any[]) => void} */
  const fill = (map, rows) => {
    for (const { frame, takenAt, presentation = [], local = false } of rows) {
      map.set(frame.identifier, { frame, takenAt, presentation, isLocal: local, order: ++facts.order, anchor: takenAt, after: takenAt });
    }
  };
  for (const [id, at] of json.ids ?? []) state.ids.set(id, { at });
  for (const [name, revision, at] of json.revisions ?? []) state.revisions.set(name, { at, revision });
  fill(state.list, [...json.list ?? []].reverse());
  fill(state.pending, json.pending ?? []);
  for (const frame of json.responses ?? []) state.responses.set(frame.response, /** @type {any} */ ({ frame }));
  const names = ["rememberSeconds", "floor", "badge", "authorization", "quiet", "categories", "platform"];
  for (const name of names) {
    if (json[name] !== undefined) facts[name] = json[name];
  }
  facts.locked = json.screen === "locked";
  return state;
}

/** @param {State} state @returns {any} */
function jsonOf({ facts, ids, revisions, list, pending, responses }) {
  const rows = (/** @type {Map<string, Listed>} */ map) =>
    [...map.values()].map(({ frame, takenAt, presentation, isLocal: local }) => ({ frame, takenAt, presentation, local }));
  const { rememberSeconds, floor, badge, authorization, quiet } = facts;
  return {
    rememberSeconds,
    floor,
    badge,
    authorization,
    quiet,
    categories: facts.categories,
    platform: facts.platform,
    screen: facts.locked ? "locked" : "unlocked",
    ids: [...ids].map(([id, { at }]) => [id, at]),
    revisions: [...revisions].map(([name, { at, revision }]) => [name, revision, at]),
    list: rows(list).reverse(),
    pending: rows(pending),
    responses: [...responses.values()].map(({ frame }) => frame),
  };
}

/**
 * Takes the text of a frame into a state that is plain JSON, and returns what the device sends, keeps and shows (Tests/Conformance).
 *
 * @param {any} state
 * @param {string} text
 * @param {number} now
 * @param {number} uncertain
 * @returns {{answer: any[], after: any, shown: any[], close: boolean}}
 */
export function receive(state, text, now, uncertain = 0) {
  const frame = parse(text), draft = stateOf(state);
  const { ack, shown, close = false } = frame ? take(draft, frame, now, uncertain) : /** @type {Taken} */ ({});
  const actions = shown && categoryOf(draft.facts, notificationOf(shown))?.actions?.map((each) => each.identifier);
  return {
    answer: ack ? [{ type: "ack", deliveries: [], ...ack }] : [],
    after: jsonOf(draft),
    shown: shown ? [{ identifier: shown.frame.identifier, presentation: shown.presentation, actions: actions ?? [] }] : [],
    close,
  };
}

// MARK: Responses and requests

/**
 * Checks an action of the person by the rules of the cluster; returns the action's options.
 *
 * @param {Action[]} actions
 * @param {string} action
 * @param {string} [userText]
 * @returns {string[]}
 */
function judge(actions, action, userText) {
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
function respond(draft, listed, what, options, until) {
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
function release(draft, condition) {
  const released = [...draft.responses.values()].filter(condition).map((stored) => {
    const isUnanswered = stored.stage === "extension";
    return forward(draft, isUnanswered ? { ...stored, frame: { ...stored.frame, unanswered: true } } : stored);
  });
  return released.filter(({ stage }) => stage === "waiting");
}

/** Ends what a content extension has of a response; answers what is passed on. @param {State} draft @param {string} response @param {Ending} ending */
function endHeld(draft, response, ending) {
  const stored = draft.responses.get(response);
  // Its time may be over: then it was passed on.
  if (stored?.stage !== "extension") return;
  if (ending === "unanswered") return release(draft, (each) => each === stored)[0];
  if (ending === "dismissAndForwardAction") return forward(draft, stored);
  draft.responses.delete(response);
  const { identifier } = stored.frame;
  if (ending === "dismiss" && draft.list.get(identifier)?.order === stored.listed.order) draft.list.delete(identifier);
}

/** Adds a change for the cluster, in place of a former one of its kind. @param {State} draft @param {string} kind @param {any} [value] */
function register({ changes, facts }, kind, value) {
  changes.delete(kind);
  changes.set(kind, { kind, request: newID(), value, order: ++facts.order });
}

/** What a program can ask the person for. */
const askedOptions = [
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
function authorize(draft, authorization) {
  draft.facts.authorization = authorization;
  draft.facts.isDecided = true;
  register(draft, "settings", authorization);
}

/** What is wrong with a local request; undefined if nothing is. @param {any} identifier @param {any} content @param {any} trigger */
function localFault(identifier, content, trigger) {
  if (!isPlain(identifier, 64)) return "identifier: This is text of 1 to 64 bytes without control characters.";
  const { hasAlert, sound, badge = 0 } = contentOf(payloadOf(content));
  if (!hasAlert && !sound && badge === 0) return "content: A local request has a text, a sound, or a badge other than 0.";
  if (utf8.encode(JSON.stringify(content)).length > 32_768) return "content: This takes at most 32768 bytes as JSON.";
  if (badge < 0 || badge >= 2 ** 31) return "badge: A badge is a number from 0 to 2147483647.";
  if (trigger && !(trigger.timeInterval > 0)) return "trigger.timeInterval: An interval is longer than 0 seconds.";
  if (trigger?.repeats && trigger.timeInterval < 60) return "trigger.timeInterval: A repeating interval has at least 60 seconds.";
}

/** @typedef {{payload: any, title: string, subtitle: string, body: string, badge?: number, sound?: any, threadIdentifier?: string, categoryIdentifier?: string, userInfo: any}} MutableContent */

/** What a service extension changes. @param {any} received @returns {MutableContent} */
function mutableContent(received) {
  const payload = structuredClone(received),
    { title, subtitle, body, badge, threadIdentifier, categoryIdentifier, userInfo } = contentOf(payload);
  return { payload, title, subtitle, body, badge, sound: payload.aps?.sound, threadIdentifier, categoryIdentifier, userInfo };
}

/** The payload of a content as a program sets it. @param {any} content @param {any} payload what it was before */
function payloadOf(content, payload = {}) {
  const { title, subtitle, body, badge, sound, threadIdentifier, categoryIdentifier, interruptionLevel, userInfo = {} } = content;
  const { aps = {} } = payload, former = isObject(aps.alert) ? aps.alert : {}, before = contentOf(payload);
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

/** Waits for work, so many milliseconds at most. @template Result @param {number} milliseconds @param {Promise<Result>} work @returns {Promise<Result>} */
function within(milliseconds, work) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("its time is over")), milliseconds);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

// MARK: Reconnecting

/** Close codes with the first and the longest wait in milliseconds; none for those after which a device does not reconnect by itself. @type {Record<number, [number, number]|[]>} */
const waits = {
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
 * @param {{goaway?: any, close?: number, stood?: number|null, helloUnanswered?: boolean}} event the cluster's order when to reconnect, or the
 *   end of a connection: `stood` is the duration of its session, null without a welcome
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

// MARK: The database

/** The result of a request of IndexedDB. @template Result @param {IDBRequest<Result>} request @returns {Promise<Result>} */
const resultOf = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A random id, also where the browser withholds `randomUUID`. */
function newID(bytes = 16) {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return bytes === 16 ? hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5") : hex;
}

/** An error of the database as the program gets it. @param {any} error */
function storageError(error) {
  if (error instanceof CarillonError) return error;
  const isFull = error?.name === "QuotaExceededError";
  const text = isFull
    ? "the browser has no more room for this page's database: remove notifications or other data of this site"
    : `${error}`;
  return new CarillonError(isFull ? "storageFull" : "storage", `IndexedDB: ${text}`);
}

/**
 * What a device keeps over its end. Each change is one strict transaction: it is on the disk when `change` resolves. Tabs share the database,
 * and a generation tells each whether what it has in memory is the newest. Ids and revisions are read as they are needed.
 */
class Memory {
  /** @type {State} as this tab has read it last */
  state = emptyState();
  /** What the program says at each start. @type {Record<string, any>} */
  program = {};
  #database;

  /** @param {IDBDatabase} database */
  constructor(database) {
    this.#database = database;
    this.state.facts.generation = -1;
  }

  /** Opens the database of a name. @param {string} name @param {() => void} lost called when the browser takes it away */
  static async open(name, lost) {
    if (!globalThis.indexedDB) throw new CarillonError("noStorage", "the browser has no IndexedDB here, so nothing can be acknowledged");
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      for (const map of maps) {
        const store = request.result.createObjectStore(map);
        if (map === "ids" || map === "revisions") store.createIndex("at", "at");
      }
      request.result.createObjectStore("facts");
    };
    const database = await resultOf(request).catch((error) => {
      throw new CarillonError("noStorage", `the browser does not open the database '${name}': ${error}`);
    });
    database.onclose = database.onversionchange = () => {
      database.close();
      lost();
    };
    return new Memory(database);
  }

  close() {
    this.#database.close();
  }

  /** Reads what other tabs have written; answers whether there was something. */
  async refresh() {
    const state = await this.#read(this.#database.transaction(["facts", ...maps]));
    if (state.facts.generation <= this.state.facts.generation) return false;
    this.state = state;
    return true;
  }

  /** @param {IDBTransaction} transaction @returns {Promise<State>} */
  async #read(transaction) {
    const facts = await resultOf(transaction.objectStore("facts").get("facts")) ?? { ...emptyState().facts, generation: 0 };
    const former = this.state;
    if (facts.generation === former.facts.generation) return former;
    const state = emptyState();
    state.facts = facts;
    await Promise.all(
      maps.slice(2).map(async (name) => {
        const store = transaction.objectStore(name);
        const [keys, values] = await Promise.all([resultOf(store.getAllKeys()), resultOf(store.getAll())]);
        const rows = values.map((value, index) => [`${keys[index]}`, value]).sort(([, a], [, b]) => a.order - b.order);
        /** @type {any} */ (state)[name] = new Map(/** @type {[string, any][]} */ (rows));
      }),
    );
    // A notification that is the same stays the same value.
    for (const [identifier, { order }] of state.list) {
      const known = former.list.get(identifier);
      if (known?.order === order) state.list.set(identifier, known);
    }
    return state;
  }

  /**
   * Changes the state in one strict transaction. What `body` throws changes nothing.
   *
   * @template Result
   * @param {(draft: State) => Result} body it must not wait for anything
   * @param {any[]} frames whose ids and revisions it needs
   * @returns {Promise<Result>}
   */
  async change(body, frames = []) {
    let transaction;
    try {
      transaction = this.#database.transaction(["facts", ...maps], "readwrite", { durability: "strict" });
      const { complete, done } = this.#completion(transaction);
      const draft = draftOf(await this.#read(transaction));
      Object.assign(draft.facts, this.program);
      draft.ids = await this.#rows(transaction, "ids", frames.map(({ id }) => id));
      draft.revisions = await this.#rows(
        transaction,
        "revisions",
        frames.flatMap(({ identifier, identifiers = [] }) => [identifier, ...identifiers]),
      );
      const before = draftOf(draft), result = body(draft);
      const isChanged = this.#write(transaction, before, draft);
      if (isChanged || !draft.facts.generation) {
        draft.facts.generation++;
        const facts = Object.entries(draft.facts).filter(([name]) => !(name in this.program));
        transaction.objectStore("facts").put(Object.fromEntries(facts), "facts");
      }
      done();
      await complete;
      if (frames.some(({ type }) => type === "welcome")) this.#forget(draft.facts);
      [draft.ids, draft.revisions] = [new Map(), new Map()];
      if (draft.facts.generation > this.state.facts.generation) this.state = draft;
      return result;
    } catch (error) {
      try {
        transaction?.abort();
      } catch { /* It has ended already. */ }
      throw storageError(error);
    }
  }

  /** @param {IDBTransaction} transaction */
  #completion(transaction) {
    const complete = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
    });
    complete.catch(() => {});
    return { complete, done: () => transaction.commit?.() };
  }

  /** @param {IDBTransaction} transaction @param {string} name @param {any[]} keys @returns {Promise<Map<string, any>>} */
  async #rows(transaction, name, keys) {
    const store = transaction.objectStore(name), names = [...new Set(keys.filter((key) => key !== undefined))];
    const values = await Promise.all(names.map((key) => resultOf(store.get(key))));
    const rows = /** @type {[string, any][]} */ (names.map((key, index) => [key, values[index]]));
    return new Map(rows.filter(([, value]) => value !== undefined));
  }

  /** Writes what differs; answers whether anything does. @param {IDBTransaction} transaction @param {State} before @param {State} draft */
  #write(transaction, before, draft) {
    const { facts } = draft, names = new Set([...Object.keys(facts), ...Object.keys(before.facts)]);
    let isChanged = [...names].some((name) => facts[name] !== before.facts[name]);
    for (const name of maps) {
      /** @type {Map<string, any>} */
      const former = before[name], map = /** @type {Map<string, any>} */ (draft[name]), store = transaction.objectStore(name);
      for (const [key, value] of map) if (former.get(key) !== value) store.put(value, key);
      for (const key of former.keys()) if (!map.has(key)) store.delete(key);
      isChanged ||= former.size !== map.size || [...map].some(([key, value]) => former.get(key) !== value);
    }
    return isChanged;
  }

  /** Forgets ids and revisions that are too old, and beyond 50,000 the oldest. @param {Record<string, any>} facts */
  #forget({ skew = 0, rememberSeconds }) {
    const earliest = Date.now() + skew - rememberSeconds * 1_000;
    for (const name of ["ids", "revisions"]) {
      const store = this.#database.transaction(name, "readwrite").objectStore(name), counted = store.count();
      counted.onsuccess = () => {
        let surplus = counted.result - 50_000;
        const walk = store.index("at").openCursor();
        walk.onsuccess = () => {
          const cursor = walk.result;
          if (!cursor || cursor.value.at >= earliest && surplus <= 0) return;
          surplus--;
          cursor.delete();
          cursor.continue();
        };
      };
    }
  }
}

// MARK: The device

/** @typedef {{state: "connecting"|"connected"|"waiting"|"stopped"|"storageFull"|"lost", words: string, until?: number, code?: number, isLeader: boolean}} Connection */
/**
 * @typedef {object} Configuration
 * @property {string} url of the cluster: wss://push.example.com/v1/device
 * @property {string} application the apns-topic of its requests
 * @property {string} [user] the signed-in person; another one than before forgets the list, the badge and what is pending
 * @property {(token: string) => string|undefined|Promise<string|undefined>} [credential] asked before each hello
 * @property {string} [platform] "web" unless given
 * @property {string} [database] its name; `carillon/APPLICATION` unless given. Each is a device of its own
 * @property {string} [locale]
 * @property {string} [timeZone]
 * @property {Category[]} [categories] replace those of an earlier start
 * @property {Authorization} [authorization] holds until the person has decided; `notDetermined` unless given
 * @property {number} [deliveredLimit] so many notifications are in the list, 500 unless given
 * @property {(notification: Notification) => PresentationOption[]} [willPresent] chooses among the allowed ways while the screen is unlocked
 * @property {(request: any, content: MutableContent) => Promise<MutableContent|void>} [serviceExtension] changes a mutable notification before it is shown
 * @property {ContentExtension[]} [contentExtensions]
 * @property {boolean} [visible] whether the tab is; without it the document says so
 */

/** The sentences of the close codes after which a device does not reconnect by itself. @type {Record<number, string>} */
const stops = {
  4002: "The cluster does not take this device's registration: the program must correct it.",
  4003: "The credential does not hold: sign in again.",
  4004: "This device is connected somewhere else.",
  4013: "Nobody is signed in.",
  4019: "This device belongs to a cluster of the other environment.",
};

/**
 * @typedef {object} Session
 * @property {WebSocket} [socket]
 * @property {{ticks: number, wall: number}} [asked] when the hello left
 * @property {number} [welcomed]
 * @property {number} [pingSeconds]
 * @property {any[]} frames those that wait for the database
 * @property {boolean} isTaking
 * @property {boolean} isOpen whether the welcome is stored
 * @property {Change[]} inHello
 * @property {Map<string, string>} changes the requests that are sent, by kind
 * @property {Map<string, number>} responses when they were sent
 * @property {Set<string>} links those that are asked for
 */

/** The frames of changes. @type {Record<string, (request: string, value: any) => any>} */
const changeFrames = {
  settings: (request, authorization) => ({ type: "settings", request, authorization }),
  quiet: (request, quiet = {}) => ({ type: "settings", request, quiet }),
  categories: (request, categories) => ({ type: "categories", request, categories }),
  unregister: (request) => ({ type: "unregister", request }),
};

/** How long a visible tab waits for the tab that has the socket, in milliseconds. */
const leaderMilliseconds = 5_000;

/** A device of a page: its connection, its notifications, and what the person does with them. */
export class Device extends EventTarget {
  /** The open panel of this tab. @type {Panel|undefined} */
  panel;
  /** What the browser withholds, and what that means. @type {{feature: string, effect: string}[]} */
  withheld = [];
  /** @type {Connection} */
  connection = { state: "connecting", words: "Connecting.", isLeader: false };
  /** @type {Memory} */
  #memory;
  /** @type {Configuration} */
  #configuration;
  /** @type {string} */
  #name;
  /** The other tabs. @type {BroadcastChannel} */
  #channel;
  #isVisible = true;
  #isClosed = false;
  #isLeader = false;
  #stopped = new AbortController();
  /** Gives up the lock of the leader. @type {(() => void)|undefined} */
  #release;
  #isQueued = false;
  /** Gives up the shared lock of visible tabs. @type {(() => void)|undefined} */
  #hide;
  #leaderAnswered = false;
  /** The connection to the cluster. @type {Session|undefined} */
  #session;
  /** What the cluster's time is ahead of the browser's clocks, and how long its answer took. @type {{ticks: number, wall: number, took: number}|undefined} */
  #clock;
  /** Counts when the person has signed in. */
  #start = 0;
  /** @type {Plan|undefined} */
  #plan;
  /** @type {Map<string, number>} timers by what they are for */
  #timers = new Map();
  /** The notifications as they were handed out. @type {WeakMap<Listed, Notification>} */
  #views = new WeakMap();
  #isRefreshing = false;
  #isStale = false;
  #isNoticing = false;
  /** @type {Set<number>} the orders of notifications with the service extension of this tab */
  #extending = new Set();
  /** @type {Promise<boolean>|undefined} */
  #prompt;

  /** @param {Memory} memory @param {Configuration} configuration @param {string} name */
  constructor(memory, configuration, name) {
    super();
    [this.#memory, this.#configuration, this.#name] = [memory, configuration, name];
    const { willPresent, serviceExtension, deliveredLimit, platform = "web" } = configuration;
    memory.program = { willPresent, extends: serviceExtension !== undefined, deliveredLimit, platform };
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }) => this.#heard(data);
  }

  /** Opens the device of this origin, and connects. Rejects if nothing can be stored durably. @param {Configuration} configuration */
  static async open(configuration) {
    const { application, user, categories, authorization = { status: "notDetermined" } } = configuration;
    const fault = (categories && categoriesFault(categories)) ?? authorizationFault(authorization);
    if (fault) throw new CarillonError("badRequest", fault);
    const name = configuration.database ?? `carillon/${application}`;
    const memory = await Memory.open(name, () => device.#lost());
    const device = new Device(memory, configuration, name);
    await device.#change(({ facts, ...draft }) => {
      facts.token ??= newID(32);
      if (facts.user !== user && facts.generation > 0) forgetPerson({ facts, ...draft });
      if (facts.user !== user || facts.isSignedOut) facts.start = (facts.start ?? 0) + 1;
      [facts.user, facts.isSignedOut] = [user, false];
      draft.changes.delete("unregister");
      if (!facts.isDecided) facts.authorization = authorization;
      if (categories) facts.categories = categories;
    });
    device.#begin();
    return device;
  }

  #begin() {
    const page = globalThis.document, { visible } = this.#configuration;
    if (!navigator.locks) this.#withhold("Web Locks", "only the tab that was opened last is connected");
    if (!globalThis.crypto.subtle) this.#withhold("WebCrypto", "encrypted notifications are shown without their content");
    if (!globalThis.isSecureContext) this.#withhold("service workers", "nothing is shown while the page is hidden");
    if (visible === undefined && page) {
      page.addEventListener("visibilitychange", () => this.visible = !page.hidden, { signal: this.#stopped.signal });
    }
    this.visible = visible ?? !page?.hidden;
    if (navigator.locks) this.#queue();
    else this.#lead();
  }

  /** @param {string} feature @param {string} effect */
  #withhold(feature, effect) {
    this.withheld.push({ feature, effect: `${effect}, since this page is neither from HTTPS nor from this machine` });
  }

  /** Leaves the socket to another tab. The device stays registered. */
  close() {
    this.#isClosed = true;
    this.panel?.close();
    this.#stopped.abort();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#end(1000);
    this.#release?.();
    this.#hide?.();
    this.#channel.close();
    this.#memory.close();
    return Promise.resolve();
  }

  #lost() {
    this.close();
    this.#tell({ state: "lost", words: "The browser has deleted this device: load the page again." });
    this.#dispatch("lost");
  }

  // MARK: Tabs

  /** Whether the person sees this tab. */
  get visible() {
    return this.#isVisible;
  }

  set visible(isVisible) {
    this.#isVisible = isVisible;
    this.#hide?.();
    this.#hide = undefined;
    if (!isVisible || this.#isClosed) return;
    const held = () => this.#isVisible && !this.#isClosed ? new Promise((resolve) => this.#hide = () => resolve(undefined)) : undefined;
    navigator.locks?.request(`${this.#name} visible`, { mode: "shared" }, held).catch(() => {});
    this.#claim();
    if (!navigator.locks || this.#isLeader) return;
    // The tab that has the socket may be frozen.
    this.#leaderAnswered = false;
    this.#channel.postMessage({ type: "ask" });
    this.#after("leader", leaderMilliseconds, () => {
      if (this.#isVisible && !this.#leaderAnswered && !this.#isLeader) this.#take({ steal: true });
    });
  }

  #queue() {
    if (this.#isQueued || this.#isClosed) return;
    this.#isQueued = true;
    this.#take({ signal: this.#stopped.signal }, () => this.#isQueued = false);
  }

  /** Takes the lock of the tab that has the socket. @param {LockOptions} options @param {() => void} granted */
  async #take(options, granted = () => {}) {
    const hold = () => {
      granted();
      if (this.#isClosed) return;
      this.#lead();
      return new Promise((resolve) => this.#release = () => resolve(undefined));
    };
    try {
      await navigator.locks.request(this.#name, options, hold);
    } catch {
      // Another tab has taken it, or this one was closed.
    }
    if (this.#isClosed) return;
    this.#isLeader = false;
    this.#end(1000);
    this.#tell({ state: "connecting", words: "Another tab connects." });
    this.#queue();
  }

  #lead() {
    this.#isLeader = true;
    this.#connect();
    this.#tick();
    this.#notice();
  }

  /** @param {any} message */
  #heard(message) {
    if (this.#isClosed) return;
    if (message.type === "changed") this.#refresh();
    if (message.type === "ask" && this.#isLeader) this.#share();
    if (message.type === "leader" && !this.#isLeader) {
      this.#leaderAnswered = true;
      this.#tell(message.connection);
    }
    if (message.type === "reconnect" && this.#isLeader) this.reconnect();
    if (message.type === "event") this.#dispatch(message.name, message.detail);
  }

  #share() {
    const { isLeader: _, ...connection } = this.connection;
    this.#channel.postMessage({ type: "leader", connection });
  }

  /** Whether a tab is visible, so that this one need not show anything. */
  async #isAnyVisible() {
    if (!navigator.locks) return false;
    const { held } = await navigator.locks.query();
    return held?.some(({ name }) => name === `${this.#name} visible`) ?? false;
  }

  // MARK: Changes

  /** Changes the state durably, and tells the other tabs. @template Result @param {(draft: State) => Result} body @param {any[]} frames @returns {Promise<Result>} */
  async #change(body, frames = []) {
    const former = this.#memory.state.facts.generation, result = await this.#memory.change(body, frames);
    if (this.#memory.state.facts.generation === former) return result;
    if (!this.#isClosed) this.#channel.postMessage({ type: "changed" });
    this.#notice();
    return result;
  }

  async #refresh() {
    this.#isStale = true;
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      while (this.#isStale && !this.#isClosed) {
        this.#isStale = false;
        if (await this.#memory.refresh()) this.#notice();
      }
    } catch (error) {
      this.#problem(error);
    }
    this.#isRefreshing = false;
  }

  /** Something has changed: the page draws, one tab shows, and the leader sends. */
  #notice() {
    if (this.#isNoticing) return;
    this.#isNoticing = true;
    queueMicrotask(() => {
      this.#isNoticing = false;
      if (this.#isClosed) return;
      this.#dispatch("change");
      // The notification may have left the list, or its preview the screen.
      const { panel } = this;
      if (panel && (!this.#memory.state.list.has(panel.identifier) || this.locked && this.preview(panel.notification).isHidden)) {
        panel.close();
      }
      this.#claim();
      if (!this.#isLeader) return;
      if (this.#start !== (this.#memory.state.facts.start ?? 0)) this.#restart();
      this.#send();
      this.#extend();
      this.#schedule();
    });
  }

  /** Shows what no tab has shown: this one if it is visible, or if none is and it has the socket. */
  async #claim() {
    const waits = () => this.#memory.state.presenting.size > 0 && !this.#isClosed;
    if (!waits() || !this.#isVisible && (!this.#isLeader || await this.#isAnyVisible()) || !waits()) return;
    try {
      /** @type {Showing[]} */
      const claimed = await this.#change((draft) => {
        const all = [...draft.presenting.values()];
        draft.presenting.clear();
        return all;
      });
      const { facts } = this.#memory.state, state = facts.locked ? "locked" : this.#isVisible ? "foreground" : "background";
      for (const { listed, options, isUpdate, wakes } of claimed) {
        if (isOver(listed.frame, this.#time().now)) continue;
        const notification = this.#view(listed);
        if (wakes && !listed.isLocal) this.#dispatch("background", { notification });
        if (options.length > 0) this.#dispatch("present", { notification, options, isUpdate, state });
        this.panel?.received(notification);
      }
    } catch (error) {
      this.#problem(error);
    }
  }

  /** @param {string} name @param {any} detail */
  #dispatch(name, detail = undefined) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** Dispatches an event in all tabs. @param {string} name @param {any} detail */
  #announce(name, detail) {
    this.#dispatch(name, detail);
    if (!this.#isClosed) this.#channel.postMessage({ type: "event", name, detail });
  }

  /** @param {any} error */
  #problem(error) {
    if (!this.#isClosed) this.#dispatch("problem", storageError(error));
  }

  /** Sets a timer, in place of the former one for the same. @param {string} name @param {number} milliseconds @param {() => void} body */
  #after(name, milliseconds, body) {
    clearTimeout(this.#timers.get(name));
    if (!this.#isClosed) this.#timers.set(name, setTimeout(body, milliseconds));
  }

  // MARK: The connection

  /** The cluster's time: the latest that is possible, and by how much it may be ahead. After a sleep or a set clock the clocks of the browser differ. */
  #time() {
    const { ticks, wall, took } = this.#clock ?? { ticks: -Infinity, wall: this.#memory.state.facts.skew ?? 0, took: 0 };
    const times = [performance.now() + ticks, Date.now() + wall], now = Math.floor(Math.max(...times));
    const uncertain = took + (this.#clock ? now - Math.min(...times) : 0);
    return { now, uncertain: uncertain > 1_000 ? Math.ceil(uncertain) : 0 };
  }

  /** @param {Omit<Connection, "isLeader">} connection */
  #tell(connection) {
    this.connection = { ...connection, isLeader: this.#isLeader };
    this.#dispatch("connection", this.connection);
    if (this.#isLeader && !this.#isClosed) this.#share();
  }

  /** Tries to connect at once: with another credential, or because the person wishes it. */
  reconnect() {
    if (!this.#isLeader) return this.#channel.postMessage({ type: "reconnect" });
    if (!this.#session?.isOpen) this.#restart();
  }

  #restart() {
    this.#end(1000);
    this.#plan = undefined;
    this.#connect();
  }

  async #connect() {
    if (!this.#isLeader || this.#isClosed || this.#session) return;
    const { url, credential } = this.#configuration, { token, isSignedOut, start = 0 } = this.#memory.state.facts;
    this.#start = start;
    if (isSignedOut) return this.#tell({ state: "stopped", words: stops[4013], code: 4013 });
    /** @type {Session} */
    const session = { frames: [], isTaking: false, isOpen: false, inHello: [], changes: new Map(), responses: new Map(), links: new Set() };
    this.#session = session;
    this.#tell({ state: "connecting", words: "Connecting." });
    this.#expectFrame(30);
    try {
      const proof = await credential?.(token);
      if (this.#session !== session) return;
      const socket = session.socket = new WebSocket(url, "carillon.v1");
      socket.onopen = () => this.#greet(session, proof);
      socket.onmessage = ({ data }) => this.#received(session, data);
      socket.onclose = ({ code }) => this.#end(code);
    } catch (error) {
      if (this.#session !== session) return;
      this.#dispatch("problem", new CarillonError("connection", `no connection can be made: ${error}`));
      this.#end(1006);
    }
  }

  /** @param {number} seconds */
  #expectFrame(seconds) {
    this.#after("frame", Math.min(seconds, 3_600) * 1_000, () => this.#end(1006));
  }

  /** @param {Session} session @param {string|undefined} credential */
  #greet(session, credential) {
    const { application, platform = "web", locale = navigator.language } = this.#configuration;
    const { timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone } = this.#configuration;
    const { facts: { token: device, user, authorization, categories }, changes } = this.#memory.state;
    session.inHello = [...changes.values()].filter(({ kind }) => kind === "settings" || kind === "categories");
    session.asked = { ticks: performance.now(), wall: Date.now() };
    const person = { user, credential, locale, timeZone, authorization, categories };
    this.#post(session, { type: "hello", device, application, platform, heartbeat: true, ...person });
  }

  /** @param {Session} session @param {any} frame */
  #post(session, frame) {
    session.socket?.send(JSON.stringify(frame));
  }

  /** @param {Session} session @param {any} text */
  #received(session, text) {
    this.#expectFrame(2 * (session.pingSeconds ?? 15));
    const frame = parse(`${text}`), { asked } = session;
    if (frame?.type === "welcome" && asked && session.welcomed === undefined) {
      const { now, pingSeconds } = frame;
      session.welcomed = performance.now();
      session.pingSeconds = Math.max(pingSeconds, 1);
      this.#clock = { ticks: now - asked.ticks, wall: now - asked.wall, took: session.welcomed - asked.ticks };
    }
    if (!frame || session.welcomed === undefined) return;
    if (frame.type === "goaway") this.#plan = reconnect(this.#plan, { goaway: frame.reconnectAfterMs }, 0).plan;
    session.frames.push(frame);
    if (!session.isTaking) this.#takeFrames(session);
  }

  /** Stores all frames that have come in one transaction, shows what they bring, and acknowledges them. @param {Session} session */
  async #takeFrames(session) {
    session.isTaking = true;
    try {
      while (session.frames.length > 0 && this.#session === session) {
        const frames = session.frames.splice(0);
        const { ack, answers, isUnsure } = await this.#change((draft) => this.#taken(draft, frames, session), frames);
        for (const [type, detail] of answers) {
          session.responses.delete(detail.response);
          for (const [kind, request] of session.changes) if (request === detail.request) session.changes.delete(kind);
          this.#announce(type, detail);
        }
        if (this.#session !== session) return;
        const lists = Object.entries(ack).filter(([, list]) => list.length > 0);
        if (lists.length > 0) this.#post(session, { type: "ack", deliveries: [], ...Object.fromEntries(lists) });
        if (answers.some(([type, { kind }]) => type === "accepted" && kind === "unregister")) return this.#end(4013);
        if (isUnsure) return this.#end(1006);
        if (frames.some(({ type }) => type === "welcome")) {
          session.isOpen = true;
          this.#tell({ state: "connected", words: "Connected." });
        }
        this.#send();
      }
    } catch (error) {
      // Nothing of these frames is acknowledged, so they come again.
      if (this.#session === session) this.#end(1006, storageError(error));
    } finally {
      session.isTaking = false;
    }
  }

  /** @param {State} draft @param {any[]} frames @param {Session} session */
  #taken(draft, frames, session) {
    const { now, uncertain } = this.#time();
    /** @type {Required<Acknowledgement>} */
    const ack = { deliveries: [], updated: [], dropped: [] };
    /** @type {["accepted"|"refused", any][]} */
    const answers = [];
    for (const frame of frames) {
      const { type, response, request, reason, field, rule } = frame;
      if (type === "welcome") {
        draft.facts.skew = this.#clock?.wall;
        for (const { kind, request, order } of session.inHello) {
          if (draft.changes.get(kind)?.order !== order) continue;
          draft.changes.delete(kind);
          answers.push(["accepted", { request, kind }]);
        }
      } else if (type === "accepted" || type === "refused") {
        const identifier = draft.responses.get(response)?.frame.identifier;
        const kind = [...draft.changes.values()].find((change) => change.request === request)?.kind;
        const why = type === "refused" ? { reason, field, rule } : {};
        answers.push([type, response ? { response, identifier, ...why } : { request, kind, ...why }]);
      }
      // What comes for a person who signs out is neither shown nor acknowledged.
      if (type === "notify" && draft.changes.has("unregister")) continue;
      const taken = take(draft, frame, now, uncertain);
      if (taken.close) return { ack, answers, isUnsure: true };
      ack.deliveries.push(...taken.ack?.deliveries ?? []);
      ack.updated.push(...taken.ack?.updated ?? []);
      ack.dropped.push(...taken.ack?.dropped ?? []);
    }
    return { ack, answers, isUnsure: false };
  }

  /** Ends the connection, and plans the next one if this tab has the socket. @param {number} code @param {CarillonError} [problem] */
  #end(code, problem) {
    const session = this.#session, { socket, asked, welcomed } = session ?? {};
    this.#session = undefined;
    clearTimeout(this.#timers.get("frame"));
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    if (problem) this.#problem(problem);
    if (!session || !this.#isLeader || this.#isClosed) return;
    const stood = welcomed === undefined ? null : performance.now() - welcomed, helloUnanswered = asked !== undefined && stood === null;
    const { plan, wait: planned } = reconnect(this.#plan, { close: code, stood, helloUnanswered }, Math.random());
    this.#plan = plan;
    if (code === 4013) this.#signedOut();
    if (planned === null) return this.#tell({ state: "stopped", words: stops[code], code });
    const isFull = problem?.code === "storageFull", wait = isFull ? Math.max(planned, 60_000) : planned, until = Date.now() + wait;
    if (isFull) this.#tell({ state: "storageFull", words: problem.message, until, code });
    else this.#tell({ state: "waiting", words: "Not connected.", until, code });
    this.#after("connect", wait, () => this.#connect());
  }

  #signedOut() {
    this.#change((draft) => {
      forgetPerson(draft);
      draft.changes.delete("unregister");
      draft.facts.isSignedOut = true;
    }).catch((error) => this.#problem(error));
  }

  /** Sends what the cluster has not answered. */
  #send() {
    const session = this.#session, { responses, changes, links } = this.#memory.state, now = performance.now();
    if (!session?.isOpen) return;
    for (const { kind, request, value } of changes.values()) {
      const sent = session.changes.get(kind);
      if (sent === request) continue;
      // One change of a kind is with the cluster at a time.
      if (sent !== undefined) break;
      session.changes.set(kind, request);
      this.#post(session, changeFrames[kind](request, value));
    }
    for (const [id, { frame, stage }] of responses) {
      const sentAt = session.responses.get(id);
      if (stage !== "waiting" || (sentAt === undefined ? session.responses.size >= 16 : now < sentAt + 30_000)) continue;
      session.responses.set(id, now);
      this.#post(session, frame);
    }
    for (const [hash, { url, refused }] of links) {
      if (url || refused || session.links.has(hash)) continue;
      session.links.add(hash);
      this.#post(session, { type: "link", hash, request: hash });
    }
  }

  /** Does every five seconds what no event asks for. */
  #tick() {
    if (!this.#isLeader || this.#isClosed) return;
    this.#send();
    this.#after("tick", 5_000, () => this.#tick());
  }

  // MARK: The list

  /** The name of this installation. @returns {string} */
  get token() {
    return this.#memory.state.facts.token;
  }

  /** The notifications on the screen, the newest first. @returns {Notification[]} */
  get delivered() {
    return [...this.#memory.state.list.values()].map((listed) => this.#view(listed)).reverse();
  }

  /** Those that wait for a time or a place; `due` is in milliseconds. @returns {(Notification & {due?: number})[]} */
  get pending() {
    const { pending } = this.#memory.state;
    return [...pending.values()].map((listed) => ({ ...this.#view(listed), due: dueOf(listed) }));
  }

  /** The notifications by their threads, the group with the newest first. @returns {{threadIdentifier: string|undefined, notifications: Notification[]}[]} */
  get groups() {
    const groups = new Map();
    for (const notification of this.delivered) {
      const { threadIdentifier } = notification.content;
      if (!groups.has(threadIdentifier)) groups.set(threadIdentifier, { threadIdentifier, notifications: [] });
      groups.get(threadIdentifier).notifications.push(notification);
    }
    return [...groups.values()];
  }

  /** @param {Listed} listed @returns {Notification} the same one for the same notification */
  #view(listed) {
    const view = this.#views.get(listed) ?? notificationOf(listed);
    this.#views.set(listed, view);
    return view;
  }

  /** The number at the application's icon. @returns {number} */
  get badge() {
    return this.#memory.state.facts.badge;
  }

  /** Whether older notifications are missing, since the mailbox was full. @returns {boolean} */
  get incomplete() {
    return this.#memory.state.facts.incomplete ?? false;
  }

  /** What of a notification may be drawn now. @param {Notification} notification */
  preview(notification) {
    const { content: { title, subtitle, body } } = notification, { previews } = this.settings;
    const isHidden = previews === "never" || previews === "whenAuthenticated" && this.locked;
    if (!isHidden) return { title, subtitle, body, isHidden };
    const { options = [], hiddenPreviewsBodyPlaceholder = "Notification" } = this.category(notification) ?? {};
    return {
      title: options.includes("hiddenPreviewsShowTitle") ? title : "",
      subtitle: options.includes("hiddenPreviewsShowSubtitle") ? subtitle : "",
      body: hiddenPreviewsBodyPlaceholder,
      isHidden,
    };
  }

  /** Removes notifications without a response. @param {string[]} identifiers @returns {Promise<void>} */
  removeDelivered(identifiers) {
    return this.#change(({ list }) => identifiers.forEach((identifier) => list.delete(identifier)));
  }

  /** @returns {Promise<void>} */
  removeAllDelivered() {
    return this.#change(({ list }) => list.clear());
  }

  /** @param {number} count */
  async setBadgeCount(count) {
    if (!isInteger(count) || count >= 2 ** 31) throw new CarillonError("badRequest", "badge: A badge is a number from 0 to 2147483647.");
    await this.#change(({ facts }) => facts.badge = count);
  }

  // MARK: What the person does

  /** The responses without an answer of the cluster. */
  get responses() {
    return [...this.#memory.state.responses.values()].map(({ frame: { response, identifier, action, userText }, stage: state }) => (
      { response, identifier, action, userText, state: state === "locked" ? "held" : state }
    ));
  }

  /** Opens a notification. @param {string} identifier */
  open(identifier) {
    return this.respond(identifier, OPEN);
  }

  /** Dismisses a notification. @param {string} identifier */
  dismiss(identifier) {
    return this.respond(identifier, DISMISS);
  }

  /**
   * Stores what the person does with a notification, which leaves the list. It is sent until the cluster has answered.
   *
   * @param {string} identifier
   * @param {string} action
   * @param {string} [userText]
   * @returns {Promise<{response: string, forwarded: boolean}>}
   */
  async respond(identifier, action, userText) {
    if (this.panel?.takes(identifier, action)) return this.panel.answer(action, userText, this.#time().now);
    return await this.#respond(identifier, action, userText);
  }

  /** Responds past a content extension. @param {string} identifier @param {string} action @param {string} [userText] */
  async #respond(identifier, action, userText) {
    const stored = await this.#change((draft) => {
      const listed = draft.list.get(identifier);
      if (!listed) throw new CarillonError("noSuchNotification", `no notification on the screen has the identifier '${identifier}'`);
      const category = categoryOf(draft.facts, notificationOf(listed));
      if (action === DISMISS && !category?.options?.includes("customDismissAction")) {
        draft.list.delete(identifier);
        return;
      }
      if (action !== OPEN && action !== DISMISS && !category) {
        throw new CarillonError("noCategory", "the notification's category is not registered, so it offers no actions: open it");
      }
      const options = judge(category?.actions ?? [], action, userText);
      return respond(draft, listed, { action, userText, at: this.#time().now }, options);
    });
    if (!stored) return { response: "", forwarded: false };
    if (stored.stage === "waiting") this.#give(stored);
    return { response: stored.frame.response, forwarded: !stored.listed.isLocal };
  }

  /** Gives the program a response. @param {Stored} stored */
  #give({ frame: { response, identifier, action, userText, dynamic, unanswered }, listed }) {
    const notification = this.#view(listed);
    const isDynamic = dynamic === true, isUnanswered = unanswered === true;
    this.#dispatch("response", { response, identifier, action, userText, notification, isDynamic, isUnanswered });
  }

  /** Whether the screen is locked, for all tabs. @returns {boolean} */
  get locked() {
    return this.#memory.state.facts.locked ?? false;
  }

  /** Locks or unlocks the screen. Unlocking sends the responses that have waited for it. @param {boolean} isLocked */
  async setLocked(isLocked) {
    const released = await this.#change((draft) => {
      draft.facts.locked = isLocked;
      return isLocked ? [] : release(draft, ({ stage }) => stage === "locked");
    });
    for (const stored of released) this.#give(stored);
  }

  /**
   * Expands a notification: opens its panel in place of another one of this tab.
   *
   * @param {string} identifier
   * @returns {Promise<Panel>}
   */
  // deno-lint-ignore require-await
  async expand(identifier) {
    const listed = this.#memory.state.list.get(identifier);
    if (!listed) throw new CarillonError("noSuchNotification", `no notification on the screen has the identifier '${identifier}'`);
    const notification = this.#view(listed),
      { categoryIdentifier = "" } = notification.content,
      { contentExtensions } = this.#configuration;
    if (this.panel?.identifier === identifier) return this.panel;
    if (this.locked && this.preview(notification).isHidden) throw new CarillonError("locked", "the screen is locked, and hides previews");
    this.panel?.close();
    const declaration = contentExtensions?.find(({ categories }) => categories.includes(categoryIdentifier));
    /** @type {PanelOwner} */
    const owner = {
      respond: (action, userText) =>
        panel.isClosed ? this.#respond(identifier, action, userText) : this.respond(identifier, action, userText),
      hold: (what, options, until) =>
        this.#change((draft) => {
          const present = draft.list.get(identifier);
          if (!present) throw new CarillonError("noSuchNotification", `'${identifier}' has left the screen`);
          return respond(draft, present, what, options, until);
        }),
      end: async (stored, ending) => {
        const ended = await this.#change((draft) => endHeld(draft, stored.frame.response, ending));
        if (ended?.stage === "waiting") this.#give(ended);
      },
      tell: (shown) => {
        if (!shown && this.panel === panel) this.panel = undefined;
        if (shown === this.panel) this.#dispatch("panel", shown);
      },
    };
    const panel = new Panel(notification, this.category(notification), declaration, owner);
    this.panel = panel;
    return panel;
  }

  // MARK: Categories

  /** @returns {Category[]} */
  get categories() {
    return this.#memory.state.facts.categories;
  }

  /** @param {Category[]} categories replace all former ones */
  async setNotificationCategories(categories) {
    const fault = categoriesFault(categories);
    if (fault) throw new CarillonError("badRequest", fault);
    await this.#change((draft) => {
      draft.facts.categories = categories;
      register(draft, "categories", categories);
    });
  }

  /** The category with a notification's actions. @param {Notification} notification */
  category(notification) {
    return categoryOf(this.#memory.state.facts, notification);
  }

  // MARK: The person's settings

  /** @returns {Authorization} */
  get settings() {
    return this.#memory.state.facts.authorization;
  }

  /** @param {Authorization} authorization all of it */
  async setAuthorization(authorization) {
    const fault = authorizationFault(authorization);
    if (fault) throw new CarillonError("badRequest", fault);
    await this.#change((draft) => authorize(draft, authorization));
  }

  /**
   * Asks the person for permission, once.
   *
   * @param {string[]} options
   * @param {(options: string[]) => Promise<boolean>} [ask] not needed with the option "provisional"
   * @returns {Promise<boolean>}
   */
  async requestAuthorization(options, ask) {
    const isProvisional = options.includes("provisional");
    const isOpen = (/** @type {string} */ status) => status === "notDetermined" || status === "provisional" && !isProvisional;
    const { status: former } = this.settings;
    if (isOpen(former)) {
      if (!isProvisional && !ask) throw new CarillonError("badRequest", "ask: The person is asked by a function of the program.");
      // Two calls at once ask the person once.
      this.#prompt ??= Promise.resolve(isProvisional || ask?.(options)).then(Boolean).finally(() => this.#prompt = undefined);
      const isGranted = await this.#prompt;
      await this.#change((draft) => {
        const { authorization } = draft.facts;
        if (authorization.status !== former) return;
        const switches = Object.fromEntries(askedOptions.map((option) => [option, options.includes(option)]));
        switches.lockScreen = switches.notificationCenter = switches.alert;
        const status = isProvisional ? "provisional" : isGranted ? "authorized" : "denied";
        authorize(draft, { ...authorization, ...switches, status });
      });
    }
    return ["authorized", "provisional", "ephemeral"].includes(this.settings.status);
  }

  /** The person's quiet hours. @returns {QuietHours|undefined} */
  get quietHours() {
    return this.#memory.state.facts.quiet;
  }

  /** Sets the quiet hours of the person, for all devices; undefined removes them. @param {QuietHours} [hours] */
  async setQuietHours(hours) {
    const fault = this.#memory.state.facts.user === undefined
      ? "quiet: Quiet hours belong to a person, and nobody is signed in."
      : hours && quietFault(hours);
    if (fault) throw new CarillonError("badRequest", fault);
    await this.#change((draft) => {
      draft.facts.quiet = hours;
      register(draft, "quiet", hours);
    });
  }

  /** Signs the person out: the list, the badge and what is pending are forgotten, and the cluster is told. */
  async unregister() {
    this.panel?.close();
    await this.#change((draft) => {
      forgetPerson(draft);
      register(draft, "unregister");
    });
  }

  /** Asks the browser not to evict the database. */
  async persist() {
    return await navigator.storage?.persist?.() ?? false;
  }

  // MARK: Local requests

  /**
   * Adds a notification of the program, which never leaves the device.
   *
   * @param {{identifier: string, content: any, trigger?: {timeInterval: number, repeats?: boolean}}} request without a trigger it is shown at once
   */
  async add({ identifier, content, trigger }) {
    const fault = localFault(identifier, content, trigger);
    if (fault) throw new CarillonError("badRequest", fault);
    const waits = trigger && { type: "timeInterval", ...trigger };
    const frame = { type: "notify", delivery: 0, id: newID(), identifier, revision: "local", trigger: waits, payload: payloadOf(content) };
    await this.#change((draft) => {
      const time = Date.now(), listed = { frame, takenAt: time, isLocal: true, presentation: [], order: 0 };
      if (trigger) return hold(draft, listed, time);
      draft.pending.delete(identifier);
      place(draft, listed, time);
    });
  }

  /** @param {string[]} identifiers @returns {Promise<void>} */
  removePending(identifiers) {
    return this.#change(({ pending }) => identifiers.forEach((identifier) => pending.delete(identifier)));
  }

  /** The place of a waiting notification is reached. @param {string} identifier @returns {Promise<void>} */
  fire(identifier) {
    return this.#change((draft) => {
      const waiting = draft.pending.get(identifier), { now } = this.#time();
      if (!waiting) return;
      const isPast = isOver(waiting.frame, now), time = waiting.isLocal ? Date.now() : now;
      if (isPast || !waiting.frame.trigger?.repeats) draft.pending.delete(identifier);
      if (!isPast) place(draft, { ...waiting, takenAt: time }, time);
    });
  }

  /** Sets the timer of what is due next. */
  #schedule() {
    const { pending, responses } = this.#memory.state;
    const held = [...responses.values()].filter(({ stage }) => stage === "extension").map(({ until }) => until);
    const due = Math.min(...[...pending.values()].map((listed) => dueOf(listed) ?? Infinity), ...held);
    if (due === Infinity) return clearTimeout(this.#timers.get("due"));
    // The clock may be set while the timer runs.
    this.#after("due", Math.min(Math.max(due - Date.now(), 0), 60_000), () => this.#takeTime());
  }

  async #takeTime() {
    try {
      const released = await this.#change((draft) => {
        takeTime(draft, Date.now());
        return release(draft, ({ stage, until }) => stage === "extension" && until <= Date.now());
      });
      for (const stored of released) this.#give(stored);
      this.#schedule();
    } catch (error) {
      this.#problem(error);
      this.#after("due", 60_000, () => this.#takeTime());
    }
  }

  // MARK: Attachments

  /**
   * A link to an attachment that is good now.
   *
   * @param {Notification} notification
   * @param {string} identifier the attachment's
   * @returns {Promise<string>}
   */
  async attachmentURL({ identifier: name, attachments }, identifier) {
    const attachment = /** @type {any} */ (attachments.find((each) => each.identifier === identifier));
    if (!attachment) throw new CarillonError("noAttachments", `the notification '${name}' has no attachment '${identifier}'`);
    const { hash } = attachment, isGood = (/** @type {any} */ link) => link?.url && link.expires * 1_000 > this.#time().now + 5_000;
    const present = () => [this.#memory.state.links.get(hash), attachment].find(isGood);
    if (present()) return present().url;
    await this.#change(({ links, facts }) => {
      for (const [key, link] of links) if (link.refused || link.url && !isGood(link)) links.delete(key);
      if (!links.has(hash)) links.set(hash, { order: ++facts.order });
    });
    const answered = () => present() || this.#memory.state.links.get(hash)?.refused;
    await this.#until(answered, 30_000);
    const link = answered();
    if (!link) throw new CarillonError("notConnected", "the cluster has not given a link: try again when there is a connection");
    if (!link.url) throw new CarillonError("refused", `the cluster gives no link: ${link.rule ?? link.reason}`);
    return link.url;
  }

  /** Waits for a change that makes a condition hold. @param {() => any} condition @param {number} milliseconds */
  #until(condition, milliseconds) {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.removeEventListener("change", check);
        resolve(undefined);
      };
      const check = () => (condition() || this.#isClosed) && end(), timer = setTimeout(end, milliseconds);
      this.addEventListener("change", check);
      check();
    });
  }

  // MARK: The service extension

  /** Gives the program's service extension the notifications that wait for it. */
  #extend() {
    for (const waiting of this.#memory.state.extending.values()) {
      if (this.#extending.size >= 16) return;
      if (this.#extending.has(waiting.order)) continue;
      this.#extending.add(waiting.order);
      this.#extended(waiting).catch((error) => this.#problem(error)).finally(() => this.#extending.delete(waiting.order));
    }
  }

  /** @param {Listed} waiting */
  async #extended(waiting) {
    const { identifier, id, expiration, payload } = waiting.frame, { serviceExtension, application } = this.#configuration;
    /** @type {any} */
    let changed;
    try {
      const content = mutableContent(payload);
      const work = serviceExtension?.({ id, identifier, application, expiration }, content);
      const result = await within(30_000, Promise.resolve(work).then((result) => result ?? content));
      changed = payloadOf(result, result.payload);
    } catch (error) {
      this.#dispatch("problem", new CarillonError("extension", `'${identifier}' is shown as it came: ${error}`));
    }
    await this.#change((draft) => {
      const { now } = this.#time();
      if (draft.extending.get(identifier)?.order !== waiting.order) return;
      draft.extending.delete(identifier);
      if (!isOver(waiting.frame, now)) place(draft, { ...waiting, payload: changed }, now, true);
    });
  }
}

// MARK: Panels

/** @typedef {"doNotDismiss"|"dismiss"|"dismissAndForwardAction"|"unanswered"} Ending what becomes of a response that a content extension has */
/**
 * Draws expanded notifications, and takes what the person does in them.
 *
 * @typedef {object} Handler
 * @property {(notification: Notification, panel: Panel) => void} didReceiveNotification the expanded one, then newer ones of its thread
 * @property {(response: any, panel: Panel) => any} [didReceiveResponse] answers an `Ending`; without it all is forwarded
 * @property {(control: string, text: string|undefined, panel: Panel) => void} [didTap]
 * @property {(panel: Panel) => void} [mediaPlay]
 * @property {(panel: Panel) => void} [mediaPause]
 */
/**
 * @typedef {object} ContentExtension
 * @property {string[]} categories
 * @property {() => Handler} make called for each panel
 * @property {boolean} [hidesDefaultContent]
 * @property {boolean} [overridesTitle]
 * @property {number} [initialContentSizeRatio]
 * @property {boolean} [allowsInteraction]
 * @property {boolean} [takesDefaultAction]
 * @property {boolean} [takesDismissAction]
 * @property {number} [answerMilliseconds] 30,000 unless given
 */
/**
 * What a panel asks of its device.
 *
 * @typedef {object} PanelOwner
 * @property {(action: string, userText?: string) => Promise<{response: string, forwarded: boolean}>} respond
 * @property {(what: any, options: string[], until: number) => Promise<Stored>} hold stores a response for the extension
 * @property {(stored: Stored, ending: Ending) => Promise<void>} end
 * @property {(panel: Panel|undefined) => void} tell
 */

/** A notification that the person has expanded. The page reads it, and a content extension changes it by `update`. */
export class Panel {
  isClosed = false;
  /** Whether the extension has a response. */
  isBusy = false;
  title = "";
  /** @type {string[]} attachments that are drawn above the lines */
  pictures = [];
  /** @type {{text: string, color?: "red"|"green"|"yellow"}[]} */
  lines = [];
  /** @type {{identifier: string, title: string, kind: "button"|"textField", placeholder?: string, buttonTitle?: string}[]} */
  controls = [];
  /** @type {string|undefined} the text field that takes what the person types */
  firstResponder;
  /** @type {{width: number, height: number}|undefined} */
  preferredContentSize;
  /** @type {"default"|"overlay"|undefined} */
  mediaPlayPauseButtonType;
  isPlaying = false;
  /** @type {any} what the page draws by itself */
  canvas;
  /** @type {PanelOwner} */
  #owner;
  /** @type {ContentExtension|undefined} */
  #declaration;
  /** @type {Category|undefined} */
  #category;
  /** @type {Handler|undefined} */
  #handler;
  /** @type {Stored|undefined} the response that the extension has */
  #held;
  #isTelling = false;

  /** @param {Notification} notification @param {Category|undefined} category @param {ContentExtension|undefined} declaration @param {PanelOwner} owner */
  constructor(notification, category, declaration, owner) {
    [this.#owner, this.#declaration, this.#category] = [owner, declaration, category];
    this.notification = notification;
    /** @type {Action[]} the actions below it */
    this.notificationActions = category?.actions ?? [];
    this.showsDefaultContent = !declaration?.hidesDefaultContent;
    this.initialContentSizeRatio = declaration?.initialContentSizeRatio;
    this.#handler = declaration?.make();
    this.#handler?.didReceiveNotification(notification, this);
  }

  get identifier() {
    return this.notification.identifier;
  }

  /** Changes what is drawn, as far as the extension has declared it. @param {Record<string, any>} changes members of the panel */
  update(changes) {
    if (this.isClosed) return;
    const { title, controls, ...others } = changes, { overridesTitle, allowsInteraction } = this.#declaration ?? {};
    Object.assign(this, others, overridesTitle && title !== undefined ? { title } : {}, allowsInteraction && controls ? { controls } : {});
    this.notificationActions = this.notificationActions.filter(({ identifier }) =>
      isPlain(identifier) && identifier !== OPEN && identifier !== DISMISS
    ).slice(0, 10);
    const isField = this.controls.some(({ identifier, kind }) => identifier === this.firstResponder && kind === "textField");
    if (!isField) this.firstResponder = undefined;
    this.#tell();
  }

  #tell() {
    if (this.#isTelling) return;
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      if (!this.isClosed) this.#owner.tell(this);
    });
  }

  /** Takes a notification that was shown. @param {Notification} notification */
  received(notification) {
    const { categoryIdentifier: category, threadIdentifier: thread } = notification.content, { content } = this.notification;
    if (this.isClosed) return;
    if (notification.identifier === this.identifier) {
      // Another category has other actions and another extension.
      if (category !== content.categoryIdentifier) return this.close();
      this.notification = notification;
      this.#tell();
    } else if (thread === undefined || thread !== content.threadIdentifier || !this.#declaration?.categories.includes(category ?? "")) {
      return;
    }
    this.#handler?.didReceiveNotification(notification, this);
  }

  /** Whether the extension takes an action. @param {string} identifier @param {string} action */
  takes(identifier, action) {
    if (this.isClosed || !this.#declaration || identifier !== this.identifier) return false;
    const { takesDefaultAction = false, takesDismissAction = false } = this.#declaration;
    if (action === OPEN) return takesDefaultAction;
    return action !== DISMISS || takesDismissAction && this.#category?.options?.includes("customDismissAction") === true;
  }

  /** The person responds. @param {string} action @param {string} [userText] */
  respond(action, userText) {
    return this.#owner.respond(action, userText);
  }

  /** Gives the extension a response, and does what it answers. @param {string} action @param {string|undefined} userText @param {number} at */
  async answer(action, userText, at) {
    if (this.isBusy) throw new CarillonError("panelBusy", "the content extension still handles the last response");
    const options = judge(this.notificationActions, action, userText), { notification } = this;
    const isField = (/** @type {Action} */ each) => each.textInput !== undefined;
    const known = this.#category?.actions?.find(({ identifier }) => identifier === action);
    const offered = this.notificationActions.find(({ identifier }) => identifier === action);
    const dynamic = offered && (!known || isField(known) !== isField(offered)) || undefined;
    const milliseconds = this.#declaration?.answerMilliseconds ?? 30_000;
    this.isBusy = true;
    this.#tell();
    try {
      const stored = await this.#owner.hold({ action, userText, at, dynamic }, options, Date.now() + milliseconds);
      this.#held = stored;
      const { response } = stored.frame, given = { response, identifier: this.identifier, action, userText, notification };
      /** @type {Ending} */
      let ending = "unanswered";
      try {
        if (!this.isClosed) {
          const work = this.#handler?.didReceiveResponse?.(given, this) ?? "dismissAndForwardAction";
          ending = await within(milliseconds, Promise.resolve(work));
        }
      } catch (error) {
        console.error(error);
      }
      // It has another end if the panel was closed meanwhile.
      if (this.#held === stored) await this.#end(ending);
      return { response, forwarded: !notification.isLocal && ending !== "doNotDismiss" && ending !== "dismiss" };
    } finally {
      this.isBusy = false;
      this.#tell();
    }
  }

  /** @param {Ending} ending */
  async #end(ending) {
    const held = this.#held;
    this.#held = undefined;
    if (held) await this.#owner.end(held, ending);
    if (ending !== "doNotDismiss") this.close();
  }

  /** Closes the panel; its notification stays. A response that the extension has not answered is sent as unanswered. */
  close() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#end("unanswered").catch((error) => console.error(error));
    this.#owner.tell(undefined);
  }

  /** Opens the application past the extension, in place of a response that it has. */
  async performNotificationDefaultAction() {
    const isOpening = this.#held?.frame.action === OPEN;
    await this.#end(isOpening ? "dismissAndForwardAction" : "doNotDismiss");
    this.close();
    if (!isOpening) await this.#owner.respond(OPEN);
  }

  /** The person taps a control, or hands over what was typed into it. @param {string} control @param {string} [text] */
  tap(control, text) {
    const found = this.controls.find(({ identifier }) => identifier === control);
    if (this.isClosed || !found) throw new CarillonError("noSuchControl", `the panel has no control '${control}'`);
    const isField = found.kind === "textField";
    if (!isField && text !== undefined) throw new CarillonError("wrongText", `the control '${control}' takes no text`);
    if (isField) this.update({ firstResponder: control });
    if (!isField || text !== undefined) this.#handler?.didTap?.(control, text, this);
  }

  /** The person taps the button that plays and pauses. */
  tapMedia() {
    if (this.isPlaying) this.#handler?.mediaPause?.(this);
    else this.#handler?.mediaPlay?.(this);
  }
}

// MARK: Encrypted content

/**
 * A service extension that opens `encrypted-content` (RFC 8188, aes128gcm) of a payload on this device, so that the cluster cannot read it.
 *
 * @param {Record<string, string>} keys by their ids, in base64url
 * @param {(request: any, content: MutableContent) => Promise<MutableContent|void>|MutableContent|void} [next] gets what was opened
 */
export function decrypting(keys, next) {
  /** @param {any} request @param {MutableContent} content */
  return async (request, content) => {
    const { "encrypted-content": sealed, ...beside } = content.payload;
    let opened = content;
    if (typeof sealed === "string") {
      const record = bytesOf(sealed), name = new TextDecoder().decode(record.subarray(21, 21 + record[20]));
      // Without the key it stays as it was published.
      if (Object.hasOwn(keys, name)) opened = mutableContent(await merge(beside, record, bytesOf(keys[name])).catch(() => beside));
    }
    return await next?.(request, opened) ?? opened;
  };
}

/** @param {any} beside @param {Uint8Array<ArrayBuffer>} record @param {Uint8Array<ArrayBuffer>} key */
async function merge(beside, record, key) {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(await openRecord(record, key));
  try {
    const patch = JSON.parse(text);
    if (isObject(patch)) return patched(beside, patch);
  } catch { /* It is a text. */ }
  return patched(beside, { aps: { alert: { body: text } } });
}

/** A value after a merge patch (RFC 7396). @param {any} value @param {any} patch @returns {any} */
function patched(value, patch) {
  if (!isObject(patch)) return patch;
  const members = new Map(Object.entries(isObject(value) ? value : {}));
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) members.delete(name);
    else members.set(name, patched(members.get(name), change));
  }
  return Object.fromEntries(members);
}

/** Opens content in the coding aes128gcm. @param {Uint8Array<ArrayBuffer>} content @param {Uint8Array<ArrayBuffer>} key */
async function openRecord(content, key) {
  const { subtle } = crypto, salt = content.subarray(0, 16), size = new DataView(content.buffer).getUint32(16);
  const secret = await subtle.importKey("raw", key, "HKDF", false, ["deriveBits", "deriveKey"]);
  const how = (/** @type {string} */ info) => ({ name: "HKDF", hash: "SHA-256", salt, info: utf8.encode(`Content-Encoding: ${info}\0`) });
  const gcm = await subtle.deriveKey(how("aes128gcm"), secret, { name: "AES-GCM", length: 128 }, false, ["decrypt"]);
  const base = new Uint8Array(await subtle.deriveBits(how("nonce"), secret, 96)), parts = [];
  const sealed = content.subarray(21 + content[20]);
  for (let number = 0, at = 0; at < sealed.length; number++, at += size) {
    const iv = base.slice(), view = new DataView(iv.buffer);
    view.setUint32(8, view.getUint32(8) ^ number);
    const text = new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv }, gcm, sealed.subarray(at, at + size)));
    const end = text.findLastIndex((byte) => byte !== 0), isLast = at + size >= sealed.length;
    if (text[end] !== (isLast ? 2 : 1)) throw new Error("the content was cut");
    parts.push(text.subarray(0, end));
  }
  return await new Blob(parts).arrayBuffer();
}

/** The bytes of base64 with either alphabet. @param {string} text */
function bytesOf(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}
