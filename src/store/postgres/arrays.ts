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
