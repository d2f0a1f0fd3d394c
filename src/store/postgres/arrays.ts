/** Array literals for multi-row statements: building the text ourselves is several times faster than the driver's way. */

export function numbersLiteral(values: readonly (number | bigint)[]): string {
  return `{${values.join(",")}}`;
}

export function textsLiteral(values: readonly (string | null)[]): string {
  let literal = "{";
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    if (k > 0) literal += ",";
    literal += value === null || value === undefined ? "NULL" : `"${value.replace(/[\\"]/g, "\\$&")}"`;
  }
  return `${literal}}`;
}

/**
 * Record bodies and kinds, for `string_to_array(…, chr(31))`: JSON escapes control characters, so none of them holds the
 * separator, and neither side has to escape the many quotes in it. Costs half of a literal.
 */
export function joinedTexts(values: readonly string[]): string {
  return values.join("\x1f");
}
