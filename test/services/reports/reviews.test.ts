/** Changes of a workspace or a client reach its reports page by page, behind their event. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { onEvents } from '#services/reports/intake.ts';
import { reviewPage } from '#services/reports/reviews.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const reports = 6_000;
const page = 1_000;

suite('reviews of reports', { timeoutMs: 120_000 }, (t) => {
  let pool: pg.Pool;
  t.before(async () => {
    pool = new pg.Pool({ connectionString: (await preparedDatabase()).url, max: 3 });
  });
  t.after(() => pool?.end());

  const number = async (sql: string, values: readonly unknown[] = []): Promise<number> =>
    (await pool.query<{ n: number }>(`select count(*)::int as n from ${sql}`, [...values])).rows[0]?.n ?? 0;
  /** Reports of a workspace, all about one client, whose next runs are known. */
  const define = async (count: number): Promise<{ workspaceId: string; clientId: string }> => {
    const [workspaceId, clientId] = [randomUUID(), randomUUID()];
    const sql = `
      with s as (
        insert into ops.report_schedules (report_id, workspace_id, after, due_at)
        select gen_random_uuid(), $1, now(), now() + interval '1 day' from generate_series(1, $3) returning report_id
      )
      insert into ops.report_subjects (client_id, report_id, workspace_id) select $2, report_id, $1 from s`;
    await pool.query(sql, [workspaceId, clientId, count]);
    return { workspaceId, clientId };
  };
  const known = (workspaceId: string) =>
    number('ops.report_schedules where workspace_id = $1 and due_at is not null', [workspaceId]);
  const jobs = (workspaceId: string) => number('ops.report_jobs where workspace_id = $1', [workspaceId]);
  const touchedSql = `
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)::int as touched
    from pg_stat_xact_user_tables where schemaname = 'ops' and relname like 'report%'`;
  /** @returns the rows that the event touches in its own transaction */
  const apply = (type: string, stream: string, workspaceId: string): Promise<number> =>
    inTransaction(pool, async (tx) => {
      const event = { id: randomUUID(), type, stream, revision: 1, data: {}, metadata: { workspaceId } };
      const touched = async () => (await tx.query<{ touched: number }>(touchedSql)).rows[0]?.touched ?? 0;
      const before = await touched();
      await onEvents(tx, [event as unknown as DecodedEvent], () => undefined);
      return { commit: true, result: (await touched()) - before };
    });
  /** Two processes at once, until neither finds a page. */
  const reviewed = async (): Promise<void> => {
    const one = async () => {
      while (await reviewPage(pool));
    };
    while ((await number('ops.report_reviews')) > 0) await Promise.all([one(), one()]);
  };

  t('an event touches no report; its pages reach each of them, and none of another workspace', async () => {
    const many = await define(reports);
    const few = await define(3);
    const away = await define(2);
    for (const [type, stream] of [
      ['WorkspaceProfileChanged', `workspace-${many.workspaceId}`],
      ['ClientArchived', `client-${many.clientId}`],
      ['ClientErased', `client-${many.clientId}`],
    ] as const) {
      const touched = await apply(type, stream, many.workspaceId);
      ok(touched <= page, `${type} touched ${touched} rows`);
    }
    deepEqual([await known(many.workspaceId), await jobs(many.workspaceId)], [reports, 0]);
    await reviewPage(pool);
    ok((await known(many.workspaceId)) >= reports - page, 'a page is bounded');
    await apply('WorkspaceProfileChanged', `workspace-${few.workspaceId}`, few.workspaceId);
    // Drawn by lot: one in a million that it is not drawn in twenty pages.
    for (let pages = 0; pages < 20 && (await known(few.workspaceId)) > 0; pages += 1) await reviewPage(pool);
    equal(await known(few.workspaceId), 0, 'another workspace does not wait for all of them');
    await reviewed();
    deepEqual([await known(many.workspaceId), await jobs(many.workspaceId)], [0, reports]);
    deepEqual([await jobs(few.workspaceId), await known(away.workspaceId), await jobs(away.workspaceId)], [0, 2, 0]);
  });

  t('an event behind a page begins the walk again, and an erasure stays one', async () => {
    const { workspaceId, clientId } = await define(1_200);
    await apply('ClientErased', `client-${clientId}`, workspaceId);
    await reviewPage(pool);
    await pool.query('delete from ops.report_jobs where workspace_id = $1', [workspaceId]);
    await apply('ClientArchived', `client-${clientId}`, workspaceId);
    await reviewed();
    deepEqual([await known(workspaceId), await jobs(workspaceId)], [0, 1_200]);
  });
});
