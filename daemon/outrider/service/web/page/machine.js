// One machine, by its address "#/machines?machine=NAME": what it does now, and its history.

import { duration, known, number, percent, plural, time, UNKNOWN, zoneTold } from "./words.js";
import { at, setText } from "./elements.js";
import { NoAnswer, Question } from "./asking.js";
import { pairs } from "./charts.js";
import { fillHeatMap, heatMap } from "./heatmap.js";
import { fillTable } from "./lists.js";
import { go, onRoute, route } from "./views.js";

const VIEW = "machines";
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
const STATES = { owner: "its owner is there", closed: "not open to jobs" };
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
  ["What became of it", (row) => (row.lost_because ? `thrown away: ${row.lost_because.replaceAll("_", " ")}` : "completed its job")],
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
  let told = null;
  let why = "";
  try {
    told = await question.ask(`api/v1/machine/${encodeURIComponent(machine)}`);
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    why = error.message;
  }
  if (machine !== chosen()) return; // another was chosen meanwhile
  setText(at("machine-error"), why);
  at("machine-told").hidden = told === null;
  if (told !== null) draw(told);
}

function draw(told) {
  const { watts, failed_starts: starts } = told;
  pairs(at("machine-facts"), [
    ["State", `${STATES[told.state] ?? told.state}, since ${time(told.since_s)}`],
    ["Machine group", told.cluster],
    ["CPUs busy", `${number(told.busy_cpus)} of ${number(told.cpus)}`],
    ["Watts now", known(watts.now_w) ? `${number(watts.now_w)} W, ${watts.is_measured ? "by its meter" : "by the table"}` : UNKNOWN],
    ["Watts by the table", [["busy", watts.active_w], ["idle", watts.idle_w], ["asleep", watts.sleep_w]].map(([name, value]) => `${name} ${known(value) ? `${number(value)} W` : UNKNOWN}`).join(", ")],
    ["Failed starts", failedStarts(starts), starts.is_black_hole],
    ["Known from", told.inferred ? "its jobs alone" : "the batch system"],
  ]);
  fillTable("machine-jobs", JOBS, told.jobs, (row) => row.job, "no job is on it now");
  const more = told.jobs_total - told.jobs.length;
  setText(at("machine-jobs-shown"), more > 0 ? `and ${plural(more, "job", "jobs")} that began later` : "");
  const none = told.runs === null ? "this journal cannot be asked by machine" : "no run that ended on it is on record";
  fillTable("machine-runs", RUNS, told.runs ?? [], (row) => `${row.job} ${row.start_s}`, none);
  drawWeek(told.owner_week);
}

function failedStarts({ within_s, tried, failed, is_black_hole, expected_ratio }) {
  if (!tried) return `no start on it in the last ${duration(within_s)}`;
  const counts = `${number(failed)} of ${plural(tried, "job", "jobs")} in the last ${duration(within_s)}`;
  return is_black_hole ? `${counts}: a black hole; elsewhere ${percent(expected_ratio)} of these users' jobs fail` : counts;
}

function drawWeek(told) {
  week.hidden = !told;
  setText(
    at("machine-week-summary"),
    told
      ? `Share of the time in which the owner was there, by the site's clock, since ${time(told.since_s)}: ${plural(told.sessions, "session", "sessions")}.`
      : "No owner was seen to come, as far as the journal holds.",
  );
  if (!told) return;
  const rows = told.share.map((values, place) => ({ label: DAYS[place], values }));
  fillHeatMap(week, { name: "Owner there", learned: { title: "by hour of the week", columns: HOURS, rows, unit: "of the time" } });
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
  at("machine-told").hidden = true;
  setText(at("machine-error"), "");
  at("machine").scrollIntoView({ block: "nearest" });
  zoneTold.then(() => showMachine(new Question())).catch((error) => setText(at("machine-error"), error.message));
});
