// Users and VOs: shares against targets and waits by VO, who waits and who runs by user.

import { duration, known, number, percent, UNKNOWN, zoneKnown } from "./words.js";
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
  ["Median wait so far", (row) => waited(row.wait_p50_s)],
  ["95 % up to", (row) => waited(row.wait_p95_s)],
  ["Longest wait", (row) => waited(row.longest_wait_s)],
  ["Wasted so far", (row) => duration(row.lost_s)],
];
const VOS = [
  ["VO", (row) => row.vo],
  ["Share of CPU time", (row) => percent(row.share)],
  ["Target", (row) => percent(row.target)],
  ["Jobs started", (row) => number(row.started)],
  ["Mean wait", (row) => duration(row.wait_mean_s)],
  ["Median wait", (row) => quantile(row.wait_p50_s)],
  ["p95 wait", (row) => quantile(row.wait_p95_s)],
  ["Wasted CPU time", (row) => wasted(row)],
];

function waited(some_s) {
  return known(some_s) ? duration(some_s) : "none waits";
}

/** About where it lies, and the bounds between which it does. */
function quantile(bucket) {
  if (!known(bucket)) return UNKNOWN;
  if (!known(bucket.high)) return `over ${duration(bucket.low)}`;
  return `${duration(bucket.about)} (${duration(bucket.low)} to ${duration(bucket.high)})`;
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
  fillTable("user-rows", USERS, answer.users, (row) => `${row.user}\n${row.vo}`, "no user has a job here");
  const more = answer.total - answer.users.length;
  setText(at("user-rows-shown"), more > 0 ? `and ${number(more)} with fewer CPUs in use` : "");
}

onRoute(({ view }) => {
  if (view === VIEW) zoneKnown.then(() => showUsers(new Question())).catch((error) => setText(at("user-rows-shown"), error.message));
});
