import { deepEqual, equal, match, ok, throws } from 'node:assert/strict';
import { Rejection } from '#domain/decider.ts';
import { exportsEndAt, type ReportCommand, report } from '#domain/report.ts';
import type { ReportDefinition, ReportEvent } from '#schemas/report.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(report);

const [runId, otherRun, clientId, socialAccountId] = ['r1', 'r2', 'c', 'a'] as const;
const everything = { clientId: null, socialAccountId: null, platform: null } as const;
const definition: ReportDefinition = {
  name: 'Monthly',
  kind: 'workspace',
  filters: everything,
  window: 'last_30_days',
  formats: ['pdf', 'csv'],
  schedule: null,
};
const defined: ReportEvent = { type: 'ReportDefined', data: { definition } };
const requested: ReportEvent = {
  type: 'ReportRunRequested',
  data: { runId, from: '2026-02-01', to: '2026-03-02', by: 'request', formats: ['pdf', 'csv'] },
};
const exported = {
  format: 'pdf',
  key: 'w/reports/r1/a.pdf',
  contentType: 'application/pdf',
  bytes: 9,
  sha256: '0',
} as const;
const completeness = { complete: true, provisionalDays: [] };
const completed: ReportEvent = {
  type: 'ReportRunCompleted',
  data: { runId, asOf: '2026-03-03T01:00:00.000Z', exports: [exported], completeness },
};
const failed: ReportEvent = { type: 'ReportRunFailed', data: { runId, code: 'report_failed', message: 'It did.' } };
const removed: ReportEvent = { type: 'ReportRemoved', data: {} };
const run = {
  type: 'RequestRun',
  runId,
  at: '2026-03-02T23:30:00.000Z',
  timezone: 'Europe/Berlin',
  by: 'request',
  formats: null,
} as const satisfies ReportCommand;
const complete = {
  type: 'Complete',
  runId,
  asOf: null,
  exports: [exported],
  completeness,
} as const satisfies ReportCommand;
const fail = { type: 'Fail', runId, code: 'report_failed', message: 'It did.' } as const satisfies ReportCommand;

suite('report', (t) => {
  t('is defined once; another definition replaces it and leaves its runs', () => {
    given([])
      .when({ type: 'Define', definition: { ...definition, formats: ['pdf', 'csv', 'pdf'] } })
      .then([defined]);
    given([defined]).when({ type: 'Define', definition }).then([]);
    const renamed = { ...definition, name: 'Each month' };
    given([defined, requested])
      .when({ type: 'Define', definition: renamed })
      .then([{ type: 'ReportDefined', data: { definition: renamed } }]);
    const after = state([defined, requested, { type: 'ReportDefined', data: { definition: renamed } }]);
    equal(after.status === 'live' && after.runs.size, 1);
    given([defined, removed]).when({ type: 'Define', definition: renamed }).refused('not_found');
  });

  t('an invalid definition is refused with the place of the fault', () => {
    const at = { hour: 6, weekday: null, dayOfMonth: null };
    const [required, refused, mismatch] = ['required', 'not_allowed', 'mismatch'] as const;
    const wrong: readonly (readonly [path: string, code: string, over: Partial<ReportDefinition>])[] = [
      ['/filters/clientId', required, { kind: 'client' }],
      ['/filters/socialAccountId', required, { kind: 'account', filters: { ...everything, clientId } }],
      ['/filters/platform', refused, { kind: 'account', filters: { clientId, socialAccountId, platform: 'x' } }],
      ['/filters/clientId', required, { filters: { ...everything, socialAccountId } }],
      ['/filters/clientId', required, { kind: 'account', filters: { ...everything, socialAccountId } }],
      ['/schedule/weekday', mismatch, { schedule: { ...at, every: 'week' } }],
      ['/schedule/weekday', mismatch, { schedule: { ...at, every: 'day', weekday: 1 } }],
      ['/schedule/dayOfMonth', mismatch, { schedule: { ...at, every: 'month' } }],
      ['/schedule/dayOfMonth', mismatch, { schedule: { ...at, every: 'week', weekday: 1, dayOfMonth: 1 } }],
    ];
    for (const [path, code, over] of wrong) {
      throws(
        () => report.decide({ type: 'Define', definition: { ...definition, ...over } }, report.initial),
        (error) => {
          ok(error instanceof Rejection);
          deepEqual([error.code, error.errors[0]?.path, error.errors[0]?.code], ['validation_failed', path, code]);
          // The caller reads the path, and behind it what must be there.
          ok(error.message.includes(path));
          match(error.errors[0]?.message ?? '', /^(must|is required) /);
          return true;
        },
        path,
      );
    }
  });

  t('a definition names what its kind is about, and the days of its schedule', () => {
    const at = { hour: 6, weekday: null, dayOfMonth: null };
    const about = { clientId, socialAccountId, platform: null };
    const right: readonly Partial<ReportDefinition>[] = [
      { kind: 'client', filters: { ...everything, clientId } },
      { kind: 'client', filters: { ...everything, clientId, platform: 'x' } },
      { kind: 'account', filters: about },
      { filters: { ...everything, platform: 'x' } },
      { filters: { ...about, platform: 'x' } },
      { schedule: { ...at, every: 'day' } },
      { schedule: { ...at, every: 'week', weekday: 1 } },
      { schedule: { ...at, every: 'month', dayOfMonth: 31 } },
    ];
    for (const over of right) {
      const one = { ...definition, ...over };
      given([])
        .when({ type: 'Define', definition: one })
        .then([{ type: 'ReportDefined', data: { definition: one } }]);
    }
  });

  t('a run takes its days and formats from the definition at the time of the request, once', () => {
    given([defined]).when(run).then([requested]);
    given([defined])
      .when({ ...run, formats: ['json', 'json'], timezone: 'UTC' })
      .then([{ ...requested, data: { ...requested.data, from: '2026-01-31', to: '2026-03-01', formats: ['json'] } }]);
    given([defined, requested, completed]).when(run).then([]);
    given([]).when(run).refused('not_found');
    given([defined, removed]).when(run).refused('not_found');
    given([defined, removed])
      .when({ ...run, by: 'schedule' })
      .then([]);
  });

  t('the outcome of a run is recorded once, and never for an unknown run or one that is not open', () => {
    given([defined, requested])
      .when({ ...complete, asOf: '2026-03-03T01:00:00.000Z' })
      .then([completed]);
    given([defined, requested]).when(fail).then([failed]);
    const later = { ...complete, asOf: '2026-03-09T00:00:00.000Z' };
    for (const ended of [completed, failed]) {
      for (const command of [later, fail]) given([defined, requested, ended]).when(command).then([]);
    }
    for (const command of [complete, fail]) {
      given([defined, requested])
        .when({ ...command, runId: otherRun })
        .then([]);
      given([defined, requested, removed]).when(command).then([]);
      given([]).when(command).then([]);
    }
  });

  t('a run is open until its outcome is recorded, and then shows the outcome', () => {
    const runAfter = (...events: readonly ReportEvent[]) => {
      const now = state([defined, requested, ...events]);
      return now.status === 'live' ? now.runs.get(runId) : undefined;
    };
    const open = {
      ...requested.data,
      requestedAt: '2026-01-01T00:00:00.000Z',
      about: { name: 'Monthly', kind: 'workspace', filters: everything },
      status: 'open',
    };
    deepEqual(runAfter(), open);
    const made = { status: 'completed', asOf: '2026-03-03T01:00:00.000Z', exports: [exported] };
    deepEqual(runAfter(completed), { ...open, ...made, completedAt: '2026-01-01T00:00:00.000Z', completeness });
    const provisional = { complete: false, provisionalDays: ['2026-03-02'] };
    const early: ReportEvent = { ...completed, data: { ...completed.data, completeness: provisional } };
    const ended = { ...open, ...made, completedAt: '2026-01-01T00:00:00.000Z' };
    deepEqual(runAfter(early), { ...ended, completeness: provisional });
    deepEqual(runAfter(failed), { ...open, status: 'failed', code: 'report_failed', message: 'It did.' });
  });

  t('exports are kept for 400 days after their run is complete', () =>
    equal(exportsEndAt('2026-01-01T00:00:00.000Z'), '2027-02-05T00:00:00.000Z'),
  );

  t('an unknown report or run stays unknown, whatever events the stream has', () => {
    for (const event of [requested, completed, failed, removed]) deepEqual(state([event]), report.initial);
    for (const event of [completed, failed]) deepEqual(state([defined, event]), state([defined]));
  });

  t('later events do not change a completed run', () => {
    const again: ReportEvent = { ...completed, data: { ...completed.data, asOf: null, exports: [] } };
    const before = state([defined, requested, completed]);
    deepEqual(state([defined, requested, completed, again, failed, requested]), before);
  });

  t('a run keeps the definition of the report at the time of the request', () => {
    const other = { ...definition, name: 'Other', kind: 'client', filters: { ...everything, clientId } } as const;
    const redefined: ReportEvent = { type: 'ReportDefined', data: { definition: other } };
    const next: ReportEvent = { ...requested, data: { ...requested.data, runId: otherRun } };
    const after = state([defined, requested, redefined, next, completed]);
    const about = (id: string) => (after.status === 'live' ? after.runs.get(id)?.about : undefined);
    deepEqual(about(runId), { name: 'Monthly', kind: 'workspace', filters: everything });
    deepEqual(about(otherRun), { name: 'Other', kind: 'client', filters: other.filters });
    const bare: ReportEvent = { type: 'ReportDefined', data: { definition: { ...definition, bom: false } } };
    const unmarked = state([defined, requested, bare, next]);
    const boms = unmarked.status === 'live' ? [...unmarked.runs.values()].map(({ about: { bom } }) => bom) : [];
    deepEqual(boms, [undefined, false]);
  });

  t('its schedule ends with its client, and not with another one', () => {
    const schedule = { every: 'day', weekday: null, dayOfMonth: null, hour: 6 } as const;
    const planned = { ...definition, filters: { ...everything, clientId }, schedule };
    const before: ReportEvent = { type: 'ReportDefined', data: { definition: planned } };
    const end = { type: 'EndSchedule', clientId } as const;
    const ended: ReportEvent = { type: 'ReportDefined', data: { definition: { ...planned, schedule: null } } };
    given([before]).when(end).then([ended]);
    given([before])
      .when({ ...end, clientId: 'other' })
      .then([]);
    for (const events of [[], [defined], [before, ended], [before, removed]]) given(events).when(end).then([]);
  });

  t('is removed once', () => {
    given([defined]).when({ type: 'Remove' }).then([removed]);
    given([]).when({ type: 'Remove' }).then([]);
  });
});
