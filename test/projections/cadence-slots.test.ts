import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { showsNothing, showsSomethingSql } from '#domain/platforms/index.ts';
import { slotsOf, takenSlotsOf } from '#projections/queries/posting-rules.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = Date.parse('2026-02-10T10:00:00.000Z');
const iso = (at: number): string => new Date(at).toISOString();

interface Given {
  readonly status: string;
  readonly platform?: string;
  readonly due_at?: string;
  readonly retry_at?: string;
  readonly next_action_at?: string;
  readonly published_at?: string;
  readonly updated_at?: string;
  readonly schedule_mode?: 'native';
  readonly failure?: { readonly code: string };
  readonly segments?: { readonly of: number; readonly out: readonly object[] };
  readonly revision?: number;
}

suite('slots of accounts in the read model', (t) => {
  // Of the comment that is a call of its own.
  t('Postgres and the deciders judge alike whether a text shows something', async () => {
    const spans = '1-3200 fe00-ffff 1bc90-1bcb0 1d160-1d180 dfff0-e0010 e0ff0-e1010'.split(' ');
    const codes = spans.flatMap((span) => {
      const [from = 0, to = 0] = span.split('-').map((one) => Number.parseInt(one, 16));
      return Array.from({ length: to - from + 1 }, (_, index) => from + index);
    });
    const { rows } = await pool.query<{ code: number }>(
      `select code from unnest($1::int[]) code where ${showsSomethingSql('chr(code)')} order by code`,
      [codes],
    );
    const seen = codes.filter((code) => !showsNothing(String.fromCodePoint(code))).sort((a, b) => a - b);
    assert.deepEqual(
      rows.map(({ code }) => code),
      seen,
    );
    for (const text of ['', ' \u200b\u{e0067}', 'a\u200b']) {
      const { rows: one } = await pool.query<{ shows: boolean }>(`select ${showsSomethingSql('$1::text')} as shows`, [
        text,
      ]);
      assert.equal(one[0]?.shows, !showsNothing(text));
    }
  });

  let pool: Pool;
  const workspaceId = randomUUID();

  t.before(async () => {
    pool = await readModelsPool();
  });

  const target = async (accountId: string, given: Given, body: object = {}, of = workspaceId): Promise<string> => {
    const [id, postId] = [randomUUID(), randomUUID()];
    const row = {
      ...{ id, workspace_id: of, revision: 0, created_at: iso(now), updated_at: iso(now), post_id: postId },
      ...{ account_id: accountId, platform: 'x', due_at: iso(now), schedule_mode: 'managed', ...given },
    };
    await pool.query(
      `insert into read.post_targets_v1 select * from jsonb_populate_record(null::read.post_targets_v1, $1)`,
      [JSON.stringify(row)],
    );
    await pool.query('insert into read.posts_v1 (id, workspace_id, revision, body) values ($1, $2, 0, $3)', [
      ...[postId, of, JSON.stringify({ thread: null, variants: [], ...body })],
    ]);
    return id;
  };
  const planned = async (accountId: string) =>
    (await slotsOf(pool, { accountId, from: now - hourMs, to: now + hourMs })).map(({ targetId }) => targetId);
  const taken = async (accountId: string) => {
    const out = { from: now - dayMs, to: now + dayMs };
    const { rows, entries } = await takenSlotsOf(pool, { workspaceId, accountId, out, waitingFrom: now });
    return { entries, rows: rows.map(({ targetId, at, calls, state }) => ({ targetId, at: at - now, calls, state })) };
  };

  t('a target counts at the instant at which it goes out, or went out, whenever it was due', async () => {
    const accountId = randomUUID();
    const long = iso(now - 9 * dayMs);
    const inside: readonly Given[] = [
      { status: 'published', due_at: long, published_at: iso(now) },
      { status: 'pending', due_at: long, retry_at: iso(now) },
      { status: 'pending' },
      { status: 'publishing', due_at: long, next_action_at: iso(now) },
      { status: 'outcome_unknown', due_at: long, next_action_at: iso(now) },
      { status: 'processing', due_at: long, next_action_at: iso(now + 9 * dayMs), updated_at: iso(now) },
      { status: 'handed_to_platform', schedule_mode: 'native', next_action_at: long },
      { status: 'failed', due_at: long, segments: { of: 3, out: [{}] }, updated_at: iso(now) },
    ];
    const outside: readonly Given[] = [
      { status: 'published', published_at: long },
      { status: 'pending', retry_at: iso(now + 9 * dayMs) },
      { status: 'publishing', next_action_at: long },
      { status: 'failed' },
      { status: 'canceled' },
    ];
    const ids = [];
    for (const given of inside) ids.push(await target(accountId, given));
    for (const given of outside) await target(accountId, given);
    assert.deepEqual((await planned(accountId)).toSorted(), ids.toSorted());
  });

  t('at a claim count what is out or under way, and what waits; not what is planned', async () => {
    const accountId = randomUUID();
    const failure = { code: 'cadence_reached' };
    const expected = [];
    for (const [given, state, at, calls] of [
      [{ status: 'published', published_at: iso(now - 5) }, 'out', -5, 2],
      [{ status: 'publishing', next_action_at: iso(now - 4) }, 'under_way', -4, 2],
      [{ status: 'outcome_unknown', next_action_at: iso(now + 3) }, 'out', 3, 2],
      [{ status: 'processing', next_action_at: iso(now + 900), updated_at: iso(now - 3) }, 'out', -3, 2],
      [{ status: 'handed_to_platform', schedule_mode: 'native', due_at: iso(now + 2) }, 'out', 2, 2],
      [{ status: 'failed', segments: { of: 2, out: [{}] }, updated_at: iso(now - 1) }, 'out', -1, 1],
      [{ status: 'pending', retry_at: iso(now + 40 * dayMs), failure }, 'waiting', 40 * dayMs, 2],
    ] as const) {
      const targetId = await target(accountId, given, { thread: { segments: [{}, {}] } });
      expected.push({ targetId, at, calls, state });
    }
    for (const given of [
      { status: 'pending' },
      { status: 'pending', retry_at: iso(now + 1), failure: { code: 'adapter_failed' } },
      { status: 'pending', retry_at: iso(now - 1), failure },
      { status: 'rate_limited', retry_at: iso(now + 1), failure },
      { status: 'awaiting_approval' },
      { status: 'published', published_at: iso(now - 2 * dayMs) },
    ]) {
      await target(accountId, given);
    }
    await target(accountId, { status: 'published', published_at: iso(now) }, {}, randomUUID());
    const byId = (a: { targetId: string }, b: { targetId: string }) => (a.targetId < b.targetId ? -1 : 1);
    assert.deepEqual((await taken(accountId)).rows.toSorted(byId), expected.toSorted(byId));
  });

  t(
    'a thread counts a call for each post, on each network that has threads; a first comment one more on X',
    async () => {
      const variants = [{ platform: 'x', overrides: { firstComment: 'More.' } }];
      const thread = { segments: [{}, {}, {}] };
      for (const [platform, calls] of [
        ['x', 4],
        ['threads', 3],
        ['linkedin', 1],
      ] as const) {
        const accountId = randomUUID();
        await target(accountId, { status: 'published', platform, published_at: iso(now) }, { thread, variants });
        assert.deepEqual(
          (await taken(accountId)).rows.map((one) => one.calls),
          [calls],
          platform,
        );
      }
    },
  );

  t('an entry ends with the next event of its target in the rows', async () => {
    const accountId = randomUUID();
    const [same, later] = [
      await target(accountId, { status: 'pending', revision: 4 }),
      await target(accountId, { status: 'canceled', revision: 5 }),
    ];
    const entries = [same, later, randomUUID()].map((targetId) => ({
      ...{ targetId, at: now, calls: 1, state: 'under_way', revision: 4, until: now },
    }));
    await pool.query(`insert into ops.cadence_slots values ($1, $2, gen_random_uuid(), $3, now())`, [
      ...[workspaceId, accountId, JSON.stringify(entries)],
    ]);
    const found = await taken(accountId);
    assert.deepEqual(
      found.entries.map(({ targetId }) => targetId),
      [same, entries[2]?.targetId],
    );
    assert.deepEqual(found.rows, []);
  });
});
