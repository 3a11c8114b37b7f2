// The form "why is this job waiting?".

import { UNKNOWN, duration, known, number, setZone, significant, time } from "./words.js";
import { at, keyed, make, setText } from "./elements.js";
import { NoAnswer, Question } from "./asking.js";
import { startLines } from "./starts.js";
import { go, onRoute, route } from "./views.js";

/** Offer a few jobs that wait now. */
export function offerExamples(jobs) {
  setText(at("examples-title"), jobs.length ? "waiting now:" : "no job waits now");
  keyed(
    at("examples"),
    jobs,
    ({ job }) => job,
    ({ job }) => offer(job),
    () => {},
  );
}

/** A button that explains a job. */
function offer(job) {
  const button = make("button", "", job);
  button.type = "button";
  button.addEventListener("click", () => explain(job));
  return button;
}

let question = null;
let asked = "";

/** Ask why a job is where it is: by the address, so that the answer can be linked to. */
export function explain(job) {
  if (route().filters.get("job") === job) ask(job);
  else go({ job });
}

async function ask(job) {
  asked = job;
  at("explain-job").value = job;
  question?.abort();
  const mine = new Question();
  question = mine;
  try {
    const answer = await mine.ask(`api/v1/explain/${encodeURIComponent(job)}`);
    setZone(answer.timezone);
    at("explanation").replaceChildren(...explanation(answer));
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    if (mine !== question) return;
    const why = make("p", "warn", error.message);
    at("explanation").replaceChildren(why, ...error.candidates.map(offer));
  }
}

function explanation(answer) {
  const source = answer.source === "ledger" ? "read from the ledger" : "told by the daemon";
  const facts = [`${answer.job}: ${answer.state ?? "not here any more"}`];
  if (known(answer.since_s)) facts.push(`since ${time(answer.since_s)}`);
  if (known(answer.held_because) && !answer.batch_system) {
    facts.push(`held because: ${answer.held_because}`);
  }
  if (known(answer.waiting_s)) facts.push(`waited ${duration(answer.waiting_s)}`);
  if (answer.alike?.total > 1) {
    const { ahead, total } = answer.alike;
    facts.push(`number ${number(ahead + 1)} of ${number(total)} of this user that ask for the same`);
  }
  facts.push(source);
  const starts = startLines(answer);
  return [
    make("p", "answer", answer.sentence),
    make("p", "quiet", `${facts.join(" · ")}.`),
    ...(starts.length ? [startsView(starts)] : []),
    ...(answer.batch_system ? [batchSystemView(answer.batch_system)] : []),
    ...(answer.remedies?.length ? [remediesView(answer.remedies)] : []),
    ...(answer.batch_system_errors ?? []).map((why) => make("p", "warn", `No answer: ${why}.`)),
    ...(answer.runs?.length ? [runsView(answer.runs)] : []),
    ...answer.policies.map(policyView),
  ];
}

/** What would change it by what Outrider itself knows. */
function remediesView(remedies) {
  const title = "What would change it, by what Outrider knows";
  const box = make("article");
  box.append(make("h3", "", title), listed(title, "remedies", remedies));
  return box;
}

/** When it is expected to start: under the batch system's rule, under each policy. */
function startsView(lines) {
  const title = "When it is expected to start";
  const box = make("article");
  box.append(make("h3", "", title), listed(title, "starts", lines));
  return box;
}

function runsView(runs) {
  const box = make("article");
  box.append(make("h3", "", "Runs that have ended"), listed("Runs", "runs", runs.map(runLine)));
  return box;
}

function runLine({ machine, start_s, run_s, lost_because }) {
  const how = known(lost_because) ? `lost (${lost_because.replaceAll("_", " ")})` : "completed";
  return `ran on ${machine} from ${time(start_s)} for ${duration(run_s)}: ${how}`;
}

/** What the batch system itself says: its reason, its numbers, what would change it. */
function batchSystemView(said) {
  const box = make("article");
  const head = make("h3", "", `${said.adapter} says`);
  if (said.code) head.append(" ", make("span", "tag", said.code));
  box.append(head, make("p", "", `${said.sentence}.`));
  const facts = [];
  if (known(said.machines)) facts.push(`${number(said.machines)} machines may run it`);
  if (known(said.ahead)) facts.push(`${number(said.ahead)} jobs before it`);
  if (facts.length) box.append(make("p", "quiet", `${facts.join(" · ")}.`));
  if (said.remedies.length) {
    const title = "What would change it";
    box.append(make("p", "quiet", `${title}:`), listed(title, "remedies", said.remedies));
  }
  if (said.clauses.length) box.append(clauseTable(said.clauses, said.removes_most));
  return box;
}

function listed(title, kind, lines) {
  const list = make("ul", kind);
  list.setAttribute("aria-label", title);
  list.append(...lines.map((line) => make("li", "", line)));
  return list;
}

function clauseTable(clauses, removesMost) {
  const table = make("table", "clauses");
  const row = (tag, ...cells) => {
    const line = make("tr");
    line.append(...cells.map((cell) => make(tag, "", cell)));
    return line;
  };
  table.append(row("th", "condition", "machines that meet it", "machines left without it"));
  for (const { text, machines, without_it } of clauses) {
    const line = row("td", text, number(machines), number(without_it));
    if (text === removesMost) line.firstChild.append(" ", make("span", "tag", "removes most"));
    table.append(line);
  }
  return table;
}

function intention({ action, reason, cluster }) {
  if (!known(action)) return "not asked yet";
  const where = known(cluster) ? ` on ${cluster}` : "";
  return `would ${action}${where}: ${(reason ?? UNKNOWN).replaceAll("_", " ")}`;
}

function policyView(view) {
  const box = make("article");
  const head = make("h3", "", view.name);
  head.append(" ", make("span", "tag", intention(view)));
  const look = known(view.until_s)
    ? `next look ${time(view.until_s)}`
    : "looks again when a machine frees";
  const facts = [look];
  if (known(view.decided_s)) facts.push(`decided ${time(view.decided_s)}`);
  if (known(view.propensity)) facts.push(`chosen with probability ${number(view.propensity, 3)}`);
  if (known(view.seq)) facts.push(`ledger row ${view.seq}`);
  box.append(head, make("p", "", view.explanation), make("p", "quiet", `${facts.join(" · ")}.`));
  const scores = Object.entries(view.scores ?? {});
  if (scores.length) {
    const table = make("ul", "scores");
    table.setAttribute("aria-label", `Scores of ${view.name}`);
    for (const [name, value] of scores) {
      const row = make("li");
      row.append(
        make("span", "", name),
        make("span", "", known(value) ? significant(value) : UNKNOWN),
      );
      table.append(row);
    }
    box.append(table);
  }
  return box;
}

at("explain-form").addEventListener("submit", (event) => {
  event.preventDefault();
  explain(at("explain-job").value.trim());
});

onRoute(({ filters }) => {
  const job = filters.get("job") ?? "";
  if (job && job !== asked) ask(job);
  if (!job) {
    asked = "";
    question?.abort();
    at("explanation").replaceChildren();
  }
});
