// Jobs that wait and run, over time, in the window that the address names; drawn by uPlot.

import { compact, duration, known, number, siteZone, sum, time, zoneKnown } from "./words.js";
import { at, make, setText } from "./elements.js";
import { Question } from "./asking.js";
import { onRoute, route } from "./views.js";

const VIEW = "now";
const USUAL = "24h";
const HEIGHT = 190;
// dashed or not, so that hue alone says nothing
const LINES = [
  { name: "waiting", colour: "--amber", dash: [6, 4] },
  { name: "running", colour: "--good", dash: [] },
];

let plot = null;
const windowShown = () => route().filters.get("window") ?? USUAL;

/** Ask for the window in the address, and draw it; nothing where it is not shown. */
export async function showQueue(question) {
  if (route().view !== VIEW) return;
  const asked = windowShown();
  const answer = await question.ask(`api/v1/jobs-over-time?window=${encodeURIComponent(asked)}`);
  if (asked === windowShown()) draw(answer); // else another was chosen since
}

function draw(answer) {
  const lines = LINES.map(({ name }) => answer[name]);
  keyLines(lines);
  setText(at("queue-summary"), `${lines.map(inWords).join("; ")}. ${within(answer)}`);
  const middles = answer.waiting.map((_, place) => answer.begin_s + (place + 0.5) * answer.step_s);
  const data = [middles, ...lines];
  plot ??= chart(data);
  plot.setData(data);
}

function inWords(values, place) {
  const { name } = LINES[place];
  const there = values.filter(known);
  if (!there.length) return `${name}: not known yet`;
  return `${name}: ${number(sum(there) / there.length, 1)} on average, ${number(Math.max(...there), 1)} at most`;
}

function within(answer) {
  const begin_s = Math.max(answer.begin_s, answer.known_from_s);
  return `From ${time(begin_s)} to ${time(answer.now_s)}, means over ${duration(answer.step_s)}; held jobs count as waiting.`;
}

/** The key, with the last value of each line. */
function keyLines(lines) {
  const list = at("queue-lines");
  LINES.forEach(({ name, colour }, place) => {
    if (!list.children[place]) {
      const item = make("li");
      item.dataset.line = colour.slice(2);
      list.append(item);
    }
    setText(list.children[place], `${name}: ${number(lines[place].findLast(known), 1)}`);
  });
}

function chart(data) {
  const box = at("queue-chart");
  const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const ticks = ({ data: [moments] }, splits) => {
    const isLong = moments.at(-1) - moments[0] > 2 * 86400;
    return splits.map((moment) => {
      const [day, month, , timeOfDay] = time(moment).split(" ");
      return isLong ? `${day} ${month}` : timeOfDay;
    });
  };
  const options = {
    width: Math.max(200, box.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, 1.05 * (high ?? 0))] } },
    axes: [
      { ...axis, values: ticks },
      { ...axis, values: (_, values) => values.map((value) => compact(value)) },
    ],
    series: [
      {},
      ...LINES.map(({ colour: name, dash }) => ({ stroke: colour(name), width: 2, dash, points: { show: false } })),
    ],
    tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), siteZone()),
  };
  const made = new uPlot(options, data, box);
  new ResizeObserver(() => {
    const width = Math.max(200, box.clientWidth);
    if (box.clientWidth && width !== made.width) made.setSize({ width, height: HEIGHT });
  }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => made.redraw(false));
  return made;
}

let before = null;
onRoute(({ view }) => {
  const window = view === VIEW ? windowShown() : null;
  if (known(window) && window !== before)
    zoneKnown.then(() => showQueue(new Question())).catch((error) => setText(at("queue-summary"), error.message));
  before = window;
});
