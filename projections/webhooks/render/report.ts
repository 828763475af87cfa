import type { reportPublic } from '#schemas/http/webhook-events/analytics.ts';
import type { ReportEvent } from '#schemas/report.ts';
import type { Publisher } from './rule.ts';

/** A saved report. The payload never shows where an export lies: receivers request its URL from the API. */

interface Run {
  readonly runId: string;
  readonly clientId: string | null;
}

interface Report {
  readonly clientId: string | null;
  /** The newest runs, each with the client of the report at that time. */
  readonly runs: readonly Run[];
}

const maxRuns = 20;

const clientOf = ({ clientId, runs }: Report, runId: string): string | null => {
  const run = runs.findLast((one) => one.runId === runId);
  return run === undefined ? clientId : run.clientId;
};

type Payloads = Pick<typeof reportPublic, 'report.run.completed' | 'report.run.failed'>;

export const report: Publisher<Payloads, ReportEvent, Report> = {
  rules: {
    ReportDefined: 'the definition is internal to the agency; GET /reports shows it',
    ReportRunRequested: 'an intermediate step; report.run.completed or report.run.failed reports the result',
    ReportRunCompleted: [
      {
        type: 'report.run.completed',
        ofStream: ({ id, data: { runId, asOf, exports, completeness } }, about) => {
          const clientId = clientOf(about, runId);
          // The file that is fetched when the caller names no format; the schema guarantees one.
          const [file] = exports as [(typeof exports)[number]];
          const { format, bytes, sha256 } = file;
          return { reportId: id, runId, clientId, asOf, format, bytes, sha256, completeness };
        },
      },
    ],
    ReportRunFailed: [
      {
        type: 'report.run.failed',
        ofStream: ({ id, data: { runId, code, message } }, about) => ({
          reportId: id,
          runId,
          clientId: clientOf(about, runId),
          failure: { code, message },
        }),
      },
    ],
    ReportRemoved: 'the caller has the answer',
  },
  evolve: (subject, event) => {
    if (event.type === 'ReportDefined') {
      return { runs: subject?.runs ?? [], clientId: event.data.definition.filters.clientId };
    }
    if (event.type !== 'ReportRunRequested' || subject === null) return subject;
    const { clientId, runs } = subject;
    return { clientId, runs: [...runs, { runId: event.data.runId, clientId }].slice(-maxRuns) };
  },
};
