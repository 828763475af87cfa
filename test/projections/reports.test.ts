import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { maxRuns, reports } from '#projections/models/reports.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: reports', (t) => {
  t('reports: defined, run, completed or failed, removed; a completed run stays', async () => {
    const { id, runId, other } = ids('id', 'runId', 'other');
    const report = on('report', id);
    const definition = {
      ...{ name: 'Monthly', kind: 'workspace', window: 'last_30_days', formats: ['pdf', 'csv'], schedule: null },
      filters: { clientId: null, socialAccountId: null, platform: null },
    };
    const days = { from: '2026-02-01', to: '2026-03-02', formats: ['pdf'] };
    const requested = (run: string) => report('ReportRunRequested', { runId: run, ...days, by: 'request' });
    const file = { format: 'pdf', key: `w/reports/${runId}/a.pdf`, contentType: 'application/pdf', bytes: 9 };
    const exports = [{ ...file, sha256: 'a'.repeat(64) }];
    const completeness = { complete: false, provisionalDays: ['2026-03-02'] };
    const completed = report('ReportRunCompleted', { runId, asOf: instant(9), exports, completeness });
    const failure = { code: 'report_failed', message: 'It could not be made.' };
    const { name, filters } = definition;
    const open = {
      runId,
      name,
      filters,
      status: 'running',
      ...days,
      by: 'request',
      startedAt: instant(1),
      asOf: null,
      exports: [],
    };
    const shown = { ...open, completedAt: null, failure: null };
    await given(report('ReportDefined', { definition }), requested(runId))
      .project(pool, reports)
      .sees([
        {
          ...{ id, name: 'Monthly', span: 'last_30_days', formats: ['pdf', 'csv'], bom: null },
          ...{ runs: [shown], removed_at: null },
        },
      ]);
    const done = { ...shown, status: 'completed', asOf: instant(9), exports, completedAt: instant(2), completeness };
    await given(
      report('ReportDefined', { definition }),
      requested(runId),
      completed,
      requested(other),
      report('ReportRunFailed', { runId: other, ...failure }),
      report('ReportDefined', { definition: { ...definition, name: 'Each month', bom: false } }),
      report('ReportRunFailed', { runId, ...failure }),
    )
      .project(pool, reports)
      .sees([
        {
          ...{ id, name: 'Each month', bom: false, created_at: instant(0), removed_at: null },
          runs: [{ ...shown, runId: other, startedAt: instant(3), status: 'failed', failure }, done],
        },
      ]);
    const many = Array.from({ length: maxRuns + 1 }, () => randomUUID());
    await given(report('ReportDefined', { definition }), ...many.map(requested), report('ReportRemoved', {}))
      .project(pool, reports)
      .sees([{ id, removed_at: instant(maxRuns + 2) }]);
    const { rows } = await pool.query('select runs from read.reports where id = $1', [id]);
    assert.deepEqual(
      rows[0].runs.map((run: { runId: string }) => run.runId),
      many.slice(1).reverse(),
    );
  });

  everyEventIsProjected(t, 'report');
});
