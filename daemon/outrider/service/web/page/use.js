// CPUs in use over time, and their watts, by what became of the runs.

import { known, number, percent, sum, time, UNKNOWN, zoneTold } from "./words.js";
import { at, setText } from "./elements.js";
import { Question } from "./asking.js";
import { legend } from "./charts.js";
import { Stacked } from "./stacked.js";
import { go, onRoute, route } from "./views.js";

const VIEW = "now";
const USUAL = "24h";
// those that lie below others are drawn last
const FATES = [
  ["open", "not ended yet", "--violet"],
  ["thrown_away", "thrown away", "--bad"],
  ["completed", "kept: completed their job", "--good"],
];

const KINDS = { open: "open", thrown_away: "badput", completed: "goodput" };
const COLOURS = FATES.map(([, , colour]) => colour);
const cpusChart = new Stacked(at("use-chart"), COLOURS);
const wattsChart = new Stacked(at("power-chart"), COLOURS);

/** Ask for the window in the address, and draw it; nothing where it is not shown. */
export async function showUse(question) {
  const { view, filters } = route();
  if (view !== VIEW) return;
  draw(await question.ask(`api/v1/use?window=${filters.get("window") ?? USUAL}`));
}

function draw(told) {
  const parts = FATES.map(([fate]) => told.cpus[fate]);
  const means = parts.map((cpus) => sum(cpus) / cpus.length);
  const ended = means[1] + means[2];
  drawLegend("use-legend", means, (mean) => `${number(mean, 1)} CPUs`);
  const waste = ended > 0 ? `${percent(means[1] / ended)} of the CPU time of runs that have ended was thrown away` : "no run has ended";
  const cut = told.is_cut ? " More runs are on record than are read, so this is the last part alone." : "";
  setText(
    at("use-summary"),
    `From ${time(told.begin_s)} to ${time(told.end_s)}: ${number(sum(means), 1)} CPUs in use in the mean, ${number(sum(told.starts))} starts; ${waste}.${cut}`,
  );
  const span_s = told.end_s - told.begin_s;
  cpusChart.draw(told.time_s, parts, span_s);
  drawPower(told, span_s);
}

function drawPower(told, span_s) {
  const parts = FATES.map(([fate]) => told.table_w[fate]);
  const means = parts.map((watts) => sum(watts) / watts.length);
  const isKnown = told.watts_known_ratio !== 0;
  drawLegend("power-legend", means, (mean) => (isKnown ? `${number(mean)} W` : UNKNOWN));
  at("power-chart").hidden = !isKnown;
  wattsChart.draw(told.time_s, parts, span_s);
  setText(at("power-summary"), power(told.watts_known_ratio, sum(means)));
}

function power(known_ratio, mean_w) {
  if (!known(known_ratio)) return "No run in this window.";
  if (known_ratio === 0) return "The watts of these machines are not known, so nothing is estimated.";
  const missing = known_ratio < 0.9995 ? ` Machines of ${percent(1 - known_ratio)} of the CPU time are not in it: their watts are not known.` : "";
  return `${number(mean_w)} W in the mean for runs, estimated: each CPU at work draws its share of the busy machine's watts by the table. Nothing here is measured; machines that idle, sleep or are used by their owners are not in it.${missing}`;
}

function drawLegend(name, means, worded) {
  const entries = FATES.map(([fate, words], place) => ({ kind: KINDS[fate], name: words, value: worded(means[place]) }));
  legend(at(name), entries.reverse());
}

for (const button of document.querySelectorAll("#use-windows button"))
  button.addEventListener("click", () => go({ window: button.value === USUAL ? "" : button.value }));

let before = null;
onRoute(({ view, filters }) => {
  const window = view === VIEW ? (filters.get("window") ?? USUAL) : null;
  for (const button of document.querySelectorAll("#use-windows button"))
    button.setAttribute("aria-pressed", String(button.value === window));
  if (known(window) && window !== before)
    zoneTold.then(() => showUse(new Question())).catch((error) => setText(at("use-summary"), error.message));
  before = window;
});
