// When jobs are expected to start, in words: four answers, of which two are no time.

import { duration, known, moments, number, percent, time } from "./words.js";

const RULES = {
  strict: "strict order",
  first_fit: "first fit",
  easy: "backfill (EASY)",
  easy_sjbf: "backfill (EASY, shortest first)",
  conservative: "backfill (conservative)",
};
const WHEN = { submission: "at submission", hourly: "while waiting" };

/** In a cell of a table: the median, and the interval of 80 %. */
export function startCell(answer, start, now_s) {
  if (answer === "interval") {
    const [low, median, high] = moments([start.low_s, start.median_s, start.high_s], now_s);
    return `${median} (${low} to ${high})`;
  }
  return { next_pass: "now, in the next pass", not_known: "not known" }[answer] ?? "not said";
}

/** In a sentence, without its verb where there is a time. */
function startWords({ answer, start, why }, timed, untimed) {
  if (answer === "interval") {
    const [low, high] = moments([start.low_s, start.high_s], start.median_s);
    return `${timed} ${time(start.median_s)}, between ${low} and ${high} (80 % interval)`;
  }
  if (answer === "next_pass") return `${timed} now, in the next pass`;
  return `${untimed} ${answer.replaceAll("_", " ")}: ${why}`;
}

const rule = (name) => (name ? `${RULES[name] ?? name} run forward` : "");

function said(asked_s, now_s) {
  if (!known(asked_s) || !known(now_s)) return "";
  return `said ${duration(Math.max(0, now_s - asked_s))} ago`;
}

/** How such answers turned out; empty before any has. */
function scoreWords(scores) {
  const { batch_system: plans, beside_batch_system: ours } = scores;
  const beside =
    plans?.n && ours
      ? [
          `where the batch system had a plan (${number(plans.n)} times), its mean loss is ${duration(plans.pinball_s)}, this one's ${duration(ours.pinball_s)}`,
        ]
      : [];
  const told = Object.entries(WHEN)
    .filter(([kind]) => scores[kind]?.n)
    .map(
      ([kind, when]) =>
        `of ${number(scores[kind].n)} starts foretold ${when}, ${percent(scores[kind].coverage_ratio)} lay within the interval`,
    );
  return [...told, ...beside].map((words) => words[0].toUpperCase() + words.slice(1));
}

const joined = (...parts) => parts.filter(Boolean).join(" · ");

/** Lines about one job, from its explanation; none where nobody tells of its start. */
export function startLines({ expected_start: told, batch_system: system, now_s }) {
  const lines = [];
  if (told) {
    const facts =
      told.answer === "not_said" ? "" : joined(rule(told.rule), said(told.asked_s, now_s));
    lines.push(joined(startWords(told, "Expected to start", "Expected start"), facts));
    for (const one of told.under)
      lines.push(
        joined(
          startWords(one, `${one.policy} would start it`, `Start under ${one.policy}`),
          one.answer === "not_said" ? "" : said(told.under_asked_s, now_s),
        ),
      );
  }
  if (known(system?.expected_start_s))
    lines.push(`${system.adapter} itself expects it to start ${time(system.expected_start_s)}`);
  else if (known(told?.planned_s))
    lines.push(`The batch system itself expected it to start ${time(told.planned_s)}`);
  if (told) lines.push(...scoreWords(told.scores));
  return lines;
}

/** What holds for all jobs, in some sentences. `policies`: there are starts under policies, too. */
export function startsSummary(starts, now_s, policies) {
  if (!starts) return "No expected starts are told.";
  if (known(starts.not_said)) return `No expected starts: ${starts.not_said}.`;
  const facts = [rule(starts.rule), said(starts.asked_s, now_s)].filter(Boolean).join(", ");
  const under = Object.entries(starts.under_not_said).map(
    ([policy, why]) => `No starts under ${policy}: ${why}.`,
  );
  const scores = scoreWords(starts.scores).map((words) => `${words}.`);
  const would = policies
    ? [
        "Under a policy: what would be if it were in force at the whole site, which nobody can check.",
      ]
    : [];
  return [`Expected start: median (80 % interval); ${facts}.`, ...scores, ...would, ...under].join(
    " ",
  );
}
