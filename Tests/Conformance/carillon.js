// `carillon.js` without a page: its rules, in the form of README.md. A module in place of `rules.js` can be named behind `?rules=`.
const place = new URL(import.meta.url).searchParams.get("rules") ?? "../../Sources/Web/rules.js";
const { categoryOf, emptyState, notificationOf, parse, reconnect, take } = await import(place);

export { reconnect };

const names = ["rememberSeconds", "floor", "badge", "authorization", "quiet", "categories", "platform"];

function stateOf(json) {
  const state = emptyState(), { facts } = state;
  const fill = (map, rows = []) => {
    for (const { frame, takenAt, presentation = [], local = false } of rows) {
      map.set(frame.identifier, { frame, takenAt, presentation, isLocal: local, order: ++facts.order, anchor: takenAt, after: takenAt });
    }
  };
  for (const [id, at] of json.ids ?? []) state.ids.set(id, { at });
  for (const [name, revision, at] of json.revisions ?? []) state.revisions.set(name, { at, revision });
  fill(state.list, json.list?.toReversed());
  fill(state.pending, json.pending);
  for (const frame of json.responses ?? []) state.responses.set(frame.response, { frame });
  for (const name of names) if (json[name] !== undefined) facts[name] = json[name];
  facts.locked = json.screen === "locked";
  return state;
}

function jsonOf({ facts, ids, revisions, list, pending, responses }) {
  const rows = (map) => [...map.values()].map(({ frame, takenAt, presentation, isLocal: local }) => ({ frame, takenAt, presentation, local }));
  return {
    ...Object.fromEntries(names.map((name) => [name, facts[name]])),
    screen: facts.locked ? "locked" : "unlocked",
    ids: [...ids].map(([id, { at }]) => [id, at]),
    revisions: [...revisions].map(([name, { at, revision }]) => [name, revision, at]),
    list: rows(list).reverse(),
    pending: rows(pending),
    responses: [...responses.values()].map(({ frame }) => frame),
  };
}

export function receive(state, text, now, uncertain = 0) {
  const frame = parse(text), draft = stateOf(state);
  const { ack, shown, close = false } = frame ? take(draft, frame, now, uncertain) : {};
  const actions = shown && categoryOf(draft.facts, notificationOf(shown))?.actions?.map((each) => each.identifier);
  return {
    answer: ack ? [{ type: "ack", deliveries: [], ...ack }] : [],
    after: jsonOf(draft),
    shown: shown ? [{ identifier: shown.frame.identifier, presentation: shown.presentation, actions: actions ?? [] }] : [],
    close,
  };
}
