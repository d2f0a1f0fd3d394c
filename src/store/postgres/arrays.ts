/** Array literals for multi-row statements: building the text here is several times faster than in the driver. */

export function numbersLiteral(values: readonly (number | bigint)[]): string {
  return `{${values.join(",")}}`;
}

export function textsLiteral(values: readonly (string | null)[]): string {
  let literal = "{";
  let last: string | null | undefined;
  let quoted = "";
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    // Tenants, workflows and statuses repeat: most of them are quoted once for the batch.
    if (k === 0 || value !== last) quoted = value === null || value === undefined ? "NULL" : quote(value);
    last = value;
    literal += k > 0 ? `,${quoted}` : quoted;
  }
  return `${literal}}`;
}

const quote = (value: string): string => `"${special.test(value) ? value.replace(/[\\"]/g, "\\$&") : value}"`;
const special = /[\\"]/;

/**
 * Record bodies and kinds, for `string_to_array(…, chr(31))`. JSON escapes control characters, so no body contains the
 * separator, and neither end has to escape the many quotes. Costs half as much as a literal.
 */
export function joinedTexts(values: readonly string[]): string {
  return values.join("\x1f");
}

export const nullableLiteral = (values: readonly (number | bigint | undefined)[]): string =>
  `{${values.map((value) => value ?? "NULL").join(",")}}`;
