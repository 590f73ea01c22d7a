/** @typedef {import("../carillon.js").Category} Category */

const rotate = { identifier: "rotate", title: "Rotate 20°" };
const reset = { identifier: "reset", title: "Reset rotation" };

/** @type {Category[]} what the person can do with the notifications of the samples */
export const categories = [
  {
    identifier: "event-invite",
    options: ["customDismissAction"],
    actions: [
      { identifier: "accept", title: "Accept" },
      { identifier: "decline", title: "Decline", options: ["destructive"] },
      { identifier: "maybe", title: "Maybe" },
      {
        identifier: "comment",
        title: "Comment",
        textInput: { buttonTitle: "Send and dismiss", placeholder: "What do you want to say?" },
      },
    ],
  },
  { identifier: "red", options: ["customDismissAction"], actions: [rotate] },
  { identifier: "green", options: ["customDismissAction"], actions: [rotate] },
  {
    identifier: "reply",
    options: ["customDismissAction"],
    actions: [
      { identifier: "reply", title: "Reply", textInput: { buttonTitle: "Send", placeholder: "Your answer" } },
      { identifier: "like", title: "Like" },
    ],
  },
];

/** @type {Record<string, [string, string]>} what an invitation says of its answer, and in which color, once the cluster has it */
export const answers = {
  accept: ["Going!", "green"],
  decline: ["Not going.", "red"],
  maybe: ["Maybe.", "yellow"],
};

/** Draws an invitation with its photo, date and place. */
const invitation = {
  categories: ["event-invite"],
  hidesDefaultContent: true,
  make: () => ({
    didReceiveNotification(/** @type {any} */ { content, attachments }, /** @type {any} */ panel) {
      panel.update({
        title: content.title,
        pictures: attachments.map((/** @type {{identifier: string}} */ { identifier }) => identifier),
        lines: [{ text: content.body }],
        canvas: { facts: [["When", content.userInfo.date], ["Where", content.userInfo.place]] },
      });
    },
  }),
};

/** Draws a square, and turns it. Upright or upside down there is nothing to reset. */
const rotation = {
  categories: ["red", "green"],
  make: () => {
    let color = "", taps = 0;
    const drawn = () => ({ canvas: { square: color, turn: taps * 20 }, lines: [{ text: `${color}, turned by ${taps * 20 % 360}°` }] });
    return {
      didReceiveNotification(/** @type {any} */ { content }, /** @type {any} */ panel) {
        color = content.categoryIdentifier;
        panel.update(drawn());
      },
      didReceiveResponse(/** @type {any} */ { action }, /** @type {any} */ panel) {
        taps = action === rotate.identifier ? taps + 1 : 0;
        panel.update({ ...drawn(), notificationActions: taps % 9 === 0 ? [rotate] : [rotate, reset] });
        return "doNotDismiss";
      },
    };
  },
};

export const contentExtensions = [invitation, rotation];
