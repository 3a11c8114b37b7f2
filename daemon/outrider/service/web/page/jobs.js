// The table of jobs: a page of it, whatever their number, filtered and sorted by the daemon.

import { duration, known, number } from "./words.js";
import { at, keyed, make, orNone, setText } from "./elements.js";
import { Question } from "./asking.js";
import { explain, offerExamples } from "./explain.js";
import { Pager, filterForm, onList } from "./lists.js";
import { Sorting } from "./sorting.js";
import { startCell } from "./starts.js";
import { route } from "./views.js";

const VIEW = "jobs";
const ROWS = 25;
const EXAMPLES = 4;
const FACTS = ["State", "Waiting", "User", "VO", "Class", "CPUs", "Wasted", "Reason"];
const FACTS_OF_RUNS = ["Machine", "Group", "Runs for"];
const SORTED_BY = {
  Job: "known",
  Waiting: "waiting_s",
  "Runs for": "run_s",
  Wasted: "lost_s",
  CPUs: "cpus",
};
const ORDERS = {
  known: "known longest first",
  "-known": "the newest first",
  waiting_s: "the shortest wait first",
  "-waiting_s": "the longest wait first",
  run_s: "the shortest run first",
  "-run_s": "the longest run first",
  lost_s: "least wasted first",
  "-lost_s": "most wasted first",
  cpus: "the fewest CPUs first",
  "-cpus": "the most CPUs first",
};

const pager = new Pager("jobs", () => refresh());
const sorting = new Sorting(SORTED_BY, "known");
const filters = filterForm("job-filters");
const chosen = {
  take: (given) => filters.take(given),
  query: () => filters.query() + sorting.query(),
};

/** Ask for the page of the table that is open, and draw it; elsewhere, for a few that wait. */
export async function showJobs(question) {
  const isShown = route().view === VIEW;
  const what = isShown
    ? `&limit=${ROWS}${chosen.query()}${pager.query}`
    : `&limit=${EXAMPLES}&state=queued`;
  const answer = await question.ask(`api/v1/jobs?candidates=true${what}`);
  if (isShown && known(pager.after) && !answer.jobs.length) {
    pager.after = null; // those on this page have started
    await showJobs(question);
    return;
  }
  if (isShown) draw(answer);
  offerExamples(answer.jobs.filter(({ state }) => state === "queued").slice(0, EXAMPLES));
}

/** Label the filter with the batch system's own words, and ours where two states share one. */
function nameStates(words) {
  const shared = (word) => Object.values(words).filter((other) => other === word).length > 1;
  for (const option of at("job-filters").elements.state.options) {
    const word = words[option.value] ?? option.value;
    setText(option, shared(word) ? `${word} (${option.value})` : word);
  }
}

function draw({ jobs, total, next, now_s, state_words }) {
  nameStates(state_words ?? {});
  const policies = [...new Set(jobs.flatMap((job) => Object.keys(job.expected_start_under ?? {})))];
  at("starts-under").hidden = !policies.length;
  const would = policies.map((policy) => `Start under ${policy}`);
  const runs = jobs.some(({ state }) => state !== "queued");
  const columns = ["Job", "Expected start", ...would, ...FACTS, ...(runs ? FACTS_OF_RUNS : [])];
  const starts = 1 + would.length;
  keyed(
    at("jobs-head"),
    [columns],
    (names) => names.join("\n"),
    (names) => sorting.headRow(names),
    (line) => sorting.mark(line),
  );
  keyed(
    at("jobs"),
    orNone(jobs, "no such job is here"),
    (job) => job.key ?? [job.job, ...columns].join("\n"),
    (job) => bodyRow(job, columns.length, starts),
    (line, job) => {
      if (!job.none)
        cells(job, policies, now_s, runs).forEach((text, place) =>
          setText(line.children[place + 1], text),
        );
    },
  );
  pager.show(jobs.length, total, next, ORDERS[sorting.order] ?? "");
}

function bodyRow(job, columns, starts) {
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
  const others = Array.from({ length: columns - 1 }, (_, place) =>
    make("td", place < starts ? "start" : ""),
  );
  line.append(head, ...others);
  return line;
}

function cells(job, policies, now_s, runs) {
  const under = job.expected_start_under ?? {};
  const waits = job.state === "queued";
  return [
    waits ? startCell(job.expected_start_answer, job.expected_start, now_s) : "",
    ...policies.map((policy) =>
      waits ? startCell(answerUnder(under, policy), under[policy], now_s) : "",
    ),
    job.state_word || job.state,
    waits ? duration(job.waiting_s) : "",
    job.user,
    job.vo,
    job.class,
    number(job.cpus),
    job.lost_s > 0 ? duration(job.lost_s) : "",
    job.reason_text ?? job.reason ?? "",
    ...(runs ? [job.machine ?? "", job.group ?? "", ran(job)] : []),
  ];
}

const ran = (job) => (known(job.run_s) ? duration(job.run_s) : "");

/** The answer under a policy: null is not known; a policy that is missing has none. */
function answerUnder(under, policy) {
  const start = under[policy];
  if (start === undefined) return "not_said";
  if (start === null) return "not_known";
  return start.low_s === start.high_s ? "next_pass" : "interval";
}

function refresh() {
  showJobs(new Question()).catch((error) => setText(at("jobs-shown"), error.message));
}

onList(VIEW, chosen, pager, refresh);
