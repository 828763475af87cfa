/** One line of `make bench`: ours beside the bare client doing the same work (limit) and another library (peer). */
export interface BenchRow {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly limit?: number;
  readonly peer?: number;
  /** Made by the runner. */
  readonly ratio?: string;
  readonly goal: string;
  readonly ok: boolean;
  readonly note?: string;
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export const spread = (values: readonly number[]): Spread => {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    median: sorted[sorted.length >> 1] ?? Number.NaN,
    min: sorted[0] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN,
  };
};

/** The value that the given share of all values does not exceed; share in 0..1. */
export const percentile = (values: readonly number[], share: number): number => {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

const figure = (value: number | undefined): string =>
  value === undefined ? '-' : value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2);

export const printRows = (rows: readonly BenchRow[]): void => {
  const table = [
    ['', 'unit', 'ours', 'limit', 'peer', 'ratio', 'goal', ''],
    ...rows.map((row) => [
      row.name,
      row.unit,
      figure(row.ours),
      figure(row.limit),
      figure(row.peer),
      row.ratio ?? '-',
      row.goal,
      row.ok ? 'ok' : 'MISSED',
    ]),
  ];
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0)));
  for (const [i, line] of table.entries()) {
    console.log(line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
    const note = rows[i - 1]?.note;
    if (note !== undefined) console.log(`    ${note}`);
  }
};
