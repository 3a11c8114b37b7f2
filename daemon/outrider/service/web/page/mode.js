// The mode: what lowers it below the configuration's, and what was commanded last.

import { known, time } from "./words.js";
import { at, keyed, make, orNone, setText } from "./elements.js";

export function drawMode(s) {
  const lines = (s.commands ?? []).map((command) => ({
    key: `${command.at_s} ${command.command}`,
    text: inWords(command),
  }));
  const limit = s.mode_limit;
  if (known(limit) || (s.configured_mode ?? s.mode) !== s.mode)
    lines.unshift({
      key: "limit",
      text: `The configured mode is ${s.configured_mode}${known(limit) ? `; ${limited(limit)}` : ""}.`,
    });
  keyed(
    at("mode-changes"),
    orNone(lines, "no mode changes"),
    (line) => line.key,
    () => make("li"),
    (item, line) => setText(item, line.text ?? line.none),
  );
}

function limited(limit) {
  const by = limit.by === "guard" ? "a guard" : `a command${of(limit)}`;
  const why = limit.why ? `: ${limit.why}` : "";
  return `at most ${limit.most} since ${time(limit.at_s)}, by ${by}${why}`;
}

const of = (row) => (row.user ? ` of ${row.user}` : "");

function inWords(command) {
  const { from_mode: from, to_mode: to } = command;
  const change = from && from !== to ? `${from} to ${to}` : to;
  const outcome = command.outcome === "done" ? "" : ` ${command.outcome}`;
  // what a change of the mode did is said by the modes
  const saysAll = command.outcome === "done" && command.command !== "release";
  const more = [command.why, saysAll ? "" : command.detail].filter((text) => text).join("; ");
  const line = `${time(command.at_s)}: ${command.command}${of(command)}${outcome}, ${change}`;
  return more ? `${line}. ${more}` : line;
}
