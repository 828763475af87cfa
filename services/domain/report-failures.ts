/** What a run of a report can fail with; each code is served under /errors/{code}. */
export const reportFailures = {
  client_erased: 'The client that the report is about was erased.',
  report_failed: 'The report could not be made, although it was tried several times. Ask for another run.',
} as const satisfies Readonly<Record<string, string>>;
