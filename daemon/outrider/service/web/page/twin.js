// Policies compared with the current scheduler, and a forecast, each with its interval.

import { change, known } from "./words.js";
import { at, headRow, keyed, make, setText } from "./elements.js";

const MEASURES = [
  ["energy_ratio", "Energy of runs"],
  ["badput_ratio", "Wasted CPU time"],
  ["evictions_ratio", "Evicted runs"],
  ["overhead_mean_ratio", "Mean overhead"],
];

const NOT_YET = "Not estimated yet: the twin has not been asked, or has not answered.";

export function drawTwin(s) {
  const twin = s.twin;
  setText(at("twin-summary"), twin?.summary ?? NOT_YET);
  const rows = twin && twin.refused === null ? rowsOf(twin) : [];
  const heads = rows.length ? ["Policy", ...MEASURES.map(([, name]) => name)] : [];
  keyed(at("twin-head"), heads.length ? [heads] : [], () => "head", headRow, () => {});
  keyed(
    at("twin"),
    rows,
    (row) => row.key,
    () => {
      const line = make("tr");
      line.append(make("th"), ...MEASURES.map(() => make("td", "number")));
      line.firstChild.scope = "row";
      return line;
    },
    (line, row) => {
      setText(line.children[0], row.name);
      MEASURES.forEach(([measure], place) => setText(line.children[place + 1], cell(row, measure)));
    },
  );
}

function rowsOf(twin) {
  const past = Object.entries(twin.past).map(([policy, ratios]) => ({
    key: `past ${policy}`,
    name: `${policy}, past period`,
    ratios,
  }));
  const next = Object.entries(twin.next ?? {}).map(([policy, ratios]) => ({
    key: `next ${policy}`,
    name: `${policy}, forecast${twin.next_expired ? " (expired)" : ""}`,
    ratios,
  }));
  const refused = Object.entries(twin.candidates_refused).map(([policy, why]) => ({
    key: `refused ${policy}`,
    name: `${policy}: ${why}`,
    ratios: {},
  }));
  return [...past, ...next, ...refused];
}

function cell(row, measure) {
  const ratio = row.ratios[measure];
  if (!known(ratio)) return "unknown";
  return `${change(ratio.estimate)} (${change(ratio.low)} to ${change(ratio.high)})`;
}
