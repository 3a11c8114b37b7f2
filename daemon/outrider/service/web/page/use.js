// CPU use over time, and its power, by outcome of the runs.

import { known, number, percent, sum, time, UNKNOWN, zoneKnown } from "./words.js";
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
  ["thrown_away", "wasted", "--bad"],
  ["completed", "useful: completed their job", "--good"],
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

function draw(answer) {
  const parts = FATES.map(([fate]) => answer.cpus[fate]);
  const means = parts.map((cpus) => sum(cpus) / cpus.length);
  const ended = means[1] + means[2];
  drawLegend("use-legend", means, (mean) => `${number(mean, 1)} CPUs`);
  const waste = ended > 0 ? `${percent(means[1] / ended)} of the CPU time of ended runs was wasted` : "no run has ended";
  const cut = answer.is_cut ? " Too many runs are on record to read: this is the last part." : "";
  setText(
    at("use-summary"),
    `From ${time(answer.begin_s)} to ${time(answer.end_s)}: ${number(sum(means), 1)} CPUs in use on average, ${number(sum(answer.starts))} starts; ${waste}.${cut}`,
  );
  const span_s = answer.end_s - answer.begin_s;
  cpusChart.draw(answer.time_s, parts, span_s);
  drawPower(answer, span_s);
}

function drawPower(answer, span_s) {
  const parts = FATES.map(([fate]) => answer.table_w[fate]);
  const means = parts.map((watts) => sum(watts) / watts.length);
  const isKnown = answer.watts_known_ratio !== 0;
  drawLegend("power-legend", means, (mean) => (isKnown ? `${number(mean)} W` : UNKNOWN));
  at("power-chart").hidden = !isKnown;
  wattsChart.draw(answer.time_s, parts, span_s);
  setText(at("power-summary"), power(answer.watts_known_ratio, sum(means)));
}

function power(known_ratio, mean_w) {
  if (!known(known_ratio)) return "No run in this window.";
  if (known_ratio === 0) return "The watts of these machines are not known, so nothing is estimated.";
  const missing = known_ratio < 0.9995 ? ` Machines with ${percent(1 - known_ratio)} of the CPU time are not included: their watts are not known.` : "";
  return `${number(mean_w)} W on average for runs, estimated: each busy CPU draws its share of the machine's declared watts. Nothing here is measured. Idle and sleeping machines and those used by owners are not included.${missing}`;
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
    zoneKnown.then(() => showUse(new Question())).catch((error) => setText(at("use-summary"), error.message));
  before = window;
});
