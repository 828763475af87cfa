import { uuidv5 } from '#domain/ids.ts';
import { report } from '#domain/report.ts';
import { workspace } from '#domain/workspace.ts';
import { runOf } from '#projections/models/reports.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { IdParams } from '#schemas/http/common.ts';
import { ReportRunCreate, RequestedRun } from '#schemas/http/report.ts';
import { operation } from '../operation.ts';
import { exampleRun } from '../reports/examples.ts';
import { maxWaiting, requireRoomForRun } from '../reports/run-places.ts';
import { showRun } from '../reports/show.ts';
import { lastOf, writtenRow } from '../rows.ts';

export const runReport = operation({
  id: 'runReport',
  method: 'POST',
  path: '/reports/{id}/runs',
  tag: 'reports',
  summary: 'Start a run of a saved report now',
  description: `The run counts the days of the report's \`window\` before today, in the zone of the workspace; its schedule goes on as it is. The answer comes at once, with the run as \`running\`: it waits until the figures of its days are final, at most 6 hours, and is then made. The event \`report.run.completed\` or \`report.run.failed\` tells how it ended; then GET /reports/{id}/exports/{runId} has the address of its files. At most ${maxWaiting} requested runs of a workspace wait at once.`,
  scope: 'reports.manage',
  idempotent: 'accepted',
  cost: 10,
  bodyOptional: true,
  params: IdParams,
  body: ReportRunCreate,
  answer: RequestedRun,
  codes: ['too_many_runs', 'stream_full'],
  example: { body: {}, data: exampleRun },
  handle: async (call) => {
    const { deps, workspaceId, params, body, context, now } = call;
    const placed = new Set<string>();
    const { events, replayed } = await call.stream(report).act({
      optional: true,
      accept: async () => {
        const { state } = await deps.store.load(workspace, workspaceId);
        if (state.status === 'none') throw new BrokenInvariant(`there is no workspace ${workspaceId}`);
        // Of the key, so that callers who repeat a call while it is under way take one place.
        const runId = context.keyHmac === undefined ? uuidv7() : uuidv5(params.id, `requested\n${context.keyHmac}`);
        return { runId, at: now, timezone: state.timezone, formats: body.formats ?? null };
      },
      command: (decided) => ({ type: 'RequestRun', by: 'request', ...decided }),
      rule: async (_loaded, { runId }) => {
        // Once for the call: whoever holds a place must not wait for it again when another append came first.
        if (!placed.has(runId)) await requireRoomForRun(call, params.id, runId);
        placed.add(runId);
      },
    });
    const run = writtenRow(runOf(events, String(lastOf(events).data.runId)));
    return { data: { object: 'report_run', reportId: params.id, ...showRun(run, null) }, replayed };
  },
});
