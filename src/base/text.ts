/**
 * Characters that steer a screen instead of standing on it: C0, DEL and C1 (escape sequences), line and paragraph
 * separators, bidirectional marks (they reverse what is read), zero-width and other invisible ones. Tab is harmless.
 */
const steering = new RegExp(
  `[${[
    "\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f",
    "\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f",
    "\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb",
    "\\ud800-\\udfff", // halves of pairs: a terminal may make anything of them
    "\\u{e0000}-\\u{e0fff}",
  ].join("")}]`,
  "gu",
);

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\u001b": "\\e" };

/**
 * Foreign text for people: what would steer their screen, or hide in it, is written out, as in `\u202e`.
 */
export function visible(text: string): string {
  return text.replace(steering, (letter) => short[letter] ?? escaped(letter));
}

/** Whether a text holds anything that {@link visible} would write out. */
export function hasSteering(text: string): boolean {
  steering.lastIndex = 0;
  return steering.test(text);
}

/** JSON text whose strings cannot steer a screen either: the same JSON, with such letters as `\uXXXX`. */
export function safeJson(json: string): string {
  // Line breaks of an indented text are its own; in strings JSON has escaped them already.
  return json.replace(steering, (letter) => (letter === "\n" ? letter : unitsOf(letter)));
}

function escaped(letter: string): string {
  const code = letter.codePointAt(0)!;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : unitsOf(letter);
}

function unitsOf(letter: string): string {
  let text = "";
  for (let k = 0; k < letter.length; k++) text += `\\u${letter.charCodeAt(k).toString(16).padStart(4, "0")}`;
  return text;
}
