// The form "why is this job waiting?".

import { UNKNOWN, duration, known, number, setZone, significant, time } from "./words.js";
import { at, keyed, make, setText } from "./elements.js";
import { NoAnswer, Question } from "./asking.js";
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
  const facts = [`${answer.job}: ${answer.state ?? "not here any more"}`];
  if (known(answer.since_s)) facts.push(`since ${time(answer.since_s)}`);
  if (known(answer.held_because) && !answer.cause?.includes(answer.held_because)) {
    facts.push(`held because: ${answer.held_because}`);
  }
  if (known(answer.waiting_s)) facts.push(`waiting for ${duration(answer.waiting_s)}`);
  if (answer.alike?.total > 1) {
    const { ahead, total } = answer.alike;
    facts.push(`number ${number(ahead + 1)} of ${number(total)} jobs of this user with the same request`);
  }
  facts.push(answer.source === "ledger" ? "source: journal" : "source: daemon");
  const remedies = [...(answer.batch_system?.remedies ?? []), ...(answer.remedies ?? [])];
  const decided = answer.policy_lines ?? [];
  const starts = answer.start_lines ?? [];
  return [
    make("p", "answer", answer.cause || answer.sentence),
    make("p", "quiet", `${facts.join(" · ")}.`),
    ...(answer.no_data ?? []).map(({ text }) => make("p", "warn", `${text}.`)),
    ...(answer.withheld ? [make("p", "quiet", `Withheld: ${answer.withheld}.`)] : []),
    ...(remedies.length ? [listView("What would change it", "remedies", remedies)] : []),
    ...(starts.length ? [listView("Expected start", "starts", starts)] : []),
    ...(decided.length ? [listView("What policies would do", "choices", decided)] : []),
    ...(answer.batch_system_errors ?? []).map((why) => make("p", "warn", `No answer: ${why}.`)),
    ...(answer.runs?.length
      ? [listView("Ended runs", "runs", answer.runs.map((run) => run.text))]
      : []),
    ...(answer.batch_system ? [batchSystemView(answer.batch_system)] : []),
    ...answer.policies.map(policyView),
  ];
}

function listView(title, kind, lines) {
  const box = make("article");
  box.append(make("h3", "", title), listed(title, kind, lines));
  return box;
}

/** A closed fold: the numbers behind the sentences above. */
function fold(title, tag) {
  const box = make("details");
  const head = make("summary", "", title);
  if (tag) head.append(" ", make("span", "tag", tag));
  box.append(head);
  return box;
}

/** The batch system's own numbers: machines, jobs ahead, and each condition. */
function batchSystemView(answer) {
  const box = fold(`Numbers of ${answer.adapter}`, answer.code);
  box.append(make("p", "", `${answer.sentence}.`));
  const facts = [];
  if (known(answer.machines)) facts.push(`${number(answer.machines)} machines may run it`);
  if (known(answer.ahead)) facts.push(`${number(answer.ahead)} jobs before it`);
  if (facts.length) box.append(make("p", "quiet", `${facts.join(" · ")}.`));
  if (answer.clauses.length) box.append(clauseTable(answer.clauses, answer.removes_most));
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

function policyView(view) {
  const box = fold(`Numbers of ${view.name}`, "");
  const look = known(view.until_s)
    ? `next look ${time(view.until_s)}`
    : "looks again when a machine is free";
  const facts = [look];
  if (known(view.decided_s)) facts.push(`decided ${time(view.decided_s)}`);
  if (known(view.propensity)) facts.push(`chosen with probability ${number(view.propensity, 3)}`);
  if (known(view.seq)) facts.push(`journal row ${view.seq}`);
  box.append(make("p", "", view.explanation), make("p", "quiet", `${facts.join(" · ")}.`));
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
