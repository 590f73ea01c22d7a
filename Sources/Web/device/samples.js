/** @typedef {import("../carillon.js").Category} Category */
/** @typedef {import("../carillon.js").ContentExtension} ContentExtension */

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

/** @type {ContentExtension} draws an invitation with its photo, date and place */
const invitation = {
  categories: ["event-invite"],
  hidesDefaultContent: true,
  overridesTitle: true,
  initialContentSizeRatio: 0.75,
  make: () => ({
    didReceiveNotification({ content, attachments }, context) {
      const { date, place } = content.userInfo;
      context.title = content.title;
      context.pictures = attachments.map(({ identifier }) => identifier);
      context.lines = [{ text: content.body }];
      context.canvas = { facts: [["When", date], ["Where", place]] };
    },
  }),
};

/** @type {ContentExtension} draws a square, and turns it; upright or upside down there is nothing to reset */
const rotation = {
  categories: ["red", "green"],
  make: () => {
    let color = "", taps = 0;
    /** @param {any} context */
    const draw = (context) => {
      context.canvas = { square: color, turn: taps * 20 };
      context.lines = [{ text: `${color}, turned by ${taps * 20 % 360}°` }];
    };
    return {
      didReceiveNotification({ content }, context) {
        color = content.categoryIdentifier === "green" ? "green" : "red";
        draw(context);
      },
      didReceiveResponse({ action }, context) {
        taps = action === rotate.identifier ? taps + 1 : 0;
        const others = context.notificationActions.filter(({ identifier }) => identifier !== reset.identifier);
        context.notificationActions = taps % 9 === 0 ? others : [...others, reset];
        draw(context);
        return "doNotDismiss";
      },
    };
  },
};

export const contentExtensions = [invitation, rotation];
