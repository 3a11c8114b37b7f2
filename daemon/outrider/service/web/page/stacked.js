// Sums of parts over time, stacked; drawn by uPlot, which lies beside this file.

import { number, siteZone, sum, time } from "./words.js";

const HEIGHT = 190;

/** A chart in a box. `colours`: of the parts, those that lie below others last. */
export class Stacked {
  #box;
  #colours;
  #plot = null;

  constructor(box, colours) {
    this.#box = box;
    this.#colours = colours;
  }

  /** Draw the parts, from the top of the stack down; `time_s` is where each value begins. */
  draw(time_s, parts, span_s) {
    const stacked = parts.map((_, place) =>
      time_s.map((_, at) => sum(parts.slice(place).map((values) => values[at]))),
    );
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const options = {
      width: Math.max(200, this.#box.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: [
        { ...axis, values: (_, moments) => ticks(moments, span_s) },
        { ...axis, values: (_, values) => values.map((value) => number(value, 1)) },
      ],
      series: [
        {},
        ...this.#colours.map((name) => ({ stroke: colour(name), fill: colour(name), width: 0, points: { show: false } })),
      ],
      tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), siteZone()),
    };
    this.#plot?.destroy();
    this.#plot = new uPlot(options, [time_s, ...stacked], this.#box);
  }
}

/** Over days the first of each day has its date; all others have their time of day. */
function ticks(moments, span_s) {
  const words = moments.map((moment) => time(moment).split(" "));
  return words.map(([day, month, , timeOfDay], place) =>
    span_s > 2 * 86400 && words[place - 1]?.[0] !== day ? `${day} ${month}` : timeOfDay,
  );
}
