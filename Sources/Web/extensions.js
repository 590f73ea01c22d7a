// @ts-check
/**
 * What changes notifications on the device: content extensions, which draw in panels, and service extensions for encrypted content.
 *
 * @module
 */

import { CarillonError, contentOf, DISMISS, isObject, isPlain, judge, OPEN, utf8, within } from "./rules.js";

/** @import { Action, Category, Ending, Notification, Stored } from "./rules.js" */

// MARK: Panels

/** So long a content extension has a response. */
const answerMilliseconds = 30_000;

/**
 * Draws expanded notifications, and takes what the person does in them.
 *
 * @typedef {object} Handler
 * @property {(notification: Notification, panel: Panel) => void} didReceiveNotification the expanded one, then newer ones of its thread
 * @property {(response: any, panel: Panel) => any} [didReceiveResponse] answers an `Ending`; without it all is forwarded
 */
/**
 * @typedef {object} ContentExtension
 * @property {string[]} categories
 * @property {() => Handler} make called for each panel
 * @property {boolean} [hidesDefaultContent]
 * @property {boolean} [takesDefaultAction]
 * @property {boolean} [takesDismissAction]
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

  /**
   * @param {Notification} notification
   * @param {Category|undefined} category
   * @param {ContentExtension|undefined} declaration
   * @param {PanelOwner} owner
   */
  constructor(notification, category, declaration, owner) {
    [this.#owner, this.#declaration, this.#category] = [owner, declaration, category];
    this.notification = notification;
    /** @type {Action[]} the actions below it */
    this.notificationActions = category?.actions ?? [];
    this.showsDefaultContent = !declaration?.hidesDefaultContent;
    this.#handler = declaration?.make();
    this.#handler?.didReceiveNotification(notification, this);
  }

  get identifier() {
    return this.notification.identifier;
  }

  /** Changes what is drawn. @param {Record<string, any>} changes members of the panel */
  update(changes) {
    if (this.isClosed) return;
    Object.assign(this, changes);
    this.notificationActions = this.notificationActions.filter(({ identifier }) =>
      isPlain(identifier) && identifier !== OPEN && identifier !== DISMISS
    ).slice(0, 10);
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

  /** Follows the expanded notification, as the list has it now, and takes a newer one of its thread. @param {Notification} notification */
  received(notification) {
    const { categoryIdentifier: category, threadIdentifier: thread } = notification.content, { content, id, date } = this.notification;
    if (this.isClosed || notification.id === id && notification.date === date) return;
    if (notification.identifier === this.identifier) {
      // Another category has other actions and another extension.
      if (category !== content.categoryIdentifier) return this.close();
      this.notification = notification;
      this.#tell();
    } else if (thread === undefined || thread !== content.threadIdentifier || !this.#declaration?.categories.includes(category ?? "")) {
      return;
    }
    try {
      this.#handler?.didReceiveNotification(notification, this);
    } catch (error) {
      // The device goes on without what the extension would draw.
      console.error(error);
    }
  }

  /** Whether the extension takes an action. Throws while it has another response. @param {string} identifier @param {string} action */
  takes(identifier, action) {
    if (this.isClosed || !this.#declaration || identifier !== this.identifier) return false;
    if (this.isBusy) throw new CarillonError("panelBusy", "the content extension still handles the last response");
    const { takesDefaultAction = false, takesDismissAction = false } = this.#declaration;
    if (action === OPEN) return takesDefaultAction;
    return action !== DISMISS || takesDismissAction && this.#category?.options?.includes("customDismissAction") === true;
  }

  /** The person responds. @param {string} action @param {string} [userText] */
  respond(action, userText) {
    return this.#owner.respond(action, userText);
  }

  /**
   * Gives the extension a response, and does what it answers.
   *
   * @param {string} action
   * @param {string|undefined} userText
   * @param {number} at
   */
  async answer(action, userText, at) {
    const options = judge(this.notificationActions, action, userText), { notification } = this;
    const isField = (/** @type {Action} */ each) => each.textInput !== undefined;
    const known = this.#category?.actions?.find(({ identifier }) => identifier === action);
    const offered = this.notificationActions.find(({ identifier }) => identifier === action);
    const dynamic = offered && (!known || isField(known) !== isField(offered)) || undefined;
    this.isBusy = true;
    this.#tell();
    try {
      const stored = await this.#owner.hold({ action, userText, at, dynamic }, options, Date.now() + answerMilliseconds);
      this.#held = stored;
      const { response } = stored.frame, given = { response, identifier: this.identifier, action, userText, notification };
      /** @type {Ending} */
      let ending = "unanswered";
      try {
        if (!this.isClosed) {
          const work = this.#handler?.didReceiveResponse?.(given, this) ?? "dismissAndForwardAction";
          ending = await within(answerMilliseconds, Promise.resolve(work)) ?? "dismissAndForwardAction";
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
}

// MARK: Encrypted content

/**
 * @typedef {{payload: any, title: string, subtitle: string, body: string, badge?: number, sound?: any, threadIdentifier?: string,
 *   categoryIdentifier?: string, userInfo: any}} MutableContent
 */

/** What a service extension changes. @param {any} received @returns {MutableContent} */
export function mutableContent(received) {
  const payload = structuredClone(received),
    { title, subtitle, body, badge, threadIdentifier, categoryIdentifier, userInfo } = contentOf(payload);
  return { payload, title, subtitle, body, badge, sound: payload.aps?.sound, threadIdentifier, categoryIdentifier, userInfo };
}

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
