/** `{a,b}`: a Postgres array literal of values that need no quotes; null stays null. */
export const plainArray = (values: readonly (string | number | bigint | boolean | null)[]): string =>
  `{${values.map((one) => one ?? 'NULL').join(',')}}`;
