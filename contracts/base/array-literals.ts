/** Array literals of Postgres. */

/** `{a,b}`: a Postgres array literal of values that need no quotes; null stays null. */
export const plainArray = (values: readonly (string | number | bigint | boolean | null)[]): string =>
  `{${values.map((one) => one ?? 'NULL').join(',')}}`;

/** Array literal of texts; numbers and uuids need no quotes and are joined unchanged. */
export const textArray = (values: readonly (string | null)[]): string => {
  let literal = '{';
  for (const value of values) {
    if (literal.length > 1) literal += ',';
    if (value === null) literal += 'NULL';
    else literal += /["\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`;
  }
  return `${literal}}`;
};
