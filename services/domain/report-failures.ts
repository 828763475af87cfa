/** Failures of a run of a report. GET /errors/{code} serves each code. */
export const reportFailures = {
  client_erased: 'The client that the report is about was erased.',
  report_failed: 'The report could not be made, although it was tried several times. Ask for another run.',
} as const satisfies Readonly<Record<string, string>>;
