import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import { Projector } from '#projections/engine/apply.ts';
import { rowOf } from '#projections/engine/model.ts';
import { asRow } from '#projections/engine/rows.ts';
import { migrate } from '#projections/engine/tables.ts';
import { projectionOf } from '#projections/index.ts';
import { posts, withTargets } from '#projections/models/posts.ts';
import { postTargets, type TargetRow } from '#projections/models/targets.ts';
import { view } from '#projections/shapes.ts';
import { type DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { applyTo, type Given, history, instant, scheduledPost, TestKeys } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { clientFields, failure, planned, postBody } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const clientsProjection = projectionOf('clients');

const pool = await readModelsPool(8);

suite('recounts', { timeoutMs: 120_000 }, (t) => {
  const connected = (clientId: string, name = 'ann'): Given => ({
    stream: `account-${randomUUID()}`,
    type: 'AccountConnected',
    data: {
      clientId,
      platform: 'x',
      externalId: randomUUID(),
      username: name,
      displayName: name,
      avatarUrl: 'https://example.com/a.png',
      scopes: [],
      expiresAt: null,
      timezone: null,
      network: 'sandbox',
      inviteId: null,
    },
  });
  const created = (clientId: string): Given => ({
    stream: `client-${clientId}`,
    type: 'ClientCreated',
    data: clientFields,
  });
  const erased = (clientId: string): Given => ({ stream: `client-${clientId}`, type: 'ClientErased', data: {} });

  const begun = async (): Promise<PoolClient> => {
    const tx = await pool.connect();
    await tx.query('begin');
    return tx;
  };
  const sessionOf = async (tx: PoolClient): Promise<number> =>
    (await tx.query('select pg_backend_pid() as pid')).rows[0].pid;
  const waitsForLock = async (session: number): Promise<boolean> =>
    (await pool.query(`select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`, [session]))
      .rowCount === 1;
  const end = async (tx: PoolClient): Promise<void> => {
    await tx.query('commit');
    tx.release();
  };
  const counts = async (clientId: string) => {
    const { rows } = await pool.query('select revision, account_count from read.clients_v1 where id = $1', [clientId]);
    return rows[0];
  };
  const apply = async (tx: PoolClient, events: readonly DecodedEvent[]): Promise<void> => {
    assert.equal(await new Projector(clientsProjection, 1).apply(tx, events), null);
  };
  t('an event of an account reads each of the client’s accounts once', async () => {
    const [clientId, workspaceId, accounts] = [randomUUID(), randomUUID(), 3_000];
    await pool.query(
      `insert into read.accounts_v1 (id, workspace_id, revision, client_id, status, platform, created_at, updated_at)
       select gen_random_uuid(), $1, 0, $2, 'connected', 'x', now(), now() from generate_series(1, $3)`,
      [workspaceId, clientId, accounts],
    );
    const codec = new EventCodec(new TestKeys());
    const events = await history([connected(clientId)], { codec, workspaceId });
    await inTransaction(pool, async (tx) => {
      const read = async (): Promise<number> => {
        const sql = `select coalesce(idx_tup_fetch, 0)::int + seq_tup_read::int as n from pg_stat_xact_user_tables
          where schemaname = 'read' and relname = 'accounts_v1'`;
        return (await tx.query<{ n: number }>(sql)).rows[0]?.n ?? 0;
      };
      const before = await read();
      await apply(tx, events);
      const rows = (await read()) - before;
      assert.ok(rows >= accounts && rows < 1.5 * accounts, `${rows} rows were read`);
      return { commit: false, result: null };
    });
  });

  /** Two partitions apply at once: the second begins while the first has not committed. */
  const race = async (first: readonly DecodedEvent[], second: readonly DecodedEvent[]): Promise<void> => {
    const [one, two] = [await begun(), await begun()];
    await apply(one, first);
    const waiter = await sessionOf(two);
    let isDone = false;
    const applying = apply(two, second).finally(() => {
      isDone = true;
    });
    // The second one waits for the owner's row; without a lock it would be done.
    await Promise.race([applying, until('it waits for a lock', async () => isDone || waitsForLock(waiter))]);
    await end(one);
    await applying;
    await end(two);
  };
  const worlds = async (...parts: readonly (readonly Given[])[]): Promise<DecodedEvent[][]> => {
    const workspaceId = randomUUID();
    const codec = new EventCodec(new TestKeys());
    return Promise.all(parts.map(async (part) => [...(await history(part, { codec, workspaceId }))]));
  };

  t('two connections racing on accounts of one client count both', async () => {
    const clientId = randomUUID();
    const [client = [], a = [], b = []] = await worlds(
      [created(clientId)],
      [connected(clientId)],
      [connected(clientId)],
    );
    await applyTo(pool, clientsProjection, client);
    await race(a, b);
    assert.deepEqual(await counts(clientId), { revision: 0, account_count: 2 });
  });

  t('… also when the client’s first event comes later or in between', async () => {
    const clientId = randomUUID();
    const [client = [], a = [], b = []] = await worlds(
      [created(clientId)],
      [connected(clientId)],
      [connected(clientId)],
    );
    await race(a, b);
    assert.deepEqual(await counts(clientId), { revision: -1, account_count: 2 });
    await applyTo(pool, clientsProjection, client);
    assert.deepEqual(await counts(clientId), { revision: 0, account_count: 2 });
    for (const clientFirst of [true, false]) {
      const other = randomUUID();
      const [birth = [], account = []] = await worlds([created(other)], [connected(other)]);
      await (clientFirst ? race(birth, account) : race(account, birth));
      assert.deepEqual(await counts(other), { revision: 0, account_count: 1 });
    }
  });

  t('batches that touch the same clients in any order do not deadlock', async () => {
    const random = seeded('recount order');
    const ids = Array.from({ length: 6 }, () => randomUUID());
    const batches = await worlds(
      ...Array.from({ length: 40 }, () =>
        random
          .shuffle(ids)
          .flatMap((id) => [connected(id), connected(id)])
          .slice(0, random.int(2, 12)),
      ),
    );
    await Promise.all(batches.map((batch) => applyTo(pool, clientsProjection, batch)));
    const { rows } = await pool.query(
      `select c.account_count, (select count(*)::int from read.accounts a where a.client_id = c.id) as n
       from read.clients_v1 c where c.id = any($1::uuid[])`,
      [ids],
    );
    for (const row of rows) assert.equal(row.account_count, row.n);
  });

  t('erasure wipes the accounts, whichever event is applied first', async () => {
    for (const erasedFirst of [true, false]) {
      const clientId = randomUUID();
      const [client = [], account = []] = await worlds([created(clientId), erased(clientId)], [connected(clientId)]);
      // Decoded before the key was destroyed: the event still shows the name.
      assert.equal(account[0]?.data.username, 'ann');
      await (erasedFirst ? race(client, account) : race(account, client));
      const { rows } = await pool.query(
        'select username, display_name, avatar_url, status from read.accounts where client_id = $1',
        [clientId],
      );
      assert.deepEqual(rows, [{ username: null, display_name: null, avatar_url: null, status: 'connected' }]);
      const { rows: shown } = await pool.query('select erased, account_count from read.clients where id = $1', [
        clientId,
      ]);
      assert.deepEqual(shown, [{ erased: true, account_count: 1 }]);
    }
  });

  t(
    'an event behind a gap parks its stream, one before its creation stops the lane; neither changes a row',
    async () => {
      const clientId = randomUUID();
      const born = connected(clientId);
      const lapse = { stream: born.stream, type: 'AccountReauthRequired', data: { reason: 'expired' } };
      const [life = []] = await worlds([born, lapse, lapse]);
      const [headless = []] = await worlds([erased(clientId)]);
      const tx = await begun();
      try {
        const gap = await new Projector(clientsProjection, 1).apply(tx, life.slice(1));
        assert.equal(gap?.action, 'park');
        assert.match(gap?.reason ?? '', /gap/);
        assert.match((await new Projector(clientsProjection, 1).apply(tx, headless))?.reason ?? '', /does not begin/);
      } finally {
        await end(tx);
      }
      assert.equal(await counts(clientId), undefined);
    },
  );

  /** A post of ten targets, in two batches: what is born in one is not recounted. */
  const tenTargets = async (workspaceId: string): Promise<DecodedEvent[][]> => {
    const [postId, clientId] = [randomUUID(), randomUUID()];
    const targets = Array.from({ length: 10 }, () =>
      planned({ targetId: randomUUID(), accountId: randomUUID(), clientId, platform: 'x', dueAt: instant(1) }),
    );
    const codec = new EventCodec(new TestKeys());
    const decoded = await history(scheduledPost(postId, clientId, targets), { codec, workspaceId });
    return [decoded.slice(0, 1), decoded.slice(1)];
  };

  t('a batch reads its own rows by index, also with plans made while the tables were small', async () => {
    const { url } = await preparedDatabase();
    // One session, so that its plans are those of the first batches.
    const alone = new Pool({ connectionString: url, max: 1 });
    try {
      await migrate(alone);
      const workspaceId = randomUUID();
      const batches = async (posts: number): Promise<void> => {
        for (let i = 0; i < posts; i += 1) {
          for (const batch of await tenTargets(workspaceId)) {
            await inTransaction(alone, async (tx) => {
              assert.equal(await new Projector(projectionOf('posts'), 1).apply(tx, batch), null);
              return { commit: true, result: null };
            });
          }
        }
      };
      const scanned = async (): Promise<unknown> => {
        await alone.query('select pg_stat_force_next_flush()');
        const { rows } = await alone.query(
          `select relname, seq_tup_read::int from pg_stat_user_tables where relname in ('posts_v1', 'post_targets_v1') order by 1`,
        );
        return rows;
      };
      await batches(1);
      await alone.query('analyze');
      const before = await scanned();
      await batches(30);
      assert.deepEqual(await scanned(), before);
    } finally {
      await alone.end();
    }
  });

  t('withTargets counts in memory what the recount counts in SQL', async () => {
    const random = seeded('post recount');
    const projection = projectionOf('posts');
    const codec = new EventCodec(new TestKeys());
    for (let round = 0; round < 60; round += 1) {
      const postId = randomUUID();
      const clientId = randomUUID();
      const platform = () => random.pick(['x', 'threads', 'tiktok'] as const);
      const plans = Array.from({ length: random.int(1, 5) }, () =>
        planned({
          targetId: randomUUID(),
          accountId: randomUUID(),
          clientId,
          platform: platform(),
          dueAt: instant(random.int(0, 500)),
        }),
      );
      const createdBy = { type: 'member', id: 'm' };
      const claim = { attempt: 1, takeover: 0 };
      const events: Given[] = [
        {
          stream: `post-${postId}`,
          type: 'PostScheduled',
          data: { clientId, createdBy, body: postBody(), plan: { number: 1, targets: plans } },
        },
      ];
      if (random.int(0, 1) === 1) {
        const change = { kind: 'cancel', reason: 'client_archived' };
        const targetIds = plans.filter(() => random.int(0, 2) > 0).map((one) => one.targetId);
        if (targetIds.length > 0) {
          events.push({ stream: `post-${postId}`, type: 'PostTargetsChanged', data: { change, targetIds } });
        }
      }
      for (const plan of plans) {
        if (random.int(0, 5) === 0) continue;
        const target = (type: string, data: object): void =>
          void events.push({ stream: `target-${plan.targetId}`, type, data });
        target('TargetScheduled', { ...plan, postId, postRevision: 0 });
        if (random.int(0, 2) === 0) target('TargetCanceled', { reason: 'client_archived', postRevision: 1 });
        else if (random.int(0, 1) === 0) target('TargetPublishStarted', claim);
        else if (random.next() < 0.5) target('TargetFailed', { ...claim, failure });
        else if (random.next() < 0.6) {
          target('TargetPublishStarted', claim);
          target('TargetHandedToPlatform', { ...claim, nativeId: 'n', dueAt: plan.dueAt });
        } else if (random.next() < 0.7) {
          target('TargetPublishStarted', claim);
          target('TargetAcceptedByPlatform', { ...claim, handle: null, askAt: plan.dueAt, until: plan.dueAt });
        }
      }
      const decoded = await history(events, { codec, workspaceId: randomUUID() });
      // A post that is created in one batch with its targets is counted in memory, too: SQL counts from the second batch.
      await applyTo(pool, projection, decoded.slice(0, 1));
      await applyTo(pool, projection, decoded.slice(1));
      const { rows } = await pool.query(`select * from ${view('posts')} where id = $1`, [postId]);
      const { shown_status: _generated, searched: _searched, searched_revision: _of, ...raw } = rows[0];
      const folded = rowOf(
        posts,
        decoded.filter((one) => one.stream === `post-${postId}`),
      );
      assert.ok(folded !== null);
      const targets = plans.flatMap((plan): TargetRow[] => {
        const row = rowOf(
          postTargets,
          decoded.filter((one) => one.stream === `target-${plan.targetId}`),
        );
        return row === null ? [] : [row];
      });
      assert.deepEqual(asRow(posts, raw), withTargets(folded, targets));
    }
  });
});
