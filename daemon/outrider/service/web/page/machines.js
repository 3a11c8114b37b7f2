// The table of machines: a page of it, by state and group.

import { known, number } from "./words.js";
import { at, make, setText } from "./elements.js";
import { Question } from "./asking.js";
import { Pager, fillTable, filterForm, onList } from "./lists.js";
import { addressOf } from "./machine.js";
import { route } from "./views.js";

const VIEW = "machines";
const ROWS = 25;
const COLUMNS = [
  ["Machine", (row) => row.machine],
  ["Group", (row) => row.cluster],
  ["State", (row) => `${row.draining ? `${row.state}, draining` : row.state}${row.closed_because ? ` (${row.closed_because})` : ""}`],
  ["CPUs busy", (row) => `${number(row.busy_cpus)} of ${number(row.cpus)}`],
  ["Watts when busy", (row) => (known(row.active_w) ? `${number(row.active_w)} W` : "unknown")],
  ["Known from", (row) => (row.inferred ? "jobs only" : "the batch system")],
];

const pager = new Pager("machine-rows", () => refresh());
const filters = filterForm("machine-filters");

/** Ask for the page of the table that is open, and draw it; nothing where it is not shown. */
export async function showMachines(question) {
  if (route().view !== VIEW) return;
  const answer = await question.ask(`api/v1/machines?limit=${ROWS}${filters.query()}${pager.query}`);
  fillTable("machine-rows", COLUMNS, answer.machines, (row) => row.machine, "no such machine is known");
  linkRows(answer.machines);
  pager.show(answer.machines.length, answer.total, answer.next, "known longest first");
}

/** The name of each machine leads to it. */
function linkRows(machines) {
  machines.forEach(({ machine }, place) => {
    const head = at("machine-rows").rows[place].cells[0];
    if (!head.querySelector("a")) head.replaceChildren(make("a", "", machine));
    head.firstChild.href = addressOf(machine);
  });
}

function refresh() {
  showMachines(new Question()).catch((error) => setText(at("machine-rows-shown"), error.message));
}

onList(VIEW, filters, pager, refresh);
