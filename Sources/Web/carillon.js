// @ts-check
/**
 * A device of Carillon in a page, as safe as the library in Swift.
 *
 * `Device.open` keeps a page connected. What comes is stored durably, then shown, then acknowledged. A response is stored with its change
 * of the list before it is sent. What decides is in `rules.js`.
 *
 * @module
 */

import { mutableContent, Panel } from "./extensions.js";
import * as rules from "./rules.js";
import { CarillonError, DISMISS, OPEN } from "./rules.js";

export { decrypting, Panel } from "./extensions.js";
export { CarillonError, DISMISS, OPEN } from "./rules.js";

/** @import { PanelOwner } from "./extensions.js" */
/** @import { Acknowledgement, Change, Listed, Plan, Showing, State, Stored } from "./rules.js" */
/** @typedef {import("./rules.js").PresentationOption} PresentationOption */
/** @typedef {import("./rules.js").Action} Action */
/** @typedef {import("./rules.js").Category} Category */
/** @typedef {import("./rules.js").Authorization} Authorization */
/** @typedef {import("./rules.js").QuietHours} QuietHours */
/** @typedef {import("./rules.js").Attachment} Attachment */
/** @typedef {import("./rules.js").Content} Content */
/** @typedef {import("./rules.js").Notification} Notification */
/** @typedef {import("./extensions.js").MutableContent} MutableContent */
/** @typedef {import("./extensions.js").ContentExtension} ContentExtension */
/** @typedef {import("./extensions.js").Handler} Handler */

// MARK: The database

/** The result of a request of IndexedDB. @template Result @param {IDBRequest<Result>} request @returns {Promise<Result>} */
const resultOf = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

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
 * What a device keeps over its end. Each change is one strict transaction: it is on the disk when `change` resolves. Tabs share the
 * database, and a generation tells each whether what it has in memory is the newest. Ids and revisions are read as they are needed.
 */
class Memory {
  /** @type {State} as this tab has read it last */
  state = rules.emptyState();
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
      for (const map of rules.maps) {
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
    const state = await this.#read(this.#database.transaction(["facts", ...rules.maps]));
    if (state.facts.generation <= this.state.facts.generation) return false;
    this.state = state;
    return true;
  }

  /** @param {IDBTransaction} transaction @returns {Promise<State>} */
  async #read(transaction) {
    const facts = await resultOf(transaction.objectStore("facts").get("facts")) ?? { ...rules.emptyState().facts, generation: 0 };
    const former = this.state;
    if (facts.generation === former.facts.generation) return former;
    const state = rules.emptyState();
    state.facts = facts;
    await Promise.all(
      rules.maps.slice(2).map(async (name) => {
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
      transaction = this.#database.transaction(["facts", ...rules.maps], "readwrite", { durability: "strict" });
      const { complete, done } = this.#completion(transaction);
      const draft = rules.draftOf(await this.#read(transaction));
      Object.assign(draft.facts, this.program);
      draft.ids = await this.#rows(transaction, "ids", frames.map(({ id }) => id));
      draft.revisions = await this.#rows(
        transaction,
        "revisions",
        frames.flatMap(({ identifier, identifiers }) => [identifier].concat(identifiers ?? [])),
      );
      const before = rules.draftOf(draft), result = body(draft);
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
    const store = transaction.objectStore(name), names = [...new Set(keys)].filter((key) => typeof key === "string");
    const values = await Promise.all(names.map((key) => resultOf(store.get(key))));
    const rows = /** @type {[string, any][]} */ (names.map((key, index) => [key, values[index]]));
    return new Map(rows.filter(([, value]) => value !== undefined));
  }

  /** Writes what differs; answers whether anything does. @param {IDBTransaction} transaction @param {State} before @param {State} draft */
  #write(transaction, before, draft) {
    const { facts } = draft, names = new Set([...Object.keys(facts), ...Object.keys(before.facts)]);
    let isChanged = [...names].some((name) => facts[name] !== before.facts[name]);
    for (const name of rules.maps) {
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

/**
 * @typedef {{state: "connecting"|"connected"|"waiting"|"stopped"|"storageFull"|"lost", words: string, until?: number, code?: number,
 *   isLeader: boolean}} Connection
 */
/**
 * @typedef {object} Configuration
 * @property {string} url of the cluster: wss://push.example.com/v1/device
 * @property {string} application the apns-topic of its requests
 * @property {string} [user] the signed-in person; another one than before forgets the list, the badge and what is pending
 * @property {boolean} [signsOut] nobody is signed in: the device only tells the cluster of a sign-out that it has not heard of, and then it
 *   is stopped with the code 4013. Without it, a start takes such a sign-out back
 * @property {(token: string) => string|undefined|Promise<string|undefined>} [credential] asked before each hello
 * @property {string} [platform] "web" unless given
 * @property {string} [database] its name; `carillon/APPLICATION` unless given. Each is a device of its own
 * @property {string} [locale]
 * @property {string} [timeZone]
 * @property {Category[]} [categories] replace those of an earlier start
 * @property {Authorization} [authorization] holds until the person has decided; `notDetermined` unless given
 * @property {number} [deliveredLimit] so many notifications are in the list, 500 unless given
 * @property {(notification: Notification) => PresentationOption[]} [willPresent] chooses among the allowed ways while the screen is
 *   unlocked
 * @property {(request: any, content: MutableContent) => Promise<MutableContent|void>} [serviceExtension] changes a mutable notification
 *   before it is shown
 * @property {ContentExtension[]} [contentExtensions]
 * @property {boolean} [visible] whether the tab is; without it the document says so
 */

/** The sentences of the close codes after which a device does not reconnect by itself. @type {Record<number, string>} */
const stops = {
  4002: "The server does not know what to do with this page: tell the people who run it.",
  4003: "Your access has ended: sign in again.",
  4004: "You are connected in another window.",
  4013: "Nobody is signed in.",
  4019: "This page was used with a test server before, or this server is one: tell the people who run it.",
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
  /** The lock of the leader that this tab has got last. @type {any} */
  #lock;
  /** Gives up the lock of the leader. @type {((_: any) => void)|undefined} */
  #release;
  #isQueued = false;
  /** Gives up the shared lock of visible tabs. @type {((_: any) => void)|undefined} */
  #hide;
  #leaderAnswered = false;
  /** The connection to the cluster. @type {Session|undefined} */
  #session;
  /**
   * What the cluster's time is ahead of the browser's clocks, and how long its answer took.
   *
   * @type {{ticks: number, wall: number, took: number}|undefined}
   */
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
    const chooses = (/** @type {Notification} */ notification) => {
      try {
        const ways = willPresent?.(notification) ?? [];
        if (Array.isArray(ways)) return ways;
        throw new TypeError("willPresent returns a list of ways");
      } catch (error) {
        console.error(error);
        return notification.presentation;
      }
    };
    memory.program = { willPresent: willPresent && chooses, extends: serviceExtension !== undefined, deliveredLimit, platform };
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }) => this.#heard(data);
  }

  /** Opens the device of this origin, and connects. Rejects if nothing can be stored durably. @param {Configuration} configuration */
  static async open(configuration) {
    const { application, user, signsOut, categories, authorization = { status: "notDetermined" } } = configuration;
    const fault = (categories && rules.categoriesFault(categories)) ?? rules.authorizationFault(authorization);
    if (fault) throw new CarillonError("badRequest", fault);
    const name = configuration.database ?? `carillon/${application}`;
    const memory = await Memory.open(name, () => device.#lost());
    const device = new Device(memory, configuration, name);
    const opened = device.#change(({ facts, ...draft }) => {
      facts.token ??= rules.newID(32);
      if (signsOut) return facts.isSignedOut ||= !draft.changes.has("unregister");
      if (facts.user !== user && facts.generation > 0) rules.forgetPerson({ facts, ...draft });
      if (facts.user !== user || facts.isSignedOut) facts.start = (facts.start ?? 0) + 1;
      [facts.user, facts.isSignedOut] = [user, false];
      draft.changes.delete("unregister");
      if (!facts.isDecided) facts.authorization = authorization;
      if (categories) facts.categories = categories;
    });
    await opened.catch((error) => device.close().finally(() => Promise.reject(error)));
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
    this.#release?.(undefined);
    this.#hide?.(undefined);
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
    this.#hide?.(undefined);
    if (!isVisible || this.#isClosed) return;
    // It may become hidden before the lock is granted: then the lock is given up at once.
    const { promise, resolve } = Promise.withResolvers();
    this.#hide = resolve;
    navigator.locks?.request(`${this.#name} visible`, { mode: "shared" }, () => promise).catch(() => {});
    this.#claim();
    if (!navigator.locks && this.connection.code === 4004) this.reconnect();
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
    const lock = {};
    const hold = () => {
      granted();
      if (this.#isClosed) return;
      this.#lock = lock;
      this.#lead();
      return new Promise((resolve) => this.#release = resolve);
    };
    try {
      await navigator.locks.request(this.#name, options, hold);
    } catch {
      // Another tab has taken it, or this one was closed.
    }
    // This tab may have taken it from itself, when the first request was granted late.
    if (this.#isClosed || this.#isLeader && this.#lock !== lock) return;
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

  /**
   * Changes the state durably, and tells the other tabs.
   *
   * @template Result
   * @param {(draft: State) => Result} body
   * @param {any[]} frames
   * @returns {Promise<Result>}
   */
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
      // The notification may have left the list, or its preview the screen; or another tab has shown a newer one.
      const { panel } = this, expanded = panel && this.#memory.state.list.get(panel.identifier);
      if (!expanded || this.locked && this.preview(panel.notification).isHidden) panel?.close();
      else panel.received(this.#view(expanded));
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
        if (rules.isOver(listed.frame, this.#time().now)) continue;
        const notification = this.#view(listed);
        if (wakes && !listed.isLocal) this.#dispatch("background", { notification });
        if (options.length > 0) this.#dispatch("present", { notification, options, isUpdate, state });
        // The expanded one itself comes from the list.
        if (notification.identifier !== this.panel?.identifier) this.panel?.received(notification);
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

  /**
   * The cluster's time: the latest that is possible, and by how much it may be ahead. After a sleep or a set clock the clocks of the
   * browser differ.
   */
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
      // Another tab may have changed what the hello says.
      await this.#memory.refresh();
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
    const frame = rules.parse(`${text}`), { asked } = session;
    if (frame?.type === "welcome" && asked && session.welcomed === undefined) {
      const { now, pingSeconds } = frame;
      session.welcomed = performance.now();
      session.pingSeconds = Math.max(pingSeconds, 1);
      this.#clock = { ticks: now - asked.ticks, wall: now - asked.wall, took: session.welcomed - asked.ticks };
    }
    this.#expectFrame(2 * (session.pingSeconds ?? 15));
    if (!frame || session.welcomed === undefined) return;
    if (frame.type === "goaway") this.#plan = rules.reconnect(this.#plan, { goaway: frame.reconnectAfterMs }, 0).plan;
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
        for (const { type, response, request } of frames) {
          if (type !== "accepted" && type !== "refused") continue;
          session.responses.delete(response);
          for (const [kind, sent] of session.changes) if (request === sent) session.changes.delete(kind);
        }
        for (const [type, detail] of answers) this.#announce(type, detail);
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
        if (response || kind) answers.push([type, response ? { response, identifier, ...why } : { request, kind, ...why }]);
      }
      // What comes for a person who signs out is neither shown nor acknowledged.
      if (type === "notify" && draft.changes.has("unregister")) continue;
      const taken = rules.take(draft, frame, now, uncertain);
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
    const { plan, wait: planned } = rules.reconnect(this.#plan, { close: code, stood, helloUnanswered }, Math.random());
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
      rules.forgetPerson(draft);
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
      const isAsked = session.links.has(hash);
      if (url || refused) session.links.delete(hash);
      if (url || refused || isAsked) continue;
      session.links.add(hash);
      this.#post(session, { type: "link", hash, request: hash });
    }
  }

  /** Does every five seconds what no event asks for. */
  #tick() {
    if (!this.#isLeader || this.#isClosed) return;
    this.#send();
    // A visible tab may have gone before it has shown something.
    this.#claim();
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
    return [...pending.values()].map((listed) => ({ ...this.#view(listed), due: rules.dueOf(listed) }));
  }

  /** @param {Listed} listed @returns {Notification} the same one for the same notification */
  #view(listed) {
    const view = this.#views.get(listed) ?? rules.notificationOf(listed);
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
    if (!rules.isInteger(count) || count >= 2 ** 31) {
      throw new CarillonError("badRequest", "badge: A badge is a number from 0 to 2147483647.");
    }
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
      const category = rules.categoryOf(draft.facts, rules.notificationOf(listed));
      if (action === DISMISS && !category?.options?.includes("customDismissAction")) {
        draft.list.delete(identifier);
        return;
      }
      if (action !== OPEN && action !== DISMISS && !category) {
        throw new CarillonError("noCategory", "the notification's category is not registered, so it offers no actions: open it");
      }
      const options = rules.judge(category?.actions ?? [], action, userText);
      return rules.respond(draft, listed, { action, userText, at: this.#time().now }, options);
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
      return isLocked ? [] : rules.release(draft, ({ stage }) => stage === "locked");
    });
    for (const stored of released) this.#give(stored);
  }

  /** Expands a notification: opens its panel in place of another one of this tab. @param {string} identifier @returns {Promise<Panel>} */
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
          return rules.respond(draft, present, what, options, until);
        }),
      end: async (stored, ending) => {
        const ended = await this.#change((draft) => rules.endHeld(draft, stored.frame.response, ending));
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
    const fault = rules.categoriesFault(categories);
    if (fault) throw new CarillonError("badRequest", fault);
    await this.#change((draft) => {
      draft.facts.categories = categories;
      rules.register(draft, "categories", categories);
    });
  }

  /** The category with a notification's actions. @param {Notification} notification */
  category(notification) {
    return rules.categoryOf(this.#memory.state.facts, notification);
  }

  // MARK: The person's settings

  /** @returns {Authorization} */
  get settings() {
    return this.#memory.state.facts.authorization;
  }

  /** @param {Authorization} authorization all of it */
  async setAuthorization(authorization) {
    const fault = rules.authorizationFault(authorization);
    if (fault) throw new CarillonError("badRequest", fault);
    await this.#change((draft) => rules.authorize(draft, authorization));
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
        const switches = Object.fromEntries(rules.askedOptions.map((option) => [option, options.includes(option)]));
        switches.lockScreen = switches.notificationCenter = switches.alert;
        const status = isProvisional ? "provisional" : isGranted ? "authorized" : "denied";
        rules.authorize(draft, { ...authorization, ...switches, status });
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
      : hours && rules.quietFault(hours);
    if (fault) throw new CarillonError("badRequest", fault);
    await this.#change((draft) => {
      draft.facts.quiet = hours;
      rules.register(draft, "quiet", hours);
    });
  }

  /** Signs the person out: the list, the badge and what is pending are forgotten, and the cluster is told. */
  async unregister() {
    this.panel?.close();
    await this.#change((draft) => {
      rules.forgetPerson(draft);
      rules.register(draft, "unregister");
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
   * @param {{identifier: string, content: any, trigger?: {timeInterval: number, repeats?: boolean}}} request without a trigger it is shown
   *   at once
   */
  async add({ identifier, content, trigger }) {
    const fault = rules.localFault(identifier, content, trigger);
    if (fault) throw new CarillonError("badRequest", fault);
    const waits = trigger && { type: "timeInterval", ...trigger };
    const frame = {
      type: "notify",
      delivery: 0,
      id: rules.newID(),
      identifier,
      revision: "local",
      trigger: waits,
      payload: rules.payloadOf(content),
    };
    await this.#change((draft) => {
      const time = Date.now(), listed = { frame, takenAt: time, isLocal: true, presentation: [], order: 0 };
      if (trigger) return rules.hold(draft, listed, time);
      draft.pending.delete(identifier);
      rules.place(draft, listed, time);
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
      const isPast = rules.isOver(waiting.frame, now), time = waiting.isLocal ? Date.now() : now;
      if (isPast || !waiting.frame.trigger?.repeats) draft.pending.delete(identifier);
      if (!isPast) rules.place(draft, { ...waiting, takenAt: time }, time);
    });
  }

  /** Sets the timer of what is due next. */
  #schedule() {
    const { pending, responses } = this.#memory.state;
    const held = [...responses.values()].filter(({ stage }) => stage === "extension").map(({ until }) => until);
    const due = Math.min(...[...pending.values()].map((listed) => rules.dueOf(listed) ?? Infinity), ...held);
    if (due === Infinity) return clearTimeout(this.#timers.get("due"));
    // The clock may be set while the timer runs.
    this.#after("due", Math.min(Math.max(due - Date.now(), 0), 60_000), () => this.#takeTime());
  }

  async #takeTime() {
    try {
      const released = await this.#change((draft) => {
        rules.takeTime(draft, Date.now());
        return rules.release(draft, ({ stage, until }) => stage === "extension" && until <= Date.now());
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
      const result = await rules.within(30_000, Promise.resolve(work).then((result) => result ?? content));
      changed = rules.payloadOf(result, result.payload);
    } catch (error) {
      this.#dispatch("problem", new CarillonError("extension", `'${identifier}' is shown as it came: ${error}`));
    }
    await this.#change((draft) => {
      const { now } = this.#time();
      if (draft.extending.get(identifier)?.order !== waiting.order) return;
      draft.extending.delete(identifier);
      if (!rules.isOver(waiting.frame, now)) rules.place(draft, { ...waiting, payload: changed }, now, true);
    });
  }
}
