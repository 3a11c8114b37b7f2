// The expected start of a job in a cell of a table. Sentences about it come from the daemon.

import { label, moments } from "./words.js";

/** The median and the 80 % interval; or one of the answers that are no time. */
export function startCell(answer, start, now_s) {
  if (answer !== "interval") return label(answer ?? "not_said");
  const [low, median, high] = moments([start.low_s, start.median_s, start.high_s], now_s);
  return `${median} (${low} to ${high})`;
}
