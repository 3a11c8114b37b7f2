// The lower sections: what the policies chose and learned, where the events come from, the ledger.

import {
  UNKNOWN,
  bytes,
  duration,
  known,
  list,
  number,
  percent,
  plural,
  significant,
  sum,
  time,
} from "./words.js";
import { at, keyed, make, orNone, part, setText } from "./elements.js";
import { pairs } from "./charts.js";
import { fillHeatMap, heatMap } from "./heatmap.js";

export function drawPolicies(s) {
  const actions = [
    ...new Set(["start", "defer", ...s.policies.flatMap((policy) => Object.keys(policy.by_action))]),
  ];
  const heads = [
    "Policy",
    ...actions.map((action) => `would ${action}`),
    "Agreement with scheduler (same cluster)",
    "Mean reward",
    "Longest deferral",
    "Outcome of deferred jobs",
    "Reconsiders after",
  ];
  keyed(
    at("policies-head"),
    [heads],
    () => "head",
    () => make("tr"),
    (row) => {
      keyed(
        row,
        heads,
        (head) => head,
        (head) => {
          const cell = make("th", "", head);
          cell.scope = "col";
          return cell;
        },
        () => {},
      );
    },
  );
  keyed(
    at("policies"),
    orNone(s.policies, "no policy is configured: Outrider only watches"),
    (policy) => policy.key ?? policy.name,
    (policy) => {
      const row = make("tr");
      if (policy.none) {
        const cell = make("td", "none", policy.none);
        cell.colSpan = heads.length;
        row.append(cell);
        return row;
      }
      const head = make("th");
      head.scope = "row";
      head.append(
        make("span", "", policy.name),
        " ",
        make("span", "tag"),
        make("span", "quiet"),
        make("span", "warn"),
      );
      row.append(head);
      return row;
    },
    (row, policy) => {
      if (policy.none) return;
      setText(part(row, "tag"), policy.role);
      setText(part(row, "quiet"), policy.description);
      setText(part(row, "warn"), policy.broken ? `not asked: ${policy.broken}` : "");
      const compared = policy.agreed + policy.disagreed;
      const cells = [
        ...actions.map((action) => number(policy.by_action[action] ?? 0)),
        compared
          ? `${percent(policy.agreement_ratio)} of ${number(compared)} starts`
          : "none compared yet",
        policy.reward_n
          ? `${known(policy.reward_mean) ? significant(policy.reward_mean) : UNKNOWN} over ${number(policy.reward_n)}`
          : "none yet",
        duration(policy.longest_deferral_s),
        policy.deferred ? list(policy.deferred.jobs) : UNKNOWN,
        duration(policy.reconsider_s),
      ];
      while (row.children.length > cells.length + 1) row.lastChild.remove();
      while (row.children.length < cells.length + 1) row.append(make("td"));
      cells.forEach((text, place) => setText(row.children[place + 1], text));
    },
  );
}

export function drawLearned(s) {
  const tables = s.policies.filter((policy) => policy.learned);
  keyed(
    at("learned"),
    orNone(tables, "No policy has learned anything that a table could show."),
    (policy) => policy.key ?? policy.name,
    (policy) => {
      if (policy.none) return make("p", "none", policy.none);
      return heatMap();
    },
    (box, policy) => {
      if (!policy.none) fillHeatMap(box, policy);
    },
  );
}

export function drawAdapters(s) {
  keyed(
    at("adapters"),
    orNone(s.adapters, "no adapter is configured"),
    (adapter) => adapter.key ?? adapter.label,
    (adapter) => {
      if (adapter.none) return make("li", "none", adapter.none);
      const item = make("li");
      const head = make("h3");
      const inferred = make("span", "tag inferred", "inferred");
      inferred.title =
        "This source reports only jobs. Machines are inferred from where jobs ran.";
      head.append(make("span", "", adapter.label), " ", make("span", "tag state"), " ", inferred);
      item.append(head, make("dl", "pairs"), make("p", "quiet why"), make("p", "quiet note"));
      return item;
    },
    (item, adapter) => {
      if (adapter.none) return;
      const state = part(item, "state");
      setText(state, adapter.up ? "up" : "down");
      state.dataset.kind = adapter.up ? "" : "bad";
      part(item, "inferred").hidden = !adapter.inferred;
      const rejected = sum(Object.values(adapter.rejected));
      pairs(part(item, "pairs"), [
        ...(adapter.problem ? [["why down", adapter.problem, true]] : []),
        ["type", adapter.type],
        [
          "newest data",
          known(adapter.input_age_s) ? `${duration(adapter.input_age_s)} old` : UNKNOWN,
        ],
        ...Object.entries(adapter.silent).map(([log, since_s]) => [
          `${log} is silent since`,
          `${time(since_s)}, though jobs run`,
        ]),
        ["events", number(sum(Object.values(adapter.events)))],
        ["by kind", list(adapter.events)],
        ["duplicates", number(adapter.duplicates)],
        ["rejected", list(adapter.rejected), rejected > 0],
        ["ignored", list(adapter.ignored)],
      ]);
      setText(
        part(item, "why"),
        adapter.inferred
          ? "Machines are inferred from where jobs ran. A machine that never ran a job is not counted, and a free one may be in use by its owner."
          : "",
      );
      setText(part(item, "note"), adapter.note === adapter.problem ? "" : adapter.note);
    },
  );
}

export function drawLedger(s) {
  const { ledger, gate } = s;
  pairs(at("ledger"), [
    [
      "journal",
      ledger.recording
        ? "recording"
        : `not recording${ledger.failure ? `: ${ledger.failure}` : ""}`,
      !ledger.recording,
    ],
    ["rows", number(ledger.rows)],
    ["last sequence number", String(ledger.last_seq)],
    ["size", bytes(ledger.size_bytes)],
    ["rows dropped (disk budget)", number(ledger.dropped_rows), ledger.dropped_rows > 0],
    [
      "last snapshot",
      known(ledger.snapshot_age_s) ? `${duration(ledger.snapshot_age_s)} ago` : "none yet",
    ],
    ["gate would allow", plural(gate.would_act, "decision", "decisions")],
    ["gate would refuse", list(gate.would_refuse)],
    ...(s.levers ?? []).map((lever) => [
      `lever ${lever.adapter}: ${lever.name}`,
      `active leases: ${list(lever.standing)}; changes: ${list(lever.changes)}`,
      lever.problem !== "",
    ]),
    ["late events", number(s.late)],
    ["repairs", list(s.repairs)],
  ]);
  keyed(
    at("notes"),
    orNone(
      s.notes.map((text, place) => ({ key: place, text })),
      "nothing to note",
    ),
    (note) => note.key,
    () => make("li"),
    (item, note) => setText(item, note.text ?? note.none),
  );
}
