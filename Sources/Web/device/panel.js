import { answers } from "./samples.js";
import { appName, byId, clamp, icon, keyed, make } from "./dom.js";
import { levelOf, levels } from "./rows.js";

/** @typedef {import("../carillon.js").Notification} Notification */
/** @typedef {import("../carillon.js").Attachment} Attachment */
/** @typedef {import("../carillon.js").Panel} Panel */
/** @typedef {import("../carillon.js").Action} Action */
/** @typedef {import("./rows.js").Shown} Shown */

const readMilliseconds = 1500;

/** The notification in full: its media, its text or what an extension draws, and its actions. */
export class PanelView {
  /** @type {Panel|undefined} */
  panel;
  /** @type {{response: string, text: string, color: string}|undefined} what was answered, while the cluster or the reader does not have it */
  sent;
  /** @type {any} */
  root;
  /** @type {any} */
  drawn;

  /** @param {Shown} shown @param {() => void} closed */
  constructor(shown, closed) {
    this.shown = shown;
    this.closed = closed;
  }

  /** @param {Panel} panel */
  show(panel) {
    [this.panel, this.sent, this.drawn] = [panel, undefined, {}];
    this.media = make("div");
    this.content = make("div.content");
    this.answer = make("p.answer", { role: "status" });
    this.buttons = make("div.buttons");
    this.reply = make("form.reply", { hidden: true });
    const { identifier } = panel, open = () => this.act(() => this.shown.device.open(identifier), "Opened.");
    this.always = make(
      "div.buttons",
      {},
      make("button.plain", { onclick: open }, "Open"),
      make("button.plain", { onclick: () => this.sent || this.shown.dismiss(identifier) }, "Dismiss"),
    );
    const back = make("button.icon.back", { "aria-label": "Back to the list", onclick: this.closed }, icon("back"));
    const footer = make("footer", {}, this.answer, this.reply, this.buttons, this.always);
    this.root = make("article.panel", { "aria-labelledby": "panel-title", tabIndex: -1 }, back, this.media, this.content, footer);
    byId("detail").replaceChildren(this.root);
    this.draw();
  }

  /** Draws what has changed; a player goes on, and what is being typed stays. */
  draw() {
    const { panel } = this;
    if (!panel || panel.isClosed) return;
    const { notification, canvas } = panel, { userInfo: _, ...texts } = notification.content;
    const pictures = notification.attachments.filter((/** @type {Attachment} */ { identifier }) =>
      panel.showsDefaultContent || panel.pictures.includes(identifier)
    );
    /** @type {any[]} */
    const figures = canvas?.square ? [{ identifier: "square" }, ...pictures] : pictures;
    keyed(
      this.media,
      figures,
      ({ identifier, hash }) => `${identifier} ${hash}`,
      (each) => each.type ? this.#medium(each) : make("figure.stage", {}, make("div", { role: "img" })),
      (figure, { type }) => type || this.#drawSquare(figure.firstChild, canvas),
    );
    const drawn = JSON.stringify([texts, panel.title, panel.lines, canvas?.facts]);
    if (drawn !== this.drawn.content) this.#drawContent(panel);
    this.drawn.content = drawn;
    const hadFocus = this.buttons.contains(document.activeElement), isOff = String(this.sent !== undefined || panel.isBusy);
    keyed(
      this.buttons,
      panel.notificationActions,
      ({ identifier }) => identifier,
      (action) => make("button", { onclick: () => this.#take(action) }),
      (button, { title, options, textInput }) => {
        button.textContent = clamp(title, 60) + (textInput ? " …" : "");
        button.classList.toggle("red", options?.includes("destructive") ?? false);
        button.ariaDisabled = isOff;
      },
    );
    if (hadFocus && !this.buttons.contains(document.activeElement)) this.buttons.firstElementChild?.focus();
  }

  /** @param {any} square @param {{square: string, turn: number}} canvas */
  #drawSquare(square, { square: color, turn }) {
    square.classList.toggle("green", color === "green");
    square.style.setProperty("--turn", `${turn}deg`);
    square.setAttribute("aria-label", `a ${color} square, turned by ${turn % 360} degrees`);
  }

  /** @param {Panel} panel */
  #drawContent({ notification, title, lines, showsDefaultContent, canvas }) {
    const { content, date } = notification,
      [color, mark] = levels[levelOf(notification)] ?? ["", ""],
      name = appName(this.shown.application);
    const text = (/** @type {string} */ tag, /** @type {string|undefined} */ value, length = 500) =>
      value && make(tag, { dir: "auto" }, clamp(value, length));
    this.content.replaceChildren(...[
      make(
        "p.eyebrow",
        {},
        make("span", {}, name, mark && " · ", mark && make(`span.mark.${color}`, {}, mark)),
        make("time", {}, new Date(date).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })),
      ),
      make("h2", { id: "panel-title", dir: "auto" }, clamp(title || content.title || name)),
      showsDefaultContent && text("p.subtitle", content.subtitle),
      showsDefaultContent && text("p.body", content.body, 8000),
      ...lines.map((/** @type {{text: string, color?: string}} */ line) =>
        text(line.color ? `p.answer.${line.color}` : "p.body", line.text, 2000)
      ),
      canvas?.facts && make(
        "dl",
        {},
        ...canvas.facts.flatMap((/** @type {[string, unknown]} */ [name, value]) => [
          make("dt", {}, name),
          make("dd", { dir: "auto" }, typeof value === "string" ? clamp(value) : "?"),
        ]),
      ),
    ].filter(Boolean));
  }

  /** A picture, a player for what this browser plays, or a card that says what it is. @param {Attachment} attachment */
  #medium({ identifier, type, size }) {
    const name = clamp(identifier, 80), tag = { image: "img", audio: "audio", video: "video" }[type.split("/")[0]];
    const words = `${clamp(type, 80)} · ${new Intl.NumberFormat().format(size)} bytes`;
    const card = make("div.file", {}, icon("file"), make("div", {}, make("h2", { dir: "auto" }, name), make("p", {}, words)));
    const medium = tag && make(tag, tag === "img" ? { alt: name } : { controls: true, preload: "metadata", "aria-label": name });
    if (!medium || medium.canPlayType?.(type) === "") return make("figure", {}, card);
    let tries = 0;
    const fail = () => medium.replaceWith(card);
    const load = () =>
      this.shown.device.attachmentURL(/** @type {Panel} */ (this.panel).notification, identifier).then((url) => medium.src = url, fail);
    // A link expires: a new one is asked for once.
    medium.onerror = () => ++tries > 1 ? fail() : load();
    load();
    return make("figure", {}, medium);
  }

  /** @param {Action} action */
  #take({ identifier, title, textInput }) {
    const panel = /** @type {Panel} */ (this.panel);
    if (this.sent || panel.isBusy) return;
    const isInvitation = panel.notification.content.categoryIdentifier === "event-invite";
    const [text, color] = isInvitation && answers[identifier] || [`${clamp(title, 60)}.`, "green"];
    if (!textInput) return this.act(() => panel.respond(identifier), text, color);
    const words = { placeholder: clamp(textInput.placeholder, 80), "aria-label": clamp(title, 60) };
    const input = make("input", { ...words, dir: "auto", maxLength: 1000 });
    const reply = (/** @type {boolean} */ isShown) => {
      this.reply.hidden = !isShown;
      this.buttons.hidden = this.always.hidden = isShown;
    };
    const cancel = () => {
      reply(false);
      this.buttons.firstElementChild?.focus();
    };
    this.reply.replaceChildren(
      input,
      make("button.plain", { type: "button", onclick: cancel }, "Cancel"),
      make("button.filled", {}, clamp(textInput.buttonTitle ?? "Send", 60)),
    );
    reply(true);
    this.reply.onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      reply(false);
      this.act(() => panel.respond(identifier, input.value), `You: ${clamp(input.value)}`);
    };
    this.reply.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      cancel();
    };
    input.focus();
  }

  /**
   * Takes an action: "Sending …" until the cluster has accepted it, then what it means; then the panel closes.
   * @param {() => Promise<{response: string, forwarded: boolean}>} respond
   * @param {string} text
   * @param {string} [color]
   */
  async act(respond, text, color = "green") {
    const panel = /** @type {Panel} */ (this.panel);
    if (this.sent) return;
    // The answer of the cluster may come before `respond` returns.
    const sent = this.sent = { response: "", text, color };
    try {
      const { response, forwarded } = await respond();
      if (this.sent !== sent) return; // another panel is in its place
      sent.response = response;
      if (!forwarded && !panel.isClosed) return this.#kept(); // the extension keeps it
      this.#say("Sending …", "");
      const { early } = this.drawn;
      if (!forwarded || early?.response === response) this.settled(forwarded ? early : { response });
    } catch (error) {
      if (this.sent === sent) this.#kept();
      this.#say(/** @type {Error} */ (error).message, "red");
    }
  }

  #kept() {
    this.sent = undefined;
    this.draw();
  }

  /** @param {string} text @param {string} color */
  #say(text, color) {
    this.answer.className = `answer ${color}`;
    this.answer.textContent = text;
    for (const button of this.root.querySelectorAll("footer button")) button.ariaDisabled = String(this.sent !== undefined);
  }

  /**
   * Says what has become of an answer; returns whether it was given here.
   * @param {{response?: string, field?: string, rule?: string, reason?: string}} answer of the cluster, with a reason if it is a refusal
   */
  settled(answer) {
    const { sent, root } = this, { field, rule, reason } = answer;
    if (this.drawn && answer.response) this.drawn.early = answer;
    if (!sent || sent.response !== answer.response || !root.isConnected) return false;
    if (reason) {
      this.sent = undefined;
      this.#say(`Refused: ${[field, rule].filter(Boolean).join(" ") || reason}`, "red");
    } else {
      this.#say(sent.text, sent.color);
      setTimeout(() => root.isConnected && this.closed(), readMilliseconds);
    }
    return true;
  }
}
