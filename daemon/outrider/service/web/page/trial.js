// The canary trial: its progress, and at its end the result next to the prediction.

import { change, known, plural, time } from "./words.js";
import { at, keyed, make, setText } from "./elements.js";

const MEASURES = {
  energy_ratio: "energy per useful CPU time",
  badput_ratio: "wasted per useful CPU time",
  evictions_ratio: "evictions per completed job",
  overhead_capped_mean_ratio: "mean overhead, up to a day each",
};
const STATED = { next: "forecast", past: "twin" };

export function drawTrial(s) {
  const trial = s.trial; // an older daemon has none
  at("trial").hidden = !known(trial);
  if (!known(trial)) return;
  setText(at("trial-summary"), summary(trial));
  const measures = Object.entries(trial.outcome?.measures ?? {});
  keyed(
    at("trial-measures"),
    trial.outcome?.too_short ? [] : measures,
    ([name]) => name,
    () => make("li"),
    (item, [name, compared]) => setText(item, outcome(name, compared, trial.stated_as)),
  );
}

function summary(trial) {
  const done = `${trial.days_done} of ${plural(trial.days, "day", "days")}`;
  const begun = `${trial.policy}, days drawn at random, from ${time(trial.begins_s)} to ${time(trial.ends_s)}`;
  if (trial.state === "broken_off") return `Stopped after ${done}: ${trial.why}. ${begun}.`;
  if (trial.state === "running") {
    const acts = trial.acts_now ? "it acts now" : "it does not act now";
    const next = known(trial.next_change_s) ? ` until ${time(trial.next_change_s)}` : "";
    return `${done} are done; ${acts}${next}. Ratios are shown when it ends. ${begun}.`;
  }
  const said = trial.outcome;
  if (!said || said.too_short) return `Ended: ${said ? said.too_short : "no runs were counted"}. ${begun}.`;
  const pairs = plural(said.pairs, "pair of days", "pairs of days");
  return `Ended: days with acting compared with days without, ${pairs}, 90 % intervals. ${begun}.`;
}

function outcome(name, compared, statedAs) {
  const label = MEASURES[name] ?? name;
  if (!known(compared.estimate)) return `${label}: not known`;
  const stated = compared.stated;
  const line = `${label}: ${interval(compared)}`;
  if (!known(stated) || !known(compared.within)) return line;
  const verdict = compared.within
    ? "within"
    : `outside, ${compared.agrees ? "but they agree" : "and they disagree"}`;
  return `${line}; ${STATED[statedAs] ?? "stated"} ${interval(stated)}: ${verdict}`;
}

const interval = (one) => `${change(one.estimate)} (${change(one.low)} to ${change(one.high)})`;
