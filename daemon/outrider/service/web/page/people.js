// Users and VOs: shares against targets and waits by VO, who waits and who runs by user.

import { UNKNOWN, duration, known, number, percent } from "./words.js";
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
  ["Longest wait", (row) => (known(row.longest_wait_s) ? duration(row.longest_wait_s) : "none waits")],
  ["Thrown away so far", (row) => duration(row.lost_s)],
];
const VOS = [
  ["VO", (row) => row.vo],
  ["Share of CPU time", (row) => percent(row.share)],
  ["Target", (row) => percent(row.target)],
  ["Jobs started", (row) => number(row.waits?.n ?? 0)],
  ["Mean wait", (row) => (row.waits ? duration(row.waits.mean) : UNKNOWN)],
];

export function drawVos(s) {
  const { share, target } = s.fairness;
  const names = [...new Set([...Object.keys(target), ...Object.keys(share)])].sort();
  const rows = names.map((vo) => ({ vo, share: share[vo], target: target[vo], waits: s.wait_s.by_vo[vo] }));
  fillTable("vos", VOS, rows, (row) => row.vo, "no VO has jobs yet");
}

/** Ask for the users who have jobs now, and draw them; nothing where they are not shown. */
export async function showUsers(question) {
  if (route().view !== VIEW) return;
  const answer = await question.ask("api/v1/users?limit=200");
  fillTable("user-rows", USERS, answer.users, (row) => `${row.user}\n${row.vo}`, "nobody has a job here");
  const more = answer.total - answer.users.length;
  setText(at("user-rows-shown"), more > 0 ? `and ${number(more)} with fewer CPUs in use` : "");
}

onRoute(({ view }) => {
  if (view === VIEW) showUsers(new Question()).catch((error) => setText(at("user-rows-shown"), error.message));
});
