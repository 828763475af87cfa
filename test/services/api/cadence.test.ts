import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { target } from '#domain/post-target/target.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { refused } from '#test/support/composing.ts';
import { type Answered, startWorld, type World } from '#test/support/http.ts';
import { quotaWorld } from '#test/support/quotas.ts';
import { suite } from '#test/support/suite.ts';

const day = 86_400_000;
const inMinutes = (minutes: number): string =>
  new Date(Math.ceil(Date.now() / 60_000) * 60_000 + day + minutes * 60_000).toISOString();

suite('cadence over HTTP', { timeoutMs: 120_000 }, (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());

  const at = (scheduledAt: string) => ({ schedule: { type: 'at', scheduledAt } });
  const ruled = async (rules: readonly Partial<CadenceRule>[]) => {
    const agency = await world.agency();
    const one = await quotaWorld(world, null, ['x', 'bluesky'], {}, agency);
    for (const more of rules) {
      const rule = { platform: null, minIntervalMinutes: null, perDay: null, ...more };
      const context = contextOf(world.operator, one.workspaceId);
      await execute(world.store, workspace, one.workspaceId, { type: 'SetCadence', rule }, context);
    }
    await world.settled();
    // A rule takes effect within a second.
    const create = (scheduledAt: string, more: Readonly<Record<string, unknown>> = {}) =>
      one.by.post('/posts', one.composed.body({ ...at(scheduledAt), ...more }));
    return { ...one, create };
  };
  const accountsOf = ({ body }: Answered) => (body.errors ?? []).map(({ accountId }) => accountId).sort();

  t('a workspace without rules lets a sandbox account publish as often as it likes', async () => {
    const { by, composed, create } = await ruled([]);
    for (let n = 0; n < 3; n += 1) assert.equal((await create(inMinutes(0))).status, 200);
    const { data } = await by.get(`/accounts/${composed.accounts.x}/cadence`);
    assert.equal(data.minIntervalMinutes, null);
    assert.deepEqual(
      (data.windows as readonly { name: string; limit: number; source: string }[]).map((one) => [
        one.name,
        one.limit,
        one.source,
      ]),
      [
        ['15 minutes', 100, 'platform'],
        ['3 hours', 300, 'platform'],
      ],
    );
    assert.ok(Date.parse(String(data.nextFreeAt)) <= Date.now());
  });

  t('a post too near to another one is refused, and names the accounts; a draft is not', async () => {
    const { by, composed, create } = await ruled([{ minIntervalMinutes: 30 }, { platform: 'bluesky', perDay: 9 }]);
    assert.equal((await create(inMinutes(0))).status, 200);
    const near = await create(inMinutes(29));
    refused(near, 422, 'cadence_exceeded', ['/schedule']);
    assert.deepEqual(accountsOf(near), [composed.accounts.x]);
    const only = { targets: { mode: 'selection', accountIds: [composed.accounts.bluesky] } };
    assert.equal((await create(inMinutes(29), only)).status, 200);
    assert.equal((await create(inMinutes(30))).status, 200);
    const draft = await create(inMinutes(15), { saveDraft: true });
    assert.equal(draft.status, 200);
    refused(await by.post(`/posts/${draft.data.id}/publish`, {}), 422, 'cadence_exceeded');
    const preview = (await by.post('/posts/preview', composed.body(at(inMinutes(15))))).data;
    const problems = preview.problems as readonly { code: string }[];
    assert.deepEqual([preview.valid, problems.map(({ code }) => code)], [false, ['cadence_exceeded']]);
    const shown = preview.cadence as readonly { accountId: string; minIntervalMinutes: number | null }[];
    assert.deepEqual(
      shown.map((one) => [one.accountId, one.minIntervalMinutes]).sort(),
      [
        [composed.accounts.x, 30],
        [composed.accounts.bluesky, null],
      ].sort(),
    );
    const { data: bulk } = await by.post('/posts/bulk', {
      posts: [composed.body(at(inMinutes(10))), composed.body(at(inMinutes(300)))],
    });
    assert.deepEqual([bulk.created, bulk.rejected], [1, 1]);
  });

  t('a revise keeps its own place, and moves only where there is room; a reschedule too', async () => {
    const { by, create } = await ruled([{ minIntervalMinutes: 60 }]);
    const first = await create(inMinutes(0));
    const second = await create(inMinutes(120));
    const revise = (minutes: number) => by.post(`/posts/${second.data.id}/revise`, at(inMinutes(minutes)));
    assert.equal((await by.post(`/posts/${second.data.id}/revise`, { content: 'Other words.' })).status, 200);
    assert.equal((await revise(100)).status, 200);
    refused(await revise(59), 422, 'cadence_exceeded', ['/schedule', '/schedule']);
    const [one] = first.data.targets as readonly { id: string }[];
    await world.settled();
    const move = (scheduledAt: string) => by.post(`/post-targets/${one?.id}/reschedule`, { scheduledAt });
    refused(await move(inMinutes(90)), 422, 'cadence_exceeded', ['']);
    assert.equal((await move(inMinutes(30))).status, 200);
    const { data } = await by.post('/post-targets/bulk', {
      action: 'reschedule',
      targetIds: [one?.id],
      shiftMinutes: 45,
    });
    const [result] = data.results as readonly { ok: boolean; error?: { code: string } }[];
    assert.deepEqual([result?.ok, result?.error?.code], [false, 'cadence_exceeded']);
  });

  t('a shift of a campaign passes over what would come too near to others', async () => {
    const { by, create } = await ruled([{ minIntervalMinutes: 60 }]);
    const campaign = await by.post('/campaigns', { name: 'Spring' });
    const campaignId = campaign.data.id;
    // Two that move together, each onto the former place of the next.
    for (const minutes of [0, 60]) assert.equal((await create(inMinutes(minutes), { campaignId })).status, 200);
    assert.equal((await create(inMinutes(150))).status, 200);
    await world.settled();
    const shift = async (minutes: number) => (await by.post(`/campaigns/${campaignId}/shift`, { minutes })).data;
    const near = await shift(60);
    assert.equal(near.shifted, 2);
    assert.deepEqual(
      (near.skipped as readonly { reason: string }[]).map(({ reason }) => reason),
      ['cadence_exceeded', 'cadence_exceeded'],
    );
  });

  t('the limits of an account: of its network, as reported, and of the workspace', async () => {
    const { by, composed, workspaceId } = await ruled([{ minIntervalMinutes: 5, perDay: 3 }]);
    const made = await by.post('/posts', composed.body({ schedule: { type: 'now' } }));
    assert.equal(made.status, 200, made.text);
    const x = composed.accounts.x ?? '';
    const id = (made.data.targets as readonly { id: string; accountId: string }[]).find(
      (one) => one.accountId === x,
    )?.id;
    const context = () => contextOf(world.operator, workspaceId);
    const tell = (command: Parameters<typeof target.decide>[0]) =>
      execute(world.store, target, id ?? '', command, context(), { partitionKey: made.data.id });
    const publishedAt = new Date().toISOString();
    await tell({ type: 'Start', now: publishedAt });
    await tell({
      ...({ type: 'RecordPublished', attempt: 1, takeover: 0, externalId: 'e', permalink: null } as const),
      publishedAt,
    });
    const windows = [{ name: '15 minutes', seconds: 900, limit: 40, used: 0, resetsAt: null }];
    await execute(world.store, account, x, { type: 'ObserveLimits', windows }, context());
    await world.settled();
    const { data, text } = await by.get(`/accounts/${x}/cadence`);
    const shown = data.windows as readonly { name: string; used: number; remaining: number; source: string }[];
    assert.deepEqual(
      shown.map(({ name, used, remaining, source }) => [name, used, remaining, source]),
      [
        ['3 hours', 1, 299, 'platform'],
        ['15 minutes', 1, 39, 'observed'],
        ['24 hours', 1, 2, 'workspace'],
      ],
      text,
    );
    const free = Date.parse(String(data.nextFreeAt)) - Date.parse(publishedAt);
    assert.ok(Math.abs(free - 300_000) < 5_000, `${free}`);
    const listed = await by.get(`/accounts/cadence?clientId=${composed.clientId}&platform=x`);
    assert.deepEqual(
      listed.rows.map((row) => (row as unknown as { accountId: string }).accountId),
      [x],
    );
    const first = await by.get('/accounts/cadence?limit=1');
    assert.equal(first.body.page?.hasMore, true);
    const next = await by.get(`/accounts/cadence?limit=1&cursor=${first.body.page?.nextCursor}`);
    assert.equal(next.rows.length, 1);
    assert.equal((await by.get(`/accounts/${randomUUID()}/cadence`)).status, 404);
  });
});
