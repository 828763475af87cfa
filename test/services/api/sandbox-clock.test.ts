import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { testTwinIdOf } from '#domain/ids.ts';
import { workspace } from '#domain/workspace.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { startOutcomes } from '#services/outcomes/outcomes.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { quick, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { presignBody } from '#test/support/uploads.ts';

const dayMs = 86_400_000;
const minuteMs = 60_000;

suite('the clock of a sandbox workspace', { timeoutMs: 120_000 }, (t) => {
  let world: World;
  let one: Composer;
  let numbering: Numbering;
  const stop = new AbortController();
  const running: Promise<unknown>[] = [];

  t.before(async () => {
    world = await startWorld();
    numbering = startNumbering(world);
    one = await composer(world, ['facebook', 'x']);
    const { store, pool, log, eventStore, codec, logger } = world;
    const sandbox = new SandboxNetwork({ database: { pool }, ...quickNetwork });
    const shared = { store, pool, logger, clock: wallClock };
    const publisher = {
      ...{ adapterOf: () => sandbox, accountsOf: () => sandbox, blobs: world.deps.blobs, pollMs: 50 },
      ...{ workDir: path.join(tmpdir(), `clock-${randomUUID()}`), config: quick },
    };
    running.push(runPublisher({ ...shared, ...publisher }, stop.signal));
    const config = { sweepIntervalMs: 600_000, leaseTtlMs: quick.leaseTtlMs };
    running.push(startOutcomes({ ...shared, log, eventStore, codec, config }, stop.signal).done);
  });
  t.after(async () => {
    stop.abort();
    await Promise.all([...running, numbering.stop()]);
    await world.close();
  });

  const clockOf = async (by: Caller = world.tester) => {
    const { status, data, text } = await by.get('/sandbox/clock');
    assert.equal(status, 200, text);
    return data as unknown as { now: string; realNow: string; latest: string };
  };
  const ahead = async (ms: number, by?: Caller): Promise<string> =>
    new Date(Date.parse((await clockOf(by)).now) + ms).toISOString();
  const move = async (to: string, by: Caller = world.tester, key?: string) => {
    const moved = await by.post('/sandbox/clock', { to }, key === undefined ? {} : { key });
    assert.equal(moved.status, 200, moved.text);
    return moved.data as unknown as { now: string; lastMove: { from: string } & Readonly<Record<string, number>> };
  };
  interface Target {
    readonly id: string;
    readonly platform: string;
    readonly status: string;
    readonly scheduledAt: string;
    readonly scheduleMode: string;
    readonly publishedAt: string | null;
  }
  const shown = async (id: string, by: Caller = world.tester) => {
    const { data, text, status } = await by.get(`/posts/${id}`);
    assert.equal(status, 200, text);
    return data as unknown as { status: string; targets: readonly Target[]; createdAt: string; recycle?: unknown };
  };
  const published = (id: string, by?: Caller) =>
    until(`${id} is out`, async () => ((await shown(id, by)).status === 'published' ? true : null));
  const posted = async (scheduledAt: string, more: object = {}, by: Caller = world.tester, of = one) => {
    const made = await by.post('/posts', of.body({ schedule: { type: 'at', scheduledAt }, ...more }));
    assert.equal(made.status, 200, made.text);
    return made.data.id;
  };

  t('is refused to live keys, goes ahead alone, and not without end', async () => {
    refused(await world.owner.post('/sandbox/clock', { to: await ahead(dayMs) }), 403, 'sandbox_only');
    const live = await clockOf(world.owner);
    assert.equal(live.now, live.realNow);
    await assert.rejects(
      execute(
        world.store,
        workspace,
        world.workspaceId,
        { type: 'MoveSandboxClock', aheadMs: 1 },
        contextOf(world.operator, world.workspaceId),
      ),
      { code: 'sandbox_only' },
    );
    refused(await world.tester.post('/sandbox/clock', { to: await ahead(-minuteMs) }), 422, 'validation_failed', [
      '/to',
    ]);
    const { latest } = await clockOf();
    const beyond = new Date(Date.parse(latest) + minuteMs).toISOString();
    refused(await world.tester.post('/sandbox/clock', { to: beyond }), 422, 'validation_failed', ['/to']);
    const { now, realNow } = await clockOf();
    assert.ok(Math.abs(Date.parse(now) - Date.parse(realNow)) < 2, 'nobody has moved it');
  });

  t('what a move makes due goes out at once, for its workspace alone', async () => {
    const other = await world.agency();
    const theirs = await composer(world, ['x'], { by: other.tester });
    const dueAt = await ahead(dayMs);
    const id = await posted(dueAt);
    const foreign = await posted(dueAt, {}, other.tester, theirs);
    await world.settled();
    const key = randomUUID();
    const to = await ahead(dayMs + minuteMs);
    const moved = await move(to, world.tester, key);
    assert.ok(moved.now >= to && moved.lastMove.from < dueAt);
    assert.equal(moved.lastMove.targets, 2);
    assert.deepEqual(await move(to, world.tester, key), moved, 'a repeat under the same key');
    await published(id);
    const { targets, createdAt } = await shown(id);
    assert.ok(createdAt < dueAt);
    for (const { publishedAt } of targets) assert.ok(publishedAt !== null && publishedAt >= to, `${publishedAt} ${to}`);
    assert.equal((await shown(foreign, other.tester)).status, 'scheduled');
    const theirClock = await clockOf(other.tester);
    assert.ok(Math.abs(Date.parse(theirClock.now) - Date.parse(theirClock.realNow)) < 2);
    for (const event of await world.store.readStream(`target-${targets[0]?.id}`)) {
      assert.ok(event.metadata.occurredAt < new Date(Date.now() + minuteMs).toISOString(), event.type);
    }
    const past = await world.tester.post('/posts', one.body({ schedule: { type: 'at', scheduledAt: dueAt } }));
    refused(past, 422, 'schedule_in_past');
    const soon = await world.tester.post('/posts', one.body({ schedule: { type: 'now' } }));
    await published(soon.data.id);
  });

  t('days pass: a post is copied each week, and the quota of another month begins anew', async () => {
    const limit = { type: 'SetPostingQuota', limit: 3 } as const;
    const by = await world.agency();
    const own = testTwinIdOf(by.workspaceId);
    await execute(world.store, workspace, own, limit, contextOf(world.operator, own));
    const of = await composer(world, ['x'], { by: by.tester });
    const { tester } = by;
    // The middle of a month, so that three weeks lie in two months.
    const begin = new Date(Date.parse((await clockOf(tester)).now) + 40 * dayMs);
    begin.setUTCDate(15);
    await move(begin.toISOString(), tester);
    const quota = async () => {
      await world.settled();
      return (await tester.get('/quota')).data as unknown as {
        used: number;
        scheduled: number;
        period: { from: string };
      };
    };
    const month = (await quota()).period.from;
    assert.ok(Math.abs(Date.parse(month) - begin.getTime()) < 16 * dayMs, month);
    const made = await tester.post('/posts', of.body({ schedule: { type: 'now' } }));
    await published(made.data.id, tester);
    const recycled = await tester.request('PUT', `/posts/${made.data.id}/recycle`, {
      body: { enabled: true, everyDays: 7 },
    });
    assert.equal(recycled.status, 200, recycled.text);
    const nextAt = String(recycled.data.nextAt);
    assert.ok(Math.abs(Date.parse(nextAt) - begin.getTime() - 7 * dayMs) < dayMs, nextAt);
    const copies = async () =>
      (await tester.get(`/posts?clientId=${of.clientId}&limit=50`)).rows.filter(({ status }) => status === 'published');
    for (const week of [1, 2, 3]) {
      const { lastMove: due } = await move(
        new Date(begin.getTime() + week * 7 * dayMs + 60 * minuteMs).toISOString(),
        tester,
      );
      assert.equal(due.recycles, 1, JSON.stringify(due));
      await until(`copy ${week}`, async () => ((await copies()).length === week + 1 ? true : null));
    }
    const now = await quota();
    assert.ok(now.period.from > month, 'another month has begun');
    assert.ok(now.used < 3, JSON.stringify(now));
  });

  t('a post that its network was given is out at its time', async () => {
    const scheduledAt = await ahead(5 * dayMs);
    const id = await posted(scheduledAt, {
      scheduleMode: 'native',
      targets: { mode: 'group', clientId: one.clientId, platforms: ['facebook'] },
    });
    const handed = () => shown(id).then(({ targets }) => targets[0]?.status);
    await until('it is handed over', async () => ((await handed()) === 'handed_to_platform' ? true : null));
    await move(await ahead(5 * dayMs + minuteMs));
    await published(id);
    assert.equal((await shown(id)).targets[0]?.publishedAt, scheduledAt);
  });

  t('asOf means the time that the workspace had', async () => {
    const before = (await clockOf()).now;
    const id = await posted(await ahead(dayMs));
    const planned = (await clockOf()).now;
    await move(await ahead(dayMs + minuteMs));
    await published(id);
    const then = async (asOf: string) => world.tester.get(`/posts/${id}?asOf=${encodeURIComponent(asOf)}`);
    refused(await then(before), 404, 'not_found');
    const wasPlanned = await then(planned);
    assert.equal(wasPlanned.data.status, 'scheduled');
    assert.equal(JSON.parse(wasPlanned.text).meta.asOf.at, planned, 'in the time that was asked for');
    // The move passed over it.
    assert.equal((await then(new Date(Date.parse(planned) + dayMs / 2).toISOString())).data.status, 'scheduled');
    assert.equal((await then((await clockOf()).now)).data.status, 'published');
    refused(await then(await ahead(60 * minuteMs)), 400, 'invalid_parameter');
  });

  t('in time that was moved, faults end, comments follow, and an account publishes as often as it may', async () => {
    const own = testTwinIdOf(world.workspaceId);
    await move(await ahead(dayMs));
    const now = async (content: string, platform: string, more: object = {}) => {
      const targets = { mode: 'group', clientId: one.clientId, platforms: [platform] };
      const made = await world.tester.post(
        '/posts',
        one.body({ content, targets, schedule: { type: 'now' }, ...more }),
      );
      assert.equal(made.status, 200, made.text);
      return made.data.id;
    };
    const commented = { variants: [{ platform: 'facebook', overrides: { firstComment: 'First.' } }] };
    const ids = [
      await now('Unknown [[sandbox:timeout_after once]]', 'x'),
      await now('Limited [[sandbox:rate_limit once 1s]]', 'x'),
      await now('Looked at [[sandbox:processing 1s]]', 'facebook'),
      await now('Commented', 'facebook', commented),
    ];
    for (const id of ids) await published(id);
    const [target] = (await shown(ids[3] ?? '')).targets;
    const commentedOn = (id: string) =>
      until('the comment', async () => {
        const { data } = await world.tester.get(`/post-targets/${id}`);
        return typeof data.firstCommentExternalId === 'string' ? true : null;
      });
    await commentedOn(target?.id ?? '');
    // A comment that its network refused for hours waits for the clock, and for nothing else.
    const late = {
      variants: [{ platform: 'facebook', overrides: { firstComment: 'Late. [[sandbox:rate_limit once 5h]]' } }],
    };
    const lateId = await now('Commented late', 'facebook', late);
    await published(lateId);
    const waiting = (await shown(lateId)).targets[0]?.id ?? '';
    await until('it waits', async () => {
      const { data } = await world.tester.get(`/post-targets/${waiting}`);
      return (data.firstCommentIssue as { retryAt?: string } | null)?.retryAt == null ? null : true;
    });
    await world.settled();
    const { rows } = await world.pool.query<{ hours: number }>(
      `select extract(epoch from next_action_at - now())::float8 / 3600 as hours from ${view('post_targets')} where id = $1`,
      [waiting],
    );
    assert.ok(Math.abs((rows[0]?.hours ?? 0) - 5) < 0.2, `in real time it waits for ${rows[0]?.hours} hours`);
    await move(await ahead(6 * 3_600_000));
    await commentedOn(waiting);
    const rule = { platform: 'x', minIntervalMinutes: null, perDay: 1 } as const;
    await execute(world.store, workspace, own, { type: 'SetCadence', rule }, contextOf(world.operator, own));
    await world.settled();
    await move(await ahead(2 * dayMs));
    const x = { targets: { mode: 'group', clientId: one.clientId, platforms: ['x'] } };
    await published(await now('First of the day', 'x'));
    const second = one.body({ ...x, content: 'Second', schedule: { type: 'now' } });
    // A process may go by the rules of a moment ago.
    await until('the rule holds', async () => {
      const { data } = await world.tester.post('/posts/preview', second);
      return JSON.stringify(data.problems).includes('cadence_exceeded') ? true : null;
    });
    const later = await posted(await ahead(dayMs + minuteMs), { ...x, content: 'A day later' });
    await move(await ahead(dayMs + 2 * minuteMs));
    await published(later);
    await execute(
      world.store,
      workspace,
      own,
      { type: 'SetCadence', rule: { ...rule, perDay: null } },
      contextOf(world.operator, own),
    );
  });

  t('an approval comes too late, and its link ends, by this clock', async () => {
    await world.tester.patch(`/clients/${one.clientId}`, { approvalRequired: true, rules: { approvalLate: 'fail' } });
    const id = await posted(await ahead(2 * dayMs));
    const held = (await shown(id)) as unknown as { approvalId: string };
    const link = await world.tester.post(`/approvals/${held.approvalId}/links`, { expiresInHours: 30 });
    const page = async () => (await fetch(String(link.data.url))).status;
    assert.equal(await page(), 200);
    await move(await ahead(31 * 60 * minuteMs));
    assert.equal(await page(), 404);
    await move(await ahead(dayMs));
    await until('it fails', async () => ((await shown(id)).status === 'failed' ? true : null));
    await world.tester.patch(`/clients/${one.clientId}`, { approvalRequired: false });
  });

  t(
    'what waits for its time comes as much nearer as the clock is moved, and nothing of another workspace',
    async () => {
      const [mine, theirs] = [await world.agency(), await world.agency()];
      const twins = [mine, theirs].map(({ workspaceId }) => testTwinIdOf(workspaceId));
      const [soon, late] = [`now() + interval '1 hour'`, `now() + interval '3 days'`];
      const add = async (workspaceId: string): Promise<string> => {
        const id = randomUUID();
        const run = (sql: string, ...more: unknown[]) => world.pool.query(sql, [id, workspaceId, ...more]);
        await run(
          `insert into ops.webhook_endpoints (id, workspace_id, revision, state, active, version) values ($1, $2, 0, '{}', true, 0)`,
        );
        for (const [at, leased] of [
          [soon, false],
          [late, false],
          [soon, true],
        ] as const) {
          await run(
            `insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at, leased,
             attempt, tries, trigger) values (gen_random_uuid(), now(), $1, $1, $2, 1, ${at}, ${leased}, 1, 1, 'scheduled')`,
          );
        }
        await world.pool.query(
          `insert into ops.webhook_health (endpoint_id, seen_revision, failing_since, open_until, opened)
         values ($1, 0, now(), ${soon}, 1)`,
          [id],
        );
        await run(
          `insert into ops.insights_accounts (account_id, workspace_id, platform, connected, next_at) values ($1, $2, 'x', true, ${soon})`,
        );
        await run(
          `insert into ops.report_schedules (report_id, workspace_id, after, due_at) values ($1, $2, now(), ${soon})`,
        );
        return id;
      };
      const ids = [await add(twins[0] ?? ''), await add(twins[1] ?? '')];
      const seen = async () => {
        const { rows } = await world.pool.query<{ id: string; what: string; at: Date }>(
          `select endpoint_id::text as id, 'queue' || leased::text as what, next_at as at from ops.webhook_queue where endpoint_id = any($1)
         union all select endpoint_id::text, 'open', open_until from ops.webhook_health where endpoint_id = any($1)
         union all select endpoint_id::text, 'failing', failing_since from ops.webhook_health where endpoint_id = any($1)
         union all select account_id::text, 'figures', next_at from ops.insights_accounts where account_id = any($1)
         union all select report_id::text, 'report', due_at from ops.report_schedules where report_id = any($1)
         order by 1, 2, 3`,
          [ids],
        );
        return rows;
      };
      const before = await seen();
      const { lastMove } = await move(await ahead(dayMs, mine.tester), mine.tester);
      const { targets, recycles, accounts, reports, deliveries } = lastMove;
      assert.deepEqual([targets, recycles, accounts, reports, deliveries], [0, 0, 1, 1, 1]);
      const after = await seen();
      for (const [at, { id, what, at: then }] of after.entries()) {
        const by = (before[at]?.at.getTime() ?? 0) - then.getTime();
        const isMoved = id === ids[0] && what !== 'queuetrue';
        assert.ok(isMoved ? Math.abs(by - dayMs) < minuteMs : by === 0, `${what} of ${id === ids[0]} by ${by}`);
      }
      await world.pool.query('delete from ops.webhook_endpoints where id = any($1)', [ids]);
    },
  );

  t('a move brings every waiting delivery nearer once, however many there are', async () => {
    const mine = await world.agency();
    const twin = testTwinIdOf(mine.workspaceId);
    const [endpoint, many] = [randomUUID(), 25_003];
    await world.pool.query(
      `insert into ops.webhook_endpoints (id, workspace_id, revision, state, active, version) values ($1, $2, 0, '{}', true, 0)`,
      [endpoint, twin],
    );
    // Many wait for one instant, and the times of all are nearer than the move is long.
    await world.pool.query(
      `insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at, leased,
         attempt, tries, trigger)
       select gen_random_uuid(), now(), $1, $1, $2, n % 3, date_trunc('hour', now()) + interval '2 days' + (n / 5000) * interval '1 hour',
         false, 1, 1, 'scheduled' from generate_series(1, $3::int) n`,
      [endpoint, twin, many],
    );
    const times = async () =>
      (
        await world.pool.query<{ lane: number; at: Date; n: number }>(
          `select lane, next_at as at, count(*)::int as n from ops.webhook_queue where endpoint_id = $1 group by 1, 2 order by 1, 2`,
          [endpoint],
        )
      ).rows;
    const before = await times();
    const from = (await clockOf(mine.tester)).now;
    const { now } = await move(await ahead(dayMs, mine.tester), mine.tester);
    const by = Date.parse(now) - Date.parse(from);
    const after = await times();
    assert.deepEqual(
      after.map(({ lane, n }) => [lane, n]),
      before.map(({ lane, n }) => [lane, n]),
    );
    for (const [at, { at: then }] of after.entries()) {
      const moved = (before[at]?.at.getTime() ?? 0) - then.getTime();
      assert.ok(Math.abs(moved - by) < minuteMs, `moved by ${moved}, not ${by}`);
    }
    await world.pool.query('delete from ops.webhook_queue where endpoint_id = $1', [endpoint]);
    await world.pool.query('delete from ops.webhook_endpoints where id = $1', [endpoint]);
  });

  t('what leaves the sandbox ends in real time', async () => {
    const { now, realNow } = await clockOf();
    assert.ok(Date.parse(now) - Date.parse(realNow) > dayMs);
    const soon = new Date(Date.parse(realNow) + dayMs).toISOString();
    const upload = await world.tester.post('/media/presign', presignBody());
    assert.ok(String(upload.data.expiresAt) < soon, upload.text);
    const invite = await world.tester.post(`/clients/${one.clientId}/connect-invites`, {
      platforms: ['x'],
      expiresInHours: 1,
    });
    assert.ok(String(invite.data.expiresAt) < soon, invite.text);
    const hook = await world.tester.post('/webhooks', { url: 'https://hooks.agency.example/in', events: ['post.*'] });
    assert.ok(String(hook.data.createdAt) < soon, hook.text);
    // What the workspace plans has its own time.
    const draft = await world.tester.post('/posts', one.body({ saveDraft: true, schedule: { type: 'now' } }));
    assert.ok(String(draft.data.createdAt) >= now, draft.text);
  });

  t('whoever has the answer of a move finds no process that goes by the time before', async () => {
    const own = testTwinIdOf(world.workspaceId);
    const other = new SandboxClocks(world.pool);
    let isMoving = true;
    const looking = (async () => {
      while (isMoving) {
        await other.aheadOf(own);
        await setImmediate();
      }
    })();
    const before = await other.aheadOf(own);
    const moved = world.tester.post('/sandbox/clock', { to: await ahead(dayMs) });
    const known = await moved.then(() => other.aheadOf(own));
    isMoving = false;
    await looking;
    assert.ok(known >= before + dayMs - minuteMs);
  });
});
