// Whether users are shown by their names, and what to do where they are not.

import { at, setText } from "./elements.js";

export function drawUsers(s) {
  at("users").hidden = !s.users_hint;
  setText(at("users-hint"), s.users_hint ? `User names are hidden: ${s.users_hint}.` : "");
  at("sign-in").hidden = !s.sign_in;
}
