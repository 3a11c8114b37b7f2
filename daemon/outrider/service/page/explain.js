// The form "why is this job waiting?".

import { UNKNOWN, duration, known, number, significant, time } from "./words.js";
import { at, keyed, make } from "./elements.js";
import { PATIENCE_MS, ask } from "./asking.js";

export async function showExamples(signal) {
  const { jobs } = await ask("api/v1/jobs?state=queued&limit=4", signal);
  const box = at("examples");
  const items = jobs.length ? [{ job: null }, ...jobs] : [];
  keyed(
    box,
    items,
    ({ job }) => (job === null ? "label" : `job ${job}`),
    ({ job }) => {
      if (job === null) return make("span", "", "waiting now:");
      const button = make("button", "", job);
      button.type = "button";
      button.addEventListener("click", () => explain(job));
      return button;
    },
    () => {},
  );
}

let question = null;

async function explain(job) {
  at("explain-job").value = job;
  question?.abort();
  const mine = new AbortController();
  question = mine;
  const patience = setTimeout(() => mine.abort("no answer"), PATIENCE_MS);
  const box = at("explanation");
  try {
    const answer = await ask(`api/v1/explain/${encodeURIComponent(job)}`, mine.signal);
    box.replaceChildren(...explanation(answer));
  } catch (error) {
    if (mine !== question) return;
    box.replaceChildren(
      make("p", "warn", error.status ? error.message : "the daemon does not answer"),
    );
  } finally {
    clearTimeout(patience);
  }
}

function explanation(answer) {
  const source = answer.source === "ledger" ? "read from the ledger" : "told by the daemon";
  const facts = [`${answer.job}: ${answer.state}`];
  if (known(answer.since_s)) facts.push(`since ${time(answer.since_s)}`);
  if (known(answer.waiting_s)) facts.push(`waited ${duration(answer.waiting_s)}`);
  facts.push(source);
  return [
    make("p", "answer", answer.sentence),
    make("p", "quiet", `${facts.join(" · ")}.`),
    ...answer.policies.map(policyView),
  ];
}

function policyView(view) {
  const box = make("article");
  const head = make("h3", "", view.name);
  head.append(make("span", "tag", `would ${view.action}: ${view.reason.replaceAll("_", " ")}`));
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
