// Users and VOs: shares against targets and waits by VO, who waits and who runs by user.

import { duration, known, number, percent, UNKNOWN, zoneTold } from "./words.js";
import { at, setText } from "./elements.js";
import { Question } from "./asking.js";
import { fillTable } from "./lists.js";
import { onRoute, route } from "./views.js";

const VIEW = "users";
const USERS = [
  ["User", (row) => row.user || "(not named)"],
  ["VO", (row) => row.vo],
  ["Waiting", (row) => number(row.queued)],
  ["Running", (row) => number(row.running)],
  ["Held", (row) => number(row.held)],
  ["CPUs in use", (row) => number(row.busy_cpus)],
  ["Half have waited up to", (row) => waited(row.wait_p50_s)],
  ["95 % up to", (row) => waited(row.wait_p95_s)],
  ["Longest wait", (row) => waited(row.longest_wait_s)],
  ["Thrown away so far", (row) => duration(row.lost_s)],
];
const VOS = [
  ["VO", (row) => row.vo],
  ["Share of CPU time", (row) => percent(row.share)],
  ["Target", (row) => percent(row.target)],
  ["Jobs started", (row) => number(row.started)],
  ["Mean wait", (row) => duration(row.wait_mean_s)],
  ["Half waited up to", (row) => quantile(row.wait_p50_s)],
  ["95 % waited up to", (row) => quantile(row.wait_p95_s)],
  ["CPU time thrown away", (row) => wasted(row)],
];

function waited(some_s) {
  return known(some_s) ? duration(some_s) : "none waits";
}

/** About where it lies, and the bounds between which it does. */
function quantile(told) {
  if (!known(told)) return UNKNOWN;
  if (!known(told.high)) return `over ${duration(told.low)}`;
  return `${duration(told.about)} (${duration(told.low)} to ${duration(told.high)})`;
}

function wasted({ kept_cpu_s: kept, thrown_away_cpu_s: lost }) {
  return lost > 0 ? `${duration(lost)} (${percent(lost / (kept + lost))})` : "none";
}

/** Ask for the VOs and for the users who have jobs now, and draw them, where they are shown. */
export async function showUsers(question) {
  if (route().view !== VIEW) return;
  const { vos, total } = await question.ask("api/v1/vos?limit=200");
  fillTable("vos", VOS, vos, (row) => row.vo, "no VO has jobs yet");
  setText(at("vos-shown"), total > vos.length ? `and ${number(total - vos.length)} more` : "");
  const answer = await question.ask("api/v1/users?limit=200");
  fillTable("user-rows", USERS, answer.users, (row) => `${row.user}\n${row.vo}`, "nobody has a job here");
  const more = answer.total - answer.users.length;
  setText(at("user-rows-shown"), more > 0 ? `and ${number(more)} with fewer CPUs in use` : "");
}

onRoute(({ view }) => {
  if (view === VIEW) zoneTold.then(() => showUsers(new Question())).catch((error) => setText(at("user-rows-shown"), error.message));
});
