// The headline: wasted CPU time, what a policy would have saved, and current problems.

import { day, known, number, percent, plural, sum, time } from "./words.js";
import { at, keyed, make, setText } from "./elements.js";
import { NoAnswer } from "./asking.js";
import { knowsNothing } from "./gaps.js";

const EVERY_MS = 60000;

let status = null; // the daemon's last answer
let week = null; // the use of CPUs in the last 7 days; null: not known
let askedAt = -Infinity;

/** Ask periodically for the last 7 days, and show how much of them was wasted. */
export async function askForWeek(question) {
  if (performance.now() - askedAt < EVERY_MS) return;
  try {
    week = await question.ask("api/v1/use?window=7d");
    askedAt = performance.now();
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    week = null; // what is known since the daemon began is said instead
  }
  drawHeadline(status);
}

export function drawHeadline(s) {
  status = s;
  const said = knowsNothing(s) ? s.no_data.map(({ text }) => `${text}.`).join(" ") : `${wasted(s)} ${saved(s.twin)}`;
  setText(at("headline"), said);
  keyed(
    at("troubles"),
    troubles(s).map((text) => ({ text })),
    ({ text }) => text,
    ({ text }) => make("li", "", text),
    () => {},
  );
  at("troubles-title").hidden = !at("troubles").children.length;
}

function wasted({ goodput_s, badput_s, since_s }) {
  const kept = week ? sum(week.cpus.completed) : goodput_s;
  const lost = week ? sum(week.cpus.thrown_away) : badput_s;
  const from = week ? fromWhen(week, since_s) : `Since ${day(since_s)}`;
  if (!(goodput_s + badput_s > 0)) return "No run has ended yet.";
  if (!(kept + lost > 0)) return `${from}, no run has ended.`;
  return `${from}, ${percent(lost / (kept + lost))} of the CPU time of all ended runs was wasted.`;
}

/** The last 7 days, or what of them is on record and looked at. */
function fromWhen({ begin_s, is_cut }, since_s) {
  if (since_s > begin_s) return `Since ${day(since_s)}`;
  return is_cut ? `Since ${day(begin_s)}` : "In the last 7 days";
}

/** The twin's answer of least waste, or why there is none. */
function saved(twin) {
  if (!twin) return "What another policy would have saved is not estimated yet.";
  if (twin.refused !== null) return `What another policy would have saved is not known: ${twin.refused}.`;
  const best = Object.entries(twin.past)
    .filter(([, ratios]) => known(ratios.badput_ratio))
    .sort(([, a], [, b]) => a.badput_ratio.estimate - b.badput_ratio.estimate)[0];
  if (!best) return "What another policy would have saved is not known: no waste estimate.";
  const [policy, { badput_ratio: ratio }] = best;
  const interval = `between ${lessOrMore(ratio.low)} and ${lessOrMore(ratio.high)}, ${number(100 * ratio.level)} % interval`;
  const window = `${day(twin.window.begin_s)} to ${day(twin.window.end_s)}`;
  const stale = twin.stale ? ", an old answer" : "";
  return `Under ${policy} it would have been ${lessOrMore(ratio.estimate)} (${interval}; ${window}${stale}).`;
}

const lessOrMore = (ratio) => `${number(100 * Math.abs(ratio - 1), 1)} % ${ratio < 1 ? "less" : "more"}`;

/** What an admin should look at, a sentence each. */
function troubles(s) {
  const found = [];
  for (const adapter of s.adapters) {
    const gap = s.no_data?.find((one) => one.adapter === adapter.label);
    if (gap) found.push(`${gap.text}.`);
    else if (!adapter.up) found.push(`Adapter ${adapter.label} is down: ${adapter.problem || adapter.note || "no answer"}.`);
    for (const [log, since_s] of Object.entries(adapter.silent))
      found.push(`Nothing has been written to ${log} since ${time(since_s)}, though jobs run.`);
  }
  if (!s.ledger.recording) found.push(`The journal is not being written: ${s.ledger.failure ?? "reason unknown"}.`);
  for (const policy of s.policies)
    if (policy.broken) found.push(`Policy ${policy.name} is not asked: ${policy.broken}.`);
  for (const lever of s.levers ?? [])
    if (lever.problem) found.push(`Lever ${lever.name} of ${lever.adapter}: ${lever.problem}.`);
  if (known(s.mode_limit)) found.push(`The mode is lowered to ${s.mode_limit.most} since ${time(s.mode_limit.at_s)}.`);
  if (s.jobs.held > 0) found.push(`${plural(s.jobs.held, "job is", "jobs are")} held and will not start until released.`);
  if (s.jobs.queued > 0 && s.machines.free === 0 && s.jobs.running === 0)
    found.push("Jobs wait, nothing runs, and no machine is free.");
  return found;
}
