// The canary trial: its progress, and at its end the result next to the prediction.

import { known } from "./words.js";
import { at, keyed, make, setText } from "./elements.js";

export function drawTrial(s) {
  const trial = s.trial; // an older daemon has none
  at("trial").hidden = !known(trial);
  if (!known(trial)) return;
  setText(at("trial-summary"), `${trial.summary}.`);
  keyed(
    at("trial-measures"),
    trial.results ?? [],
    (line) => line,
    () => make("li"),
    (item, line) => setText(item, line),
  );
}
