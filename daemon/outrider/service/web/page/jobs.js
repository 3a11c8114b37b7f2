// The table of jobs that wait: a page of it, whatever their number, in the order they became known.

import { duration, known, number } from "./words.js";
import { at, headRow, keyed, make, orNone, setText } from "./elements.js";
import { Question } from "./asking.js";
import { explain, offerExamples } from "./explain.js";
import { startCell, startsSummary } from "./starts.js";

const ROWS = 10;
const EXAMPLES = 4;
const FACTS = ["Waiting", "User", "VO", "Class", "CPUs"];

let after = null; // the cursor of the page before; null: from the first
let next = null;

/** Ask for the page of the table that is open, and draw it. */
export async function showJobs(question) {
  const from = known(after) ? `&after=${after}` : "";
  const answer = await question.ask(
    `api/v1/jobs?state=queued&candidates=true&limit=${ROWS}${from}`,
  );
  if (known(after) && !answer.jobs.length) {
    after = null; // those on this page have started
    await showJobs(question);
    return;
  }
  next = answer.next ?? null;
  draw(answer);
  offerExamples(answer.jobs.slice(0, EXAMPLES));
}

function draw({ jobs, total, expected_starts, now_s }) {
  const policies = [...new Set(jobs.flatMap((job) => Object.keys(job.expected_start_under ?? {})))];
  setText(at("starts-summary"), startsSummary(expected_starts, now_s, policies.length > 0));
  const would = policies.map((policy) => `Would start under ${policy}`);
  const columns = ["Job", "Expected start", ...would, ...FACTS];
  keyed(at("jobs-head"), [columns], (names) => names.join("\n"), headRow, () => {});
  keyed(
    at("jobs"),
    orNone(jobs, "no job waits"),
    (job) => job.key ?? [job.job, ...policies].join("\n"),
    (job) => bodyRow(job, columns.length),
    (line, job) => {
      if (!job.none)
        cells(job, policies, now_s).forEach((text, place) => setText(line.children[place + 1], text));
    },
  );
  const order = known(after) ? "further down" : "those known longest";
  setText(
    at("jobs-shown"),
    total > jobs.length ? `${number(jobs.length)} of ${number(total)}, ${order}` : "",
  );
  at("jobs-first").hidden = !known(after);
  at("jobs-next").hidden = !known(next);
}

function bodyRow(job, columns) {
  const line = make("tr");
  if (job.none) {
    const cell = make("td", "none", job.none);
    cell.colSpan = columns;
    line.append(cell);
    return line;
  }
  const head = make("th");
  head.scope = "row";
  const button = make("button", "link", job.job);
  button.type = "button";
  button.addEventListener("click", () => {
    explain(job.job);
    at("explain-form").scrollIntoView({ block: "nearest" });
  });
  head.append(button);
  const starts = columns - FACTS.length - 1;
  const others = Array.from({ length: columns - 1 }, (_, place) =>
    make("td", place < starts ? "start" : ""),
  );
  line.append(head, ...others);
  return line;
}

function cells(job, policies, now_s) {
  const under = job.expected_start_under ?? {};
  return [
    startCell(job.expected_start_answer, job.expected_start, now_s),
    ...policies.map((policy) => startCell(answerUnder(under, policy), under[policy], now_s)),
    duration(job.waiting_s),
    job.user,
    job.vo,
    job.class,
    number(job.cpus),
  ];
}

/** Rows tell no word for it: null is not known, a policy that is missing said nothing. */
function answerUnder(under, policy) {
  const start = under[policy];
  if (start === undefined) return "not_said";
  if (start === null) return "not_known";
  return start.low_s === start.high_s ? "next_pass" : "interval";
}

function turn(to) {
  after = to;
  showJobs(new Question()).catch((error) => setText(at("jobs-shown"), error.message));
}

at("jobs-first").addEventListener("click", () => turn(null));
at("jobs-next").addEventListener("click", () => turn(next));
