// One machine, by its address "#/machines?machine=NAME": what it does now, and its history.

import { UNKNOWN, duration, known, label, number, percent, plural, time, zoneKnown } from "./words.js";
import { at, setText } from "./elements.js";
import { NoAnswer, Question } from "./asking.js";
import { pairs } from "./charts.js";
import { fillHeatMap, heatMap } from "./heatmap.js";
import { fillTable } from "./lists.js";
import { go, onRoute, route } from "./views.js";

const VIEW = "machines";
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
const STATES = { owner: "its owner is logged in", closed: "not open to jobs" };
const JOBS = [
  ["Job", (row) => row.job],
  ["State", (row) => row.state],
  ["User", (row) => row.user || "(not named)"],
  ["VO", (row) => row.vo],
  ["CPUs", (row) => number(row.cpus)],
  ["Began", (row) => time(row.start_s)],
];
const RUNS = [
  ["Job", (row) => row.job],
  ["VO", (row) => row.vo],
  ["CPUs", (row) => number(row.cpus)],
  ["Began", (row) => time(row.start_s)],
  ["Ended", (row) => time(row.end_s)],
  ["Ran", (row) => duration(row.run_s)],
  ["Outcome", (row) => (row.lost_because ? `wasted: ${label(row.lost_because)}` : "completed its job")],
];

const week = heatMap("not seen then");
at("machine-week").append(week);

const chosen = () => {
  const { view, filters } = route();
  return view === VIEW ? filters.get("machine") : null;
};

/** The address of a machine, with the filters of the list that leads to it. */
export function addressOf(machine) {
  const filters = route().view === VIEW ? new URLSearchParams(route().filters) : new URLSearchParams();
  filters.set("machine", machine);
  return `#/${VIEW}?${filters}`;
}

/** Ask for the machine that the address names, and draw it; nothing where it names none. */
export async function showMachine(question) {
  const machine = chosen();
  if (!known(machine)) return;
  let answer = null;
  let why = "";
  try {
    answer = await question.ask(`api/v1/machine/${encodeURIComponent(machine)}`);
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    why = error.message;
  }
  if (machine !== chosen()) return; // another was chosen since
  setText(at("machine-error"), why);
  at("machine-shown").hidden = answer === null;
  if (answer !== null) draw(answer);
}

function draw(answer) {
  const { watts, failed_starts: starts } = answer;
  pairs(at("machine-facts"), [
    ["State", `${STATES[answer.state] ?? answer.state}, since ${time(answer.since_s)}${answer.draining ? "; accepts no more jobs" : ""}${answer.closed_because ? ` (${answer.closed_because})` : ""}`],
    ["Machine group", answer.cluster],
    ["CPUs busy", `${number(answer.busy_cpus)} of ${number(answer.cpus)}`],
    ["Watts now", known(watts.now_w) ? `${number(watts.now_w)} W, ${watts.is_measured ? "measured" : "declared"}` : UNKNOWN],
    ["Declared watts", [["busy", watts.active_w], ["idle", watts.idle_w], ["asleep", watts.sleep_w]].map(([name, value]) => `${name} ${known(value) ? `${number(value)} W` : UNKNOWN}`).join(", ")],
    ["Failed starts", failedStarts(starts), starts.is_black_hole],
    ["Known from", answer.inferred ? "jobs only" : "the batch system"],
  ]);
  fillTable("machine-jobs", JOBS, answer.jobs, (row) => row.job, "no job is on it now");
  const more = answer.jobs_total - answer.jobs.length;
  setText(at("machine-jobs-shown"), more > 0 ? `and ${plural(more, "job", "jobs")} that started later` : "");
  const none = answer.runs === null ? "this journal cannot be searched by machine" : "no ended run on record";
  fillTable("machine-runs", RUNS, answer.runs ?? [], (row) => `${row.job} ${row.start_s}`, none);
  drawWeek(answer.owner_week);
}

function failedStarts({ within_s, tried, failed, is_black_hole, expected_ratio }) {
  if (!tried) return `no start on it in the last ${duration(within_s)}`;
  const counts = `${number(failed)} of ${plural(tried, "job", "jobs")} in the last ${duration(within_s)}`;
  return is_black_hole ? `${counts}: a black hole; elsewhere ${percent(expected_ratio)} of these users' jobs fail` : counts;
}

function drawWeek(answer) {
  week.hidden = !answer;
  setText(
    at("machine-week-summary"),
    answer
      ? `Share of time with the owner logged in, by the site's clock, since ${time(answer.since_s)}: ${plural(answer.sessions, "session", "sessions")}.`
      : "The journal holds no log-in of an owner.",
  );
  if (!answer) return;
  const rows = answer.share.map((values, place) => ({ label: DAYS[place], values }));
  fillHeatMap(week, { name: "Owner logged in", learned: { title: "by hour of the week", columns: HOURS, rows, unit: "of the time" } });
}

at("machine-close").addEventListener("click", () => go({ machine: "" }));

let before = null;
onRoute(() => {
  const machine = chosen();
  at("machine").hidden = !known(machine);
  if (machine === before) return;
  before = machine;
  if (!known(machine)) return;
  setText(at("machine-name"), machine);
  at("machine-shown").hidden = true;
  setText(at("machine-error"), "");
  at("machine").scrollIntoView({ block: "nearest" });
  zoneKnown.then(() => showMachine(new Question())).catch((error) => setText(at("machine-error"), error.message));
});
