/**
 * Characters that control a terminal instead of printing: C0, DEL and C1 (escape sequences), line and paragraph
 * separators, bidirectional marks (they reverse the text), zero-width and other invisible ones. Tab is harmless.
 */
const steering = new RegExp(
  `[${[
    "\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f",
    "\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f",
    "\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb",
    "\\ud800-\\udfff", // lone surrogates: terminals disagree about them
    "\\u{e0000}-\\u{e0fff}",
  ].join("")}]`,
  "gu",
);

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\u001b": "\\e" };

/**
 * Makes untrusted text safe to print: characters that control a terminal or hide in it are escaped, as in `\u202e`.
 */
export function visible(text: string): string {
  return text.replace(steering, (letter) => short[letter] ?? escaped(letter));
}

/** Whether a text contains anything that {@link visible} would escape. */
export function hasSteering(text: string): boolean {
  steering.lastIndex = 0;
  return steering.test(text);
}

/** The same JSON, with characters that control a terminal as `\uXXXX`. */
export function safeJson(json: string): string {
  // Line breaks of indented JSON stay; inside strings JSON has escaped them already.
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
