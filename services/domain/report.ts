import { isDeepStrictEqual } from 'node:util';
import type { Issue } from '#schemas/issues.ts';
import {
  type Completeness,
  exportDays,
  type ReportDefinition,
  type ReportEvent,
  type ReportFormat,
} from '#schemas/report.ts';
import { type Decider, Rejection } from './decider.ts';
import { dayOf, windowOf } from './report-windows.ts';

/**
 * Rules of a definition that a schema cannot express. Returns the place and the reason of the first fault; null: the
 * definition is valid.
 */
const wrongOf = ({ kind, filters, schedule }: ReportDefinition): Issue | null => {
  const { clientId, socialAccountId, platform } = filters;
  if (kind === 'client' && clientId === null)
    return { path: '/filters/clientId', code: 'required', message: 'must name the client' };
  if (kind === 'account' && socialAccountId === null)
    return { path: '/filters/socialAccountId', code: 'required', message: 'must name the account' };
  if (kind === 'account' && platform !== null)
    return { path: '/filters/platform', code: 'not_allowed', message: 'must be null: the account has one network' };
  // The report alone must name the client of its figures, because the rules for a client also hold for its accounts.
  if (socialAccountId !== null && clientId === null)
    return { path: '/filters/clientId', code: 'required', message: 'must name the client of the account' };
  if (schedule === null) return null;
  if ((schedule.every === 'week') !== (schedule.weekday !== null))
    return {
      path: '/schedule/weekday',
      code: 'mismatch',
      message: 'is required for a weekly schedule, and allowed for no other',
    };
  if ((schedule.every === 'month') !== (schedule.dayOfMonth !== null))
    return {
      path: '/schedule/dayOfMonth',
      code: 'mismatch',
      message: 'is required for a monthly schedule, and allowed for no other',
    };
  return null;
};

type ReportEventData<T extends ReportEvent['type']> = Extract<ReportEvent, { type: T }>['data'];
export type ReportExport = ReportEventData<'ReportRunCompleted'>['exports'][number];

export type ReportRun = ReportEventData<'ReportRunRequested'> & {
  /** ISO 8601. */
  readonly requestedAt: string;
  /** The definition at the time of the request: a later definition does not change a run. */
  readonly about: Pick<ReportDefinition, 'name' | 'kind' | 'filters' | 'bom'>;
} & (
    | { readonly status: 'open' }
    | {
        readonly status: 'completed';
        readonly asOf: string | null;
        readonly exports: readonly ReportExport[];
        readonly completedAt: string;
        readonly completeness: Completeness;
      }
    | { readonly status: 'failed'; readonly code: string; readonly message: string }
  );

export type ReportState =
  | { readonly status: 'none' }
  | {
      readonly status: 'live' | 'removed';
      readonly definition: ReportDefinition;
      /** When the present schedule began: the report runs at no instant of this schedule before that. */
      readonly scheduledSince: string;
      /** By id, in the order of the requests. */
      readonly runs: ReadonlyMap<string, ReportRun>;
    };

export type ReportCommand =
  /** On an existing report it replaces the definition and keeps the runs. */
  | { readonly type: 'Define'; readonly definition: ReportDefinition }
  /**
   * `at`: the instant from whose day, in `timezone`, the window is counted back. `formats`: null = those of the
   * definition.
   */
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
  /** For a client that was archived or erased. A report that is about another client by now keeps its schedule. */
  | { readonly type: 'EndSchedule'; readonly clientId: string }
  | { readonly type: 'Remove' };

/** When the exports of a run are deleted, ISO 8601. */
export const exportsEndAt = (completedAt: string): string =>
  new Date(Date.parse(completedAt) + exportDays * 86_400_000).toISOString();

const missing = (): Rejection => new Rejection('not_found', 'There is no such report.');

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
        // The report was removed while the scheduler requested this run.
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
    case 'EndSchedule': {
      if (state.status !== 'live' || state.definition.schedule === null) return [];
      const { definition } = state;
      if (definition.filters.clientId !== command.clientId) return [];
      return [{ type: 'ReportDefined', data: { definition: { ...definition, schedule: null } } }];
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
      if (state.status === 'none')
        return { status: 'live', definition, scheduledSince: fact.occurredAt, runs: new Map() };
      const same = isDeepStrictEqual(state.definition.schedule, definition.schedule);
      return { ...state, status: 'live', definition, scheduledSince: same ? state.scheduledSince : fact.occurredAt };
    }
    case 'ReportRunRequested': {
      if (state.status === 'none' || state.runs.has(event.data.runId)) return state;
      const { name, kind, filters, bom } = state.definition;
      const about = { name, kind, filters, ...(bom === undefined ? {} : { bom }) };
      const run: ReportRun = { ...event.data, requestedAt: fact.occurredAt, about, status: 'open' };
      return { ...state, runs: new Map(state.runs).set(run.runId, run) };
    }
    case 'ReportRunCompleted': {
      const { runId, asOf, exports, completeness } = event.data;
      return ended(state, runId, (run) => {
        const completedAt = fact.occurredAt;
        return { ...run, status: 'completed', asOf, exports, completedAt, completeness };
      });
    }
    case 'ReportRunFailed': {
      const { runId, code, message } = event.data;
      return ended(state, runId, (run) => ({ ...run, status: 'failed', code, message }));
    }
    case 'ReportRemoved':
      return state.status === 'none' ? state : { ...state, status: 'removed' };
  }
};

/**
 * A saved report. Its law: the outcome of a run is recorded once and never changes, and a run that is requested twice
 * under one id is one run. A removed report runs no more.
 */
export const report: Decider<ReportState, ReportCommand, ReportEvent> = {
  kind: 'report',
  initial: { status: 'none' },
  decide,
  evolve,
};

/** Failures of a run of a report. GET /errors/{code} serves each code. */
export const reportFailures = {
  client_erased: 'The client that the report is about was erased.',
  report_failed: 'The report could not be made, although it was tried several times. Ask for another run.',
} as const satisfies Readonly<Record<string, string>>;
