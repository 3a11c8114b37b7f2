// CPUs in use over time, by what became of the runs; drawn by uPlot, which lies beside this file.

import { known, number, percent, siteZone, sum, time } from "./words.js";
import { at, setText } from "./elements.js";
import { Question } from "./asking.js";
import { legend } from "./charts.js";
import { go, onRoute, route } from "./views.js";

const VIEW = "now";
const USUAL = "24h";
const HEIGHT = 190;
// those that lie below others are drawn last
const FATES = [
  ["open", "not ended yet", "--violet"],
  ["thrown_away", "thrown away", "--bad"],
  ["completed", "kept: completed their job", "--good"],
];

let plot = null;

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
  legend(
    at("use-legend"),
    FATES.map(([fate, name], place) => ({
      kind: { open: "open", thrown_away: "badput", completed: "goodput" }[fate],
      name,
      value: `${number(means[place], 1)} CPUs`,
    })).reverse(),
  );
  const waste = ended > 0 ? `${percent(means[1] / ended)} of the CPU time of runs that have ended was thrown away` : "no run has ended";
  const cut = told.is_cut ? " More runs are on record than are read, so this is the last part alone." : "";
  setText(
    at("use-summary"),
    `From ${time(told.begin_s)} to ${time(told.end_s)}: ${number(sum(means), 1)} CPUs in use in the mean, ${number(sum(told.starts))} starts; ${waste}.${cut}`,
  );
  const stacked = parts.map((_, place) =>
    told.time_s.map((_, part) => sum(parts.slice(place).map((cpus) => cpus[part]))),
  );
  chart([told.time_s, ...stacked], told.end_s - told.begin_s);
}

function chart(data, span_s) {
  const box = at("use-chart");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const options = {
    width: Math.max(200, box.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
    axes: [
      { ...axis, values: (_, moments) => moments.map((moment) => tick(moment, span_s)) },
      { ...axis, values: (_, values) => values.map((value) => number(value, 1)) },
    ],
    series: [{}, ...FATES.map(([, , name]) => ({ stroke: colour(name), fill: colour(name), width: 0, points: { show: false } }))],
    tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), siteZone()),
  };
  plot?.destroy();
  plot = new uPlot(options, data, box);
}

function tick(moment, span_s) {
  const [day, month, , timeOfDay] = time(moment).split(" ");
  return span_s > 2 * 86400 ? `${day} ${month}` : timeOfDay;
}

for (const button of document.querySelectorAll("#use-windows button"))
  button.addEventListener("click", () => go({ window: button.value === USUAL ? "" : button.value }));

let before = null;
onRoute(({ view, filters }) => {
  const window = view === VIEW ? (filters.get("window") ?? USUAL) : null;
  for (const button of document.querySelectorAll("#use-windows button"))
    button.setAttribute("aria-pressed", String(button.value === window));
  if (known(window) && window !== before)
    showUse(new Question()).catch((error) => setText(at("use-summary"), error.message));
  before = window;
});
