import type { RunRow } from '#projections/models/reports.ts';
import type { ReportFormat } from '#schemas/report.ts';

/** The longest part of the report's name in a file name, so that the days and the extension are never cut off. */
const maxOfName = 150;

/** The file name of a downloaded export. */
export const fileNameOf = ({ name, from, to }: Pick<RunRow, 'name' | 'from' | 'to'>, format: ReportFormat): string => {
  const short = name.trim().slice(0, maxOfName);
  // Do not cut a surrogate pair in half.
  return `${short.replace(/[\ud800-\udbff]$/, '').trim()} ${from} ${to}.${format}`;
};
