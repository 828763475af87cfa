import { isDeepStrictEqual } from 'node:util';
import type { ReportDefinition, ReportEvent, ReportFormat } from '#schemas/report.ts';
import { type Decider, Rejection } from './decider.ts';
import { dayOf, windowOf } from './report-windows.ts';

/**
 * A saved report. Its law: what became of a run is said once and never changes, and a run that was asked for twice under
 * one id is one run. A removed report runs no more.
 */

type ReportEventData<T extends ReportEvent['type']> = Extract<ReportEvent, { type: T }>['data'];
export type ReportExport = ReportEventData<'ReportRunCompleted'>['exports'][number];

export type ReportRun = ReportEventData<'ReportRunRequested'> & {
  /** ISO 8601. */
  readonly requestedAt: string;
} & (
    | { readonly status: 'open' }
    | { readonly status: 'completed'; readonly asOf: string | null; readonly exports: readonly ReportExport[] }
    | { readonly status: 'failed'; readonly code: string; readonly message: string }
  );

export type ReportState =
  | { readonly status: 'none' }
  | {
      readonly status: 'live' | 'removed';
      readonly definition: ReportDefinition;
      /** By id, in the order they were asked for. */
      readonly runs: ReadonlyMap<string, ReportRun>;
    };

export type ReportCommand =
  /** Of one that is there: replaces what it is, its runs stay. */
  | { readonly type: 'Define'; readonly definition: ReportDefinition }
  /** `at`: the instant whose day the window is counted back from, in `timezone`. `formats`: null = those of the definition. */
  | {
      readonly type: 'RequestRun';
      readonly runId: string;
      readonly at: string;
      readonly timezone: string;
      readonly by: 'schedule' | 'request';
      readonly formats: readonly ReportFormat[] | null;
    }
  | ({ readonly type: 'Complete' } & ReportEventData<'ReportRunCompleted'>)
  | ({ readonly type: 'Fail' } & ReportEventData<'ReportRunFailed'>)
  | { readonly type: 'Remove' };

const missing = (): Rejection => new Rejection('not_found', 'There is no such report.');

/** What a schema cannot say. Null: nothing is wrong. */
const wrongOf = ({ kind, filters, schedule }: ReportDefinition): { path: string; message: string } | null => {
  const { clientId, socialAccountId, platform } = filters;
  if (kind === 'client' && clientId === null) return { path: '/filters/clientId', message: 'must name the client' };
  if (kind === 'account' && socialAccountId === null)
    return { path: '/filters/socialAccountId', message: 'must name the account' };
  if (kind === 'account' && platform !== null)
    return { path: '/filters/platform', message: 'must be null: the account has one network' };
  if (schedule === null) return null;
  if ((schedule.every === 'week') !== (schedule.weekday !== null))
    return { path: '/schedule/weekday', message: 'must be given of a weekly schedule, and of no other' };
  if ((schedule.every === 'month') !== (schedule.dayOfMonth !== null))
    return { path: '/schedule/dayOfMonth', message: 'must be given of a monthly schedule, and of no other' };
  return null;
};

const decide = (command: ReportCommand, state: ReportState): readonly ReportEvent[] => {
  switch (command.type) {
    case 'Define': {
      if (state.status === 'removed') throw missing();
      const wrong = wrongOf(command.definition);
      if (wrong !== null) {
        const errors = [wrong];
        throw new Rejection('validation_failed', `The report is not valid: ${wrong.path} ${wrong.message}.`, {
          errors,
        });
      }
      const definition = { ...command.definition, formats: [...new Set(command.definition.formats)] };
      if (state.status === 'live' && isDeepStrictEqual(state.definition, definition)) return [];
      return [{ type: 'ReportDefined', data: { definition } }];
    }
    case 'RequestRun': {
      const { runId, at, timezone, by, formats } = command;
      if (state.status !== 'live') {
        // It was removed while its schedule was being carried out.
        if (by === 'schedule') return [];
        throw missing();
      }
      if (state.runs.has(runId)) return [];
      const { from, to } = windowOf(state.definition.window, dayOf(at, timezone));
      const wanted = [...new Set(formats ?? state.definition.formats)];
      return [{ type: 'ReportRunRequested', data: { runId, from, to, by, formats: wanted } }];
    }
    case 'Complete': {
      const { type: _, ...data } = command;
      return isOpen(state, data.runId) ? [{ type: 'ReportRunCompleted', data }] : [];
    }
    case 'Fail': {
      const { type: _, ...data } = command;
      return isOpen(state, data.runId) ? [{ type: 'ReportRunFailed', data }] : [];
    }
    case 'Remove':
      return state.status === 'live' ? [{ type: 'ReportRemoved', data: {} }] : [];
  }
};

const isOpen = (state: ReportState, runId: string): boolean =>
  state.status === 'live' && state.runs.get(runId)?.status === 'open';

const ended = (state: ReportState, runId: string, end: (run: ReportRun) => ReportRun): ReportState => {
  if (state.status === 'none') return state;
  const run = state.runs.get(runId);
  return run?.status === 'open' ? { ...state, runs: new Map(state.runs).set(runId, end(run)) } : state;
};

const evolve: Decider<ReportState, ReportCommand, ReportEvent>['evolve'] = (state, event, fact) => {
  switch (event.type) {
    case 'ReportDefined': {
      const { definition } = event.data;
      return { status: 'live', definition, runs: state.status === 'none' ? new Map() : state.runs };
    }
    case 'ReportRunRequested': {
      if (state.status === 'none' || state.runs.has(event.data.runId)) return state;
      const run: ReportRun = { ...event.data, requestedAt: fact.occurredAt, status: 'open' };
      return { ...state, runs: new Map(state.runs).set(run.runId, run) };
    }
    case 'ReportRunCompleted': {
      const { runId, asOf, exports } = event.data;
      return ended(state, runId, (run) => ({ ...run, status: 'completed', asOf, exports }));
    }
    case 'ReportRunFailed': {
      const { runId, code, message } = event.data;
      return ended(state, runId, (run) => ({ ...run, status: 'failed', code, message }));
    }
    case 'ReportRemoved':
      return state.status === 'none' ? state : { ...state, status: 'removed' };
  }
};

export const report: Decider<ReportState, ReportCommand, ReportEvent> = {
  kind: 'report',
  initial: { status: 'none' },
  decide,
  evolve,
};
