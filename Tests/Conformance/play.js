// Plays the cases of Tests/Conformance to a module that exports `receive` and `reconnect`; README.md has their form.
//
//   deno run --allow-read play.js MODULE FILE...
//     prints each difference, and the case of the first one with the complete state before it; exits 1 if there is one
//   deno run --allow-read --allow-write play.js --planted ERRORS RULES MODULE FILE...
//     plants each error of the file ERRORS into a copy of RULES, for `MODULE?rules=COPY`; exits 1 if one is not found

const start = 1700000000000;
const lists = ["ids", "revisions", "list", "pending", "responses"];

/** A value whose members are in one order, and whose absent ones are left out. */
function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.keys(value).filter((key) => value[key] !== undefined && value[key] !== null).sort().map((key) => [key, ordered(value[key])]),
  );
}

/** The members of a state that frames change, as they are compared: complete, in one order, without what need not be remembered. */
function compared({ rememberSeconds = 2592000, badge = 0, floor, quiet, ...state }, now) {
  const complete = { rememberSeconds, badge, floor, quiet, ...Object.fromEntries(lists.map((name) => [name, state[name]])) };
  for (const name of lists) complete[name] ??= [];
  if (quiet) complete.quiet = { from: quiet.from, to: quiet.to, days: quiet.days, timeZone: quiet.timeZone };
  const earliest = now - complete.rememberSeconds * 1000;
  for (const name of ["ids", "revisions"]) {
    complete[name] = complete[name].filter((entry) => entry.at(-1) >= earliest).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  }
  for (const name of ["list", "pending"]) {
    complete[name] = complete[name].map(({ frame: { id, identifier, revision }, takenAt, presentation, local }) => ({
      frame: { id, identifier, revision },
      takenAt,
      presentation: name === "list" ? presentation : undefined,
      local: local || undefined,
    }));
  }
  return ordered(complete);
}

const answers = (frames) =>
  ordered(frames.map((frame) => (frame.type === "ack" ? { deliveries: [], updated: [], dropped: [], ...frame } : frame)));

/** What differs between two values, as a line; undefined if nothing does. */
function difference(name, expected, found) {
  const [wanted, got] = [JSON.stringify(expected), JSON.stringify(found)];
  return wanted === got ? undefined : `${name} is ${got}, and should be ${wanted}`;
}

/** Plays a case of the table of close codes. */
function* playEnds(module, { events, wait }) {
  const found = [0, 1].map((lot) => {
    let [plan, wait] = [undefined, undefined];
    for (const { times = 1, ...event } of events) {
      const complete = "close" in event ? { stood: null, helloUnanswered: false, ...event } : event;
      for (let time = 0; time < times; time++) ({ plan, wait } = module.reconnect(plan, complete, lot));
    }
    return wait ?? null;
  });
  yield difference("wait", wait, found[0] === null && found[1] === null ? null : found);
}

/** Plays the cases of a file; yields `[case, difference]`, with the state before in the case. A history ends with its first case that differs. */
export function* play(module, cases) {
  let state = {}, expected = {}, hasEnded = false;
  for (const each of cases) {
    const { before, frame, text, now = start, uncertain = 0, answer = [], after = {}, shown = [], close = false } = each;
    let found = each;
    try {
      if (each.events) {
        for (const line of playEnds(module, each)) if (line) yield [each, line];
        continue;
      }
      if (before) [state, expected, hasEnded] = [structuredClone(before), before, false];
      if (hasEnded) continue;
      found = { ...each, before: state };
      const result = module.receive(state, text ?? JSON.stringify(frame), now, uncertain);
      state = JSON.parse(JSON.stringify(result.after));
      expected = { ...expected, ...after };
      const isShown = (result.shown ?? []).map(({ identifier, presentation, actions }, place) =>
        shown[place]?.actions ? { identifier, presentation, actions } : { identifier, presentation }
      );
      const [wanted, is] = [compared(expected, now), compared(state, now)];
      const lines = [
        difference("answer", answers(answer), answers(result.answer ?? [])),
        difference("shown", ordered(shown), ordered(isShown)),
        difference("close", close, result.close ?? false),
        ...Object.keys({ ...wanted, ...is }).map((name) => difference(`after.${name}`, wanted[name], is[name])),
      ];
      for (const line of lines.filter(Boolean)) {
        hasEnded = true;
        yield [found, line];
      }
    } catch (error) {
      hasEnded = true;
      yield [found, `it throws ${error}`];
    }
  }
}

function* playAll(module, files) {
  for (const { file, cases } of files) for (const [found, line] of play(module, cases)) yield [`${file}: ${found.rule}: ${line}`, found];
}

/** The module with rules of a text. */
async function load(module, text, folder, number) {
  const path = `${folder}/planted-${number}.js`;
  await Deno.writeTextFile(path, text);
  return await import(`file://${module}?rules=file://${path}`);
}

async function main(words) {
  const errors = words[0] === "--planted" ? JSON.parse(await Deno.readTextFile(words[1])) : undefined;
  const [path, ...names] = words.slice(errors ? 3 : 0);
  const files = await Promise.all(names.map(async (file) => ({ file, cases: JSON.parse(await Deno.readTextFile(file)) })));
  const whole = await Deno.realPath(path);
  let failures = 0;
  const say = (line) => {
    failures += 1;
    if (failures <= 20) console.log(line);
  };
  if (!errors) {
    const module = await import(`file://${whole}`);
    let first;
    for (const [line, found] of playAll(module, files)) {
      say(line);
      first ??= found;
    }
    if (first) console.log(`the first as a case: ${JSON.stringify(first)}`);
    console.log(`${files.reduce((sum, { cases }) => sum + cases.length, 0)} cases, ${failures} differences`);
    return failures ? 1 : 0;
  }
  const source = await Deno.readTextFile(words[2]), folder = await Deno.makeTempDir();
  try {
    for (const [number, { rule, from, to }] of errors.entries()) {
      const parts = source.split(from);
      if (parts.length !== 2) say(`${rule}: '${from}' is there ${parts.length - 1} times: name a place that is there once`);
      else if (playAll(await load(whole, parts.join(to), folder, number), files).next().done) {
        say(`${rule}: not found: '${to}' in place of '${from}'`);
      }
    }
    console.log(`${errors.length} planted errors, ${failures} not found`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  return failures ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
