import { answers } from "./samples.js";
import { appName, byId, clamp, icon, keyed, make } from "./dom.js";
import { marks } from "./rows.js";

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
  /** @type {any} */
  root;
  /** @type {{response?: string, text: string, color: string}|undefined} what was answered, until the cluster has it */
  sent;

  /**
   * @param {Shown} shown
   * @param {() => void} closed
   */
  constructor(shown, closed) {
    [this.shown, this.closed] = [shown, closed];
  }

  /** @param {Panel} panel */
  show(panel) {
    [this.panel, this.sent, this.typed] = [panel, undefined, undefined];
    this.root = make("article.panel", { "aria-labelledby": "panel-title" });
    this.media = make("div");
    this.content = make("div.content");
    this.answer = make("p.answer", { role: "status", hidden: true });
    this.buttons = make("div.buttons");
    this.reply = make("form.reply", { hidden: true });
    this.root.append(this.media, this.content, make("footer", {}, this.answer, this.buttons, this.reply));
    this.top = make(
      "div.top",
      {},
      make("button.icon", { "aria-label": "Back to the list", onclick: this.closed }, icon("back")),
      make(
        "div.buttons",
        {},
        make("button.plain", { onclick: () => this.act(() => this.shown.device.open(panel.identifier), "Opened.") }, "Open"),
        make("button.plain", { onclick: () => this.shown.dismiss(panel.identifier) }, "Dismiss"),
      ),
    );
    byId("detail").replaceChildren(this.top, this.root);
    this.draw();
  }

  /** Draws what has changed; a player goes on, and what is being typed stays. */
  draw() {
    const { panel } = this;
    if (!panel || panel.isClosed) return;
    const { notification, canvas } = panel;
    if (notification !== this.notification) {
      this.notification = notification;
      const pictures = notification.attachments.filter(({ identifier }) =>
        panel.showsDefaultContent || panel.pictures.includes(identifier)
      );
      keyed(this.media, pictures, ({ identifier, hash }) => `${identifier} ${hash}`, (each) => this.#medium(each), () => {});
    }
    this.#drawStage(canvas);
    this.#drawContent(panel);
    keyed(this.buttons, panel.actions, ({ identifier }) => identifier, (action) => (
      make("button", { onclick: () => this.#take(action) })
    ), (button, { title, options, textInput }) => {
      button.textContent = clamp(title, 60) + (textInput ? " …" : "");
      button.classList.toggle("destructive", options?.includes("destructive") ?? false);
      button.disabled = this.sent !== undefined || panel.isBusy;
    });
  }

  /** @param {{square?: string, turn?: number}|undefined} canvas */
  #drawStage(canvas) {
    if (canvas?.square === undefined) return;
    if (!this.root.contains(this.stage ?? null)) {
      this.square = make("div.square", { role: "img" });
      this.stage = make("div.stage", {}, this.square);
      this.root.prepend(this.stage);
    }
    this.square.classList.toggle("green", canvas.square === "green");
    this.square.style.setProperty("--turn", `${canvas.turn}deg`);
    this.square.setAttribute("aria-label", `a ${canvas.square} square, turned by ${(canvas.turn ?? 0) % 360} degrees`);
  }

  /** @param {Panel} panel */
  #drawContent(panel) {
    const { content } = panel.notification, { userInfo: _, ...texts } = content;
    const drawn = JSON.stringify([texts, panel.title, panel.lines, panel.canvas?.facts]);
    if (drawn === this.drawn && this.content.firstChild) return;
    this.drawn = drawn;
    const mark = marks[/** @type {keyof typeof marks} */ (content.interruptionLevel)];
    const level = { critical: "critical", "time-sensitive": "sensitive" }[content.interruptionLevel] ?? "plain";
    const isDefault = panel.showsDefaultContent, facts = panel.canvas?.facts ?? [];
    const text = (/** @type {string} */ tag, /** @type {string|undefined} */ value, length = 500) =>
      value ? make(tag, { dir: "auto" }, clamp(value, length)) : undefined;
    this.content.replaceChildren(...[
      make(
        `p.eyebrow.${level}`,
        {},
        make("span", {}, appName(this.shown.application)),
        mark && make("span.mark", {}, mark),
        make("time", {}, new Date(panel.notification.date).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })),
      ),
      make("h2", { id: "panel-title", dir: "auto" }, clamp(panel.title || content.title || appName(this.shown.application))),
      isDefault && text("p.subtitle", content.subtitle),
      isDefault && text("p.body", content.body, 8000),
      ...panel.lines.map(({ text: line, color }) => text(color ? `p.answer.${color}` : "p.body", line, 2000)),
      facts.length > 0 && make(
        "dl",
        {},
        ...facts.flatMap((/** @type {[string, unknown]} */ [name, value]) => [
          make("dt", {}, name),
          make("dd", { dir: "auto" }, typeof value === "string" ? clamp(value) : "?"),
        ]),
      ),
    ].filter(Boolean));
  }

  /**
   * A picture, a player for what this browser plays, or a card that says what it is.
   * @param {Attachment} attachment
   */
  #medium({ identifier, type, size }) {
    const figure = make("figure.media"), [kind] = type.split("/");
    const card = () => {
      const words = `${clamp(type, 80)} · ${new Intl.NumberFormat().format(size)} bytes`;
      figure.classList.add("file");
      figure.replaceChildren(icon("file"), make("div", {}, make("h3", { dir: "auto" }, clamp(identifier, 80)), make("p", {}, words)));
    };
    const tag = { image: "img", audio: "audio", video: "video" }[kind];
    const medium = tag &&
      make(
        tag,
        tag === "img" ? { alt: clamp(identifier, 80) } : { controls: true, preload: "metadata", "aria-label": clamp(identifier, 80) },
      );
    if (!medium || (tag !== "img" && medium.canPlayType(type) === "")) {
      card();
      return figure;
    }
    figure.append(medium);
    let tries = 0;
    const load = () =>
      this.shown.device.attachmentURL(/** @type {Panel} */ (this.panel).notification, identifier)
        .then((url) => medium.src = url, card);
    // A link expires: a new one is asked for once.
    medium.onerror = () => ++tries > 1 ? card() : load();
    load();
    return figure;
  }

  /** @param {Action} action */
  #take({ identifier, title, textInput }) {
    const panel = /** @type {Panel} */ (this.panel);
    const [text, color] = answers[panel.notification.content.categoryIdentifier === "event-invite" ? identifier : ""] ??
      [`${title}.`, "green"];
    if (!textInput) return this.act(() => panel.respond(identifier), text, color);
    const input = make("input", {
      placeholder: clamp(textInput.placeholder, 80),
      "aria-label": clamp(title, 60),
      dir: "auto",
      maxLength: 1000,
    });
    this.reply.replaceChildren(input, make("button.filled", {}, clamp(textInput.buttonTitle ?? "Send", 60)));
    this.reply.hidden = false;
    this.reply.onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.reply.hidden = true;
      this.act(() => panel.respond(identifier, input.value), `You: ${clamp(input.value)}`, "green");
    };
    this.reply.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.reply.hidden = true;
      this.buttons.firstElementChild?.focus();
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
    try {
      const { response, forwarded } = await respond();
      if (!forwarded && !panel.isClosed) return; // the extension keeps it
      this.sent = { response, text, color };
      this.#say("Sending …", "");
      if (panel.notification.isLocal || this.early === response) this.accepted(response);
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message, "red");
    }
  }

  /** @param {string} text @param {string} color */
  #say(text, color) {
    this.answer.className = `answer ${color}`;
    this.answer.textContent = text;
    this.answer.hidden = false;
    for (const button of this.root.querySelectorAll("footer button")) button.disabled = this.sent !== undefined;
  }

  /** Whether it shows an answer that the cluster does not have yet, or that the person is reading. */
  get isAnswering() {
    return this.sent !== undefined;
  }

  /** @param {string} response that the cluster has accepted */
  accepted(response) {
    this.early = response;
    if (!this.sent || this.sent.response !== response) return;
    const { text, color } = this.sent, { root } = this;
    this.#say(text, color);
    setTimeout(() => root.isConnected && this.closed(), readMilliseconds);
  }

  /** @param {{response?: string, field?: string, rule?: string, reason: string}} refusal */
  refused({ response, field, rule, reason }) {
    if (response && this.sent?.response === response) this.#say(`Refused: ${[field, rule].filter(Boolean).join(" ") || reason}`, "red");
  }
}
