// The live status page: asks for the status every two seconds and draws what it says.
//
// What comes from the daemon is only ever set as text, never as markup. Null means unknown and is
// shown as such, never as 0. Elements are kept and updated, so focus, hover and motion survive.

const POLL_MS = 2000;
const PATIENCE_MS = 5000;
const EXAMPLES_EVERY = 5; // polls

const REASONS = {
  owner: "owner came back", reboot: "reboot", preempted: "preempted", drained: "machine drained",
  failed_start: "failed to start", removed: "job removed", held: "job held", killed: "killed",
  unknown: "cause not told",
};
const PURPOSES = [
  ["goodput", "useful: runs that completed"], ["badput", "wasted: runs thrown away"],
  ["open", "runs not ended yet"], ["idle", "idle machines"], ["sleep", "asleep"],
  ["owner", "owners' own use"],
];
const MACHINE_STATES = [
  ["busy", "busy"], ["free", "free"], ["owner", "owner there"], ["asleep", "asleep"],
  ["closed", "not open to jobs"],
];
const JOB_STATES = ["queued", "running", "suspended", "held"];

// -- words and numbers ------------------------------------------------------------------------

const LOCALE = "en-GB";
const UNKNOWN = "unknown";
let zone = "UTC";

const known = (value) => value !== null && value !== undefined;
const sum = (values) => values.reduce((total, value) => total + value, 0);

function number(value, digits = 0) {
  if (!known(value)) return UNKNOWN;
  const format = { maximumFractionDigits: digits };
  return new Intl.NumberFormat("en", format).format(value).replaceAll(",", "\u202f");
}

function significant(value) {
  if (!known(value)) return UNKNOWN;
  return new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(value).replaceAll(",", "\u202f");
}

const compact = (value) => new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 }).format(value);
const percent = (ratio) => (known(ratio) ? `${number(100 * ratio, 1)} %` : UNKNOWN);

function kwh(wh) {
  if (!known(wh)) return UNKNOWN;
  const value = wh / 1000;
  return `${number(value, value < 1 ? 3 : value < 100 ? 1 : 0)} kWh`;
}

function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 1 && seconds > 0) return `${number(1000 * seconds)} ms`;
  if (seconds < 120) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${number(seconds / 60, seconds < 600 ? 1 : 0)} min`;
  if (seconds < 172800) return `${number(seconds / 3600, 1)} h`;
  return `${number(seconds / 86400, 1)} days`;
}

function bound(seconds) {
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${seconds / 60}m`;
  return seconds < 86400 ? `${seconds / 3600}h` : `${seconds / 86400}d`;
}

function bytes(size) {
  if (!known(size)) return UNKNOWN;
  return size < 1e6 ? `${number(size / 1e3, 1)} kB` : `${number(size / 1e6, 1)} MB`;
}

function time(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const parts = { timeZone: zone, day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
  const text = new Intl.DateTimeFormat(LOCALE, parts).format(new Date(seconds * 1000));
  return text.replace(",", "");
}

const clock = () => new Date().toLocaleTimeString(LOCALE);
const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
const list = (counts) =>
  Object.entries(counts).map(([name, count]) => `${number(count)} ${name.replaceAll("_", " ")}`).join(", ") || "none";

function would(action, role, mode) {
  if (role === "acting" && (mode === "active" || mode === "canary")) return action;
  return `would ${action}`;
}

// -- elements ---------------------------------------------------------------------------------

const at = (id) => document.getElementById(id);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (known(text)) element.textContent = text;
  return element;
}

const part = (element, className) => element.querySelector(`:scope .${className}`);

/** Make the children of a parent be one for each item, keeping those that already are. */
function keyed(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, place) => {
    const name = String(key(item));
    let child = old.get(name);
    if (!child) {
      child = create(item);
      child.dataset.key = name;
    }
    old.delete(name);
    update(child, item);
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
  });
  old.forEach((child) => child.remove());
}

/** One line of text where a list would be empty, so that it says so. */
const orNone = (items, text) => (items.length ? items : [{ none: text, key: "\u0000none" }]);

function share(element, value, name = "--part") {
  element.style.setProperty(name, String(Math.max(0, value)));
}

// -- pieces of charts -------------------------------------------------------------------------

function stack(parent, parts) {
  keyed(parent, parts, ([kind]) => kind, ([kind]) => {
    const bar = make("span");
    bar.dataset.kind = kind;
    return bar;
  }, (bar, [, value]) => {
    share(bar, value ?? 0);
    bar.toggleAttribute("data-zero", !value);
  });
}

function legend(parent, entries) {
  keyed(parent, entries, (entry) => entry.kind, (entry) => {
    const item = make("li");
    item.dataset.kind = entry.kind;
    item.append(make("span", "name", entry.name), " ", make("span", "value"), " ", make("span", "more"));
    return item;
  }, (item, entry) => {
    setText(part(item, "value"), entry.value);
    setText(part(item, "more"), entry.more ?? "");
  });
}

/** Rows of name, value and a bar; `fill` and `target` are parts of the whole, 0 to 1. */
function bars(parent, rows, empty) {
  keyed(parent, orNone(rows, empty), (row) => row.key ?? row.name, (row) => {
    if (row.none) return make("li", "none", row.none);
    const item = make("li");
    const track = make("span", "track");
    track.setAttribute("aria-hidden", "true");
    track.append(make("span", "fill"));
    if (known(row.target)) track.append(make("span", "target"));
    const value = make("span", "value");
    value.append(make("span", "main"), " ", make("span", "more"));
    item.append(make("span", "name", row.name), value, track);
    return item;
  }, (item, row) => {
    if (row.none) return;
    part(item, "name").title = row.name;
    setText(part(item, "main"), row.value);
    setText(part(item, "more"), row.more ?? "");
    const fill = part(item, "fill");
    fill.dataset.kind = row.kind ?? "";
    share(fill, Math.min(1, row.fill));
    if (known(row.target)) share(part(item, "target"), Math.min(1, row.target), "--target");
  });
}

function pairs(parent, rows) {
  keyed(parent, rows.flatMap(([name, value, warn]) => [{ tag: "dt", name, text: name }, { tag: "dd", name, text: value, warn }]),
    (cell) => `${cell.tag} ${cell.name}`, (cell) => make(cell.tag), (element, cell) => {
      setText(element, cell.text);
      element.classList.toggle("warn", Boolean(cell.warn));
    });
}

// -- sections ---------------------------------------------------------------------------------

function drawTop(s) {
  const mode = at("mode");
  setText(mode, s.mode);
  mode.dataset.mode = s.mode;
  mode.title = {
    observe: "only watches and measures", shadow: "also records what the policies would do; changes nothing",
  }[s.mode] ?? "";
  setText(at("sentence"), s.sentence);
  document.title = `Outrider: ${s.mode}, ${number(s.jobs.queued)} waiting`;
  const since = `since ${time(s.since_s)}, event time`;
  const ownClock = s.own_clock ? ". A simulated site: its clock is its own, not the wall's" : "";
  setText(at("window"), `Numbers below count ${since}; now it is ${time(s.now_s)} there${ownClock}.`);
  for (const small of document.querySelectorAll("[data-window]")) {
    const when = "now" in small.dataset ? `now, ${time(s.now_s)}, event time` : since;
    setText(small, `${small.dataset.window} · ${when}`);
  }
  setText(at("footer"), `Outrider ${s.version}. Times are event time in the zone ${zone}.`);
}

function drawFigures(s) {
  const best = s.policies.filter((policy) => known(policy.agreement_ratio))[0];
  const figures = [
    ["Jobs waiting", number(s.jobs.queued), `${number(s.jobs.running)} running, ${number(s.jobs.held)} held`],
    ["Jobs completed", number(s.jobs.completed), `of ${number(s.jobs.submitted)} submitted; ${number(s.jobs.removed)} removed`],
    ["Mean wait", duration(s.wait_s.all.mean), `over ${plural(s.wait_s.all.n, "first start", "first starts")}`],
    ["Machines free", number(s.machines.free), `of ${number(sum(Object.values(s.machines)))}; ${number(s.machines.busy)} busy`],
    ["Useful energy", kwh(s.energy_wh.goodput), `${kwh(s.energy_wh.badput)} wasted`],
    ["Agreement", percent(best?.agreement_ratio), best ? `${best.name}, same cluster as was done` : "no start compared yet"],
  ];
  keyed(at("figures"), figures, ([name]) => name, ([name]) => {
    const box = make("div");
    box.append(make("dt", "", name), make("dd", "value"), make("dd", "more"));
    return box;
  }, (box, [, value, more]) => {
    setText(part(box, "value"), value);
    part(box, "value").toggleAttribute("data-unknown", value === UNKNOWN);
    setText(part(box, "more"), more);
  });
}

function drawWaits(s) {
  legend(at("job-states"), JOB_STATES.map((state) => ({ kind: state, name: state, value: number(s.jobs[state]) })));
  const most = Math.max(1, ...s.wait_buckets_s.map(([, count]) => count));
  const last = s.wait_buckets_s.filter(([upper]) => known(upper)).at(-1)?.[0] ?? 0;
  keyed(at("wait-histogram"), s.wait_buckets_s, ([upper]) => upper, ([upper]) => {
    const item = make("li");
    const column = make("span", "column");
    column.setAttribute("aria-hidden", "true");
    column.append(make("span", "count"), make("span", "fill"));
    const tick = make("span", "tick", known(upper) ? bound(upper) : `>${bound(last)}`);
    tick.setAttribute("aria-hidden", "true");
    item.append(column, tick, make("span", "sr"));
    return item;
  }, (item, [upper, count]) => {
    const range = known(upper) ? `up to ${duration(upper)}` : `more than ${duration(last)}`;
    const text = `${range}: ${plural(count, "job", "jobs")}`;
    item.title = text;
    setText(part(item, "sr"), text);
    setText(part(item, "count"), count ? compact(count) : "");
    item.toggleAttribute("data-some", count > 0);
    share(part(item, "fill"), count / most);
  });
  const all = s.wait_s.all;
  const more = [["median", all.median], ["p95", all.p95], ["longest", all.max]].filter(([, value]) => known(value));
  const never = all.censored_n ? `; ${plural(all.censored_n, "job has", "jobs have")} not started yet` : "";
  const words = [["mean", all.mean], ...more].map(([name, value]) => `${name} ${duration(value)}`).join(", ");
  setText(at("wait-summary"), `Each column counts the waits up to its own bound, above the one before. ${words}${never}.`);
}

function drawMachines(s) {
  const total = sum(Object.values(s.machines));
  stack(at("machine-bar"), MACHINE_STATES.map(([state]) => [state, s.machines[state]]));
  legend(at("machine-states"), MACHINE_STATES.map(([state, name]) => ({ kind: state, name, value: number(s.machines[state]) })));
  const clusters = orNone(s.clusters, total ? "no clusters are declared" : "no machines seen yet");
  keyed(at("clusters"), clusters, (cluster) => cluster.key ?? cluster.name, (cluster) => {
    if (cluster.none) return make("li", "none", cluster.none);
    const item = make("li");
    const bar = make("span", "track stack");
    bar.setAttribute("aria-hidden", "true");
    item.append(make("span", "name", cluster.name), make("span", "value"), bar);
    return item;
  }, (item, cluster) => {
    if (cluster.none) return;
    const rest = Math.max(0, cluster.machines - cluster.busy - cluster.free - cluster.owner);
    const watts = known(cluster.active_w) ? `${number(cluster.active_w)} W when busy` : "watts unknown";
    item.title = `${cluster.name}: ${cluster.busy} busy, ${cluster.free} free, ${cluster.owner} with owner, ${rest} asleep or not open; ${watts}`;
    setText(part(item, "name"), cluster.name);
    const value = part(item, "value");
    if (!value.firstChild) value.append(make("span", "main"), " ", make("span", "more"));
    setText(part(value, "main"), `${number(cluster.busy)} busy`);
    setText(part(value, "more"), `of ${number(cluster.machines)}, ${number(cluster.free)} free · ${watts}`);
    stack(part(item, "stack"), [["busy", cluster.busy], ["free", cluster.free], ["owner", cluster.owner], ["asleep", rest]]);
  });
}

function drawEnergy(s) {
  const energy = s.energy_wh;
  const total = sum(PURPOSES.map(([purpose]) => energy[purpose] ?? 0));
  stack(at("energy-bar"), PURPOSES.map(([purpose]) => [purpose, energy[purpose]]));
  legend(at("energy-purposes"), PURPOSES.map(([purpose, name]) => ({
    kind: purpose, name, value: kwh(energy[purpose]),
    more: known(energy[purpose]) && total > 0 ? `${number((100 * energy[purpose]) / total)} %` : "",
  })));
  const sources = {
    table: "Computed from the watts declared for each cluster.", measured: "Measured by meters.",
    unknown: "No watts are declared for these machines, so their energy is unknown, not 0.",
  };
  setText(at("energy-source"), sources[s.power_source] ?? "");
  const amount = known(s.saving.wh) ? ` (${kwh(s.saving.wh)})` : "";
  setText(at("saving"), `Saving: ${s.saving.text}${amount}.`);
}

function drawEvictions(s) {
  const rows = Object.entries(s.evictions).filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  bars(at("evictions"), rows.map(([reason, count]) => ({
    key: reason, name: REASONS[reason] ?? reason, value: number(count), kind: "badput", fill: count / most,
  })), "no run was evicted");
  const all = s.goodput_s + s.badput_s;
  const ratio = all > 0 ? `, ${percent(s.badput_s / all)} of all CPU time of ended runs` : "";
  setText(at("lost-work"), `${plural(s.starts, "start", "starts")}; ${number(s.badput_s / 3600, 1)} CPU-hours thrown away${ratio}.`);
}

function drawFairness(s) {
  const { share: shares, target: targets } = s.fairness;
  const names = [...new Set([...Object.keys(targets), ...Object.keys(shares)])].sort();
  const scale = Math.max(0.05, ...names.map((vo) => Math.max(shares[vo] ?? 0, targets[vo] ?? 0)));
  bars(at("fairness"), names.map((vo) => ({
    name: vo, value: percent(shares[vo]), more: `target ${percent(targets[vo] ?? null)}`,
    fill: (shares[vo] ?? 0) / scale, target: (targets[vo] ?? 0) / scale, kind: "running",
  })), "no CPU time was delivered yet");
  const value = (ratio) => (known(ratio) ? number(ratio, 3) : UNKNOWN);
  setText(at("fairness-summary"),
    `Fairness ${value(s.fairness.utility)} at the last submission, ${value(s.fairness.windowed)} of recent use, ${value(s.fairness.time_mean)} on average over time; 1 is at the targets.`);
}

function drawPolicies(s) {
  const actions = [...new Set(["start", "keep", ...s.policies.flatMap((policy) => Object.keys(policy.by_action))])];
  const heads = ["Policy", ...actions.map((action) => would(action, "shadow", s.mode)), "Same cluster as was done", "Mean reward", "Longest hold", "Looks again after"];
  keyed(at("policies-head"), [heads], () => "head", () => make("tr"), (row) => {
    keyed(row, heads, (head) => head, (head) => {
      const cell = make("th", "", head);
      cell.scope = "col";
      return cell;
    }, () => {});
  });
  keyed(at("policies"), orNone(s.policies, "no policy is configured: Outrider only watches"), (policy) => policy.key ?? policy.name, (policy) => {
    const row = make("tr");
    if (policy.none) {
      const cell = make("td", "none", policy.none);
      cell.colSpan = heads.length;
      row.append(cell);
      return row;
    }
    const head = make("th");
    head.scope = "row";
    head.append(make("span", "", policy.name), make("span", "tag"), make("span", "quiet"));
    row.append(head);
    return row;
  }, (row, policy) => {
    if (policy.none) return;
    setText(part(row, "tag"), policy.role);
    setText(part(row, "quiet"), policy.description);
    const compared = policy.agreed + policy.disagreed;
    const cells = [
      ...actions.map((action) => number(policy.by_action[action] ?? 0)),
      compared ? `${percent(policy.agreement_ratio)} of ${number(compared)} starts` : "none compared yet",
      policy.reward_n ? `${known(policy.reward_mean) ? significant(policy.reward_mean) : UNKNOWN} over ${number(policy.reward_n)}` : "none yet",
      duration(policy.longest_hold_s), duration(policy.reconsider_s),
    ];
    while (row.children.length > cells.length + 1) row.lastChild.remove();
    while (row.children.length < cells.length + 1) row.append(make("td"));
    cells.forEach((text, place) => setText(row.children[place + 1], text));
  });
}

function drawLearned(s) {
  const tables = s.policies.filter((policy) => policy.learned);
  keyed(at("learned"), orNone(tables, "No policy has learned anything that a table could show."), (policy) => policy.key ?? policy.name, (policy) => {
    if (policy.none) return make("p", "none", policy.none);
    return heatMap();
  }, (box, policy) => {
    if (!policy.none) fillHeatMap(box, policy);
  });
}

function heatMap() {
  const box = make("div", "heat");
  const table = make("table");
  const caption = make("caption");
  caption.append(make("b"), make("span", "title"));
  table.append(caption, make("thead"), make("tbody"));
  const foot = make("div", "foot");
  const scale = make("span");
  scale.append(make("span", "low"), make("span", "ramp"), make("span", "high"), make("span", "unit"));
  const empty = make("span");
  empty.append(make("span", "swatch"), "nothing learned yet");
  foot.append(scale, empty, make("span", "readout", "Point at a cell for its value."));
  box.append(table, foot);
  const show = (event) => {
    const cell = event.target.closest("td");
    if (cell) setText(part(box, "readout"), cell.dataset.words);
  };
  box.addEventListener("pointerover", show);
  box.addEventListener("focusin", show);
  box.addEventListener("keydown", moveInTable);
  return box;
}

function fillHeatMap(box, policy) {
  const { title, columns, rows, unit } = policy.learned;
  const values = rows.flatMap((row) => row.values).filter(known);
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [null, null];
  setText(box.querySelector("b"), policy.name);
  setText(part(box, "title"), `: ${title}`);
  setText(part(box, "low"), known(low) ? significant(low) : "");
  setText(part(box, "high"), known(high) ? significant(high) : "");
  setText(part(box, "unit"), ` ${unit || "in the policy's own reward"}`);
  const head = box.querySelector("thead");
  keyed(head, [columns], () => "head", () => make("tr"), (row) => {
    keyed(row, ["", ...columns], (name) => name, (name) => make(name ? "th" : "td"), (cell, name) => {
      const place = columns.indexOf(name);
      setText(cell, name && (columns.length <= 12 || place % 3 === 0) ? name : "");
      if (name) {
        cell.scope = "col";
        cell.setAttribute("aria-label", name);
      }
    });
  });
  keyed(box.querySelector("tbody"), rows, (row) => row.label, (row) => {
    const line = make("tr");
    const label = make("th", "", row.label);
    label.scope = "row";
    line.append(label);
    return line;
  }, (line, row) => {
    line.firstChild.title = row.label;
    while (line.children.length > row.values.length + 1) line.lastChild.remove();
    while (line.children.length < row.values.length + 1) {
      const cell = make("td");
      cell.append(make("span", "sr"));
      line.append(cell);
    }
    row.values.forEach((value, place) => {
      const cell = line.children[place + 1];
      const words = known(value) ? significant(value) : "nothing learned";
      cell.dataset.words = `${columns[place]}, ${row.label}: ${words}`;
      cell.toggleAttribute("data-unknown", !known(value));
      setText(cell.firstChild, words);
      if (known(value)) share(cell, high > low ? (value - low) / (high - low) : 1);
    });
  });
  if (!box.querySelector("td[tabindex]")) box.querySelector("tbody td")?.setAttribute("tabindex", "0");
}

/** Arrow keys walk from cell to cell; the whole table is one stop of the tab key. */
function moveInTable(event) {
  const cell = event.target.closest("tbody td");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!cell || !step) return;
  const rows = [...cell.closest("tbody").rows];
  const next = rows[rows.indexOf(cell.parentNode) + step[0]]?.cells[cell.cellIndex + step[1]];
  if (next?.tagName !== "TD") return;
  event.preventDefault();
  cell.removeAttribute("tabindex");
  next.tabIndex = 0;
  next.focus();
}

function drawAdapters(s) {
  keyed(at("adapters"), orNone(s.adapters, "no adapter is configured"), (adapter) => adapter.key ?? adapter.label, (adapter) => {
    if (adapter.none) return make("li", "none", adapter.none);
    const item = make("li");
    const head = make("h3");
    const inferred = make("span", "tag inferred", "inferred");
    inferred.title = "This source tells of jobs only; which machines exist is inferred from where jobs ran.";
    head.append(make("span", "", adapter.label), make("span", "tag state"), inferred);
    item.append(head, make("dl", "pairs"), make("p", "quiet why"), make("p", "quiet note"));
    return item;
  }, (item, adapter) => {
    if (adapter.none) return;
    const state = part(item, "state");
    setText(state, adapter.up ? "up" : "down");
    state.dataset.kind = adapter.up ? "" : "warn";
    part(item, "inferred").hidden = !adapter.inferred;
    const rejected = sum(Object.values(adapter.rejected));
    pairs(part(item, "pairs"), [
      ["type", adapter.type],
      ["newest information", known(adapter.input_age_s) ? `${duration(adapter.input_age_s)} old` : UNKNOWN],
      ["events", number(sum(Object.values(adapter.events)))],
      ["of these", list(adapter.events)],
      ["duplicates", number(adapter.duplicates)],
      ["rejected", list(adapter.rejected), rejected > 0],
      ["ignored", list(adapter.ignored)],
    ]);
    setText(part(item, "why"), adapter.inferred ? "Machines are inferred from where jobs ran: one that never ran a job is not counted, and a free one may have an owner." : "");
    setText(part(item, "note"), adapter.note);
  });
}

function drawLedger(s) {
  const { ledger, gate } = s;
  pairs(at("ledger"), [
    ["ledger", ledger.recording ? "recording" : `not recording${ledger.failure ? `: ${ledger.failure}` : ""}`, !ledger.recording],
    ["rows", number(ledger.rows)],
    ["last sequence number", String(ledger.last_seq)],
    ["size", bytes(ledger.size_bytes)],
    ["last snapshot", known(ledger.snapshot_age_s) ? `${duration(ledger.snapshot_age_s)} ago` : "none yet"],
    ["gate would let through", plural(gate.would_act, "decision", "decisions")],
    ["gate would refuse", list(gate.would_refuse)],
    ["late events", number(s.late)],
    ["repairs", list(s.repairs)],
  ]);
  keyed(at("notes"), orNone(s.notes.map((text, place) => ({ key: place, text })), "nothing to note"), (note) => note.key,
    () => make("li"), (item, note) => setText(item, note.text ?? note.none));
}

function draw(s) {
  zone = s.timezone || "UTC";
  for (const section of [
    drawTop, drawFigures, drawWaits, drawMachines, drawEnergy, drawEvictions, drawFairness,
    drawPolicies, drawLearned, drawAdapters, drawLedger,
  ]) section(s);
  at("content").classList.remove("empty");
}

// -- asking -----------------------------------------------------------------------------------

/** A JSON answer, or an Error whose message is for people. `status` is set where one came. */
async function ask(path, signal) {
  const response = await fetch(path, { signal, cache: "no-store", headers: { Accept: "application/json" } });
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const error = new Error(answer?.error ?? `the answer was ${response.status} ${response.statusText}`);
  error.status = response.status;
  throw error;
}

let lastSeen = null;
let polls = 0;
let asking = null;
let timer = null;

function showConnection(state, text, when) {
  const box = at("connection");
  box.dataset.state = state;
  setText(at("connection-state"), text);
  setText(at("connection-time"), when);
  at("content").classList.toggle("lost", state === "lost");
}

async function poll() {
  clearTimeout(timer);
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const patience = setTimeout(() => mine.abort("no answer"), PATIENCE_MS);
  try {
    draw(await ask("api/v1/status", mine.signal));
    lastSeen = clock();
    showConnection("live", "live", lastSeen);
    if (polls++ % EXAMPLES_EVERY === 0) await showExamples(mine.signal);
  } catch (error) {
    if (mine !== asking || document.hidden) return;
    const why = error.status ? `no status: ${error.message}` : "connection lost";
    showConnection("lost", lastSeen ? `${why}, last seen` : `${why}, trying again`, lastSeen ?? "");
  } finally {
    clearTimeout(patience);
    if (mine === asking && !document.hidden) timer = setTimeout(poll, POLL_MS);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    poll();
    return;
  }
  clearTimeout(timer);
  asking?.abort();
  showConnection("paused", "paused while hidden", "");
});

// -- why is this job waiting? -----------------------------------------------------------------

async function showExamples(signal) {
  const { jobs } = await ask("api/v1/jobs?state=queued&limit=4", signal);
  const box = at("examples");
  const items = jobs.length ? [{ job: null }, ...jobs] : [];
  keyed(box, items, ({ job }) => (job === null ? "label" : `job ${job}`), ({ job }) => {
    if (job === null) return make("span", "", "waiting now:");
    const button = make("button", "", job);
    button.type = "button";
    button.addEventListener("click", () => explain(job));
    return button;
  }, () => {});
}

let question = null;

async function explain(job) {
  at("explain-job").value = job;
  question?.abort();
  const mine = new AbortController();
  question = mine;
  const patience = setTimeout(() => mine.abort("no answer"), PATIENCE_MS);
  const box = at("explanation");
  try {
    const answer = await ask(`api/v1/explain/${encodeURIComponent(job)}`, mine.signal);
    box.replaceChildren(...explanation(answer));
  } catch (error) {
    if (mine !== question) return;
    box.replaceChildren(make("p", "warn", error.status ? error.message : "the daemon does not answer"));
  } finally {
    clearTimeout(patience);
  }
}

function explanation(answer) {
  const source = answer.source === "ledger" ? "read from the ledger" : "told by the daemon";
  const facts = [`${answer.job}: ${answer.state}`];
  if (known(answer.since_s)) facts.push(`since ${time(answer.since_s)}`);
  if (known(answer.waiting_s)) facts.push(`waited ${duration(answer.waiting_s)}`);
  facts.push(source);
  return [
    make("p", "answer", answer.sentence),
    make("p", "quiet", `${facts.join(" · ")}.`),
    ...answer.policies.map((view) => policyView(view, answer.mode)),
  ];
}

function policyView(view, mode) {
  const box = make("article");
  const head = make("h3", "", view.name);
  head.append(make("span", "tag", `${would(view.action, "shadow", mode)}: ${view.reason.replaceAll("_", " ")}`));
  const look = known(view.until_s) ? `next look ${time(view.until_s)}` : "looks again when a machine frees";
  const facts = [look];
  if (known(view.decided_s)) facts.push(`decided ${time(view.decided_s)}`);
  if (known(view.propensity)) facts.push(`chosen with probability ${number(view.propensity, 3)}`);
  if (known(view.seq)) facts.push(`ledger row ${view.seq}`);
  box.append(head, make("p", "", view.explanation), make("p", "quiet", `${facts.join(" · ")}.`));
  const scores = Object.entries(view.scores ?? {});
  if (scores.length) {
    const table = make("ul", "scores");
    table.setAttribute("aria-label", `Scores of ${view.name}`);
    for (const [name, value] of scores) {
      const row = make("li");
      row.append(make("span", "", name), make("span", "", known(value) ? significant(value) : UNKNOWN));
      table.append(row);
    }
    box.append(table);
  }
  return box;
}

at("explain-form").addEventListener("submit", (event) => {
  event.preventDefault();
  explain(at("explain-job").value.trim());
});

if (document.hidden) showConnection("paused", "paused while hidden", "");
else poll();
