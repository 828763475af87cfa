import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { quotaIdOf } from '#domain/ids.ts';
import { quota } from '#domain/quota.ts';
import { workspace } from '#domain/workspace.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { sweepQuotas } from '#services/outcomes/quotas.ts';
import { abandonMs } from '#services/workflows/quota/give-back.ts';
import { pointsInSource } from '#test/faults/points.ts';
import { Due, FaultWorld } from '#test/faults/world.ts';
import { commandContext } from '#test/support/domain.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { monthsAhead } from '#test/support/quotas.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

type Json = Readonly<Record<string, unknown>> & { readonly id: string };

const next = monthsAhead(1);
const later = monthsAhead(2);

/** An api that is killed (SIGKILL) around the places that a call takes and gives back. */
suite('an api killed around the places of a quota', { drawn: true, costs: 5, timeoutMs: 240_000 }, (t) => {
  let world: FaultWorld;
  let store: DomainStore;
  let clientId = '';
  let workspaceId = '';
  const dir = mkdtempSync(path.join(tmpdir(), 'postline-quota-deaths-'));
  const due = Due.later(pointsInSource(), dir);

  t.before(async () => {
    const { url } = await preparedDatabase();
    // No figures are read here, so no analytics store needs to run.
    world = await FaultWorld.open({ databaseUrl: url, random: seeded('deaths'), analyticsUrl: 'http://127.0.0.1:1' });
    world.role('api').dieAt(due);
    await world.begin(['api', 'projections']);
    store = new DomainStore(world.adapters.store, world.codec, world.adapters.log.partitions);
    const accounts = (await world.load.get('/accounts?limit=100')).data as unknown as readonly Json[];
    clientId = String(accounts[0]?.clientId);
    workspaceId = (await store.readStream(`account-${accounts[0]?.id}`))[0]?.metadata.workspaceId ?? '';
    const set = { type: 'SetPostingQuota', limit: 1_000 } as const;
    await execute(store, workspace, workspaceId, set, { ...commandContext(), workspaceId });
    await until('the api knows of the quota', async () => (await world.load.get('/quota')).data.limit === 1_000);
  });
  t.after(async () => {
    await world?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** Makes one call, during which the api dies there, and waits for the next api. */
  const dies = async (route: string, sent: unknown, key: string, at: string): Promise<void> => {
    const api = world.role('api');
    const { up } = api;
    due.arm(at);
    const headers = {
      authorization: `Bearer ${world.token}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    };
    const call = fetch(`${world.origin()}/v1${route}`, { method: 'POST', headers, body: JSON.stringify(sent) });
    await assert.rejects(call, TypeError, `the api answered and did not die at ${at}`);
    assert.deepEqual(due.open, [], `no process died at ${at}`);
    await until('the next api is up', () => api.up !== null && api.up !== up, { withinMs: 60_000 });
  };
  const post = async (route: string, body: unknown, key: string = randomUUID()): Promise<Json> => {
    const { status, code, data } = await world.load.call('POST', route, body, key);
    assert.equal(status, 200, `${route}: ${status} ${code}`);
    return data;
  };
  const body = (more: Record<string, unknown> = {}) => ({
    clientId,
    content: `A word from us: ${randomUUID()}.`,
    targets: { mode: 'group', clientId, platforms: ['x'] },
    schedule: { type: 'at', scheduledAt: next.at },
    ...more,
  });
  const count = async (): Promise<readonly number[]> => {
    const months = [next.month, later.month].map((month) => store.load(quota, quotaIdOf(workspaceId, month)));
    return (await Promise.all(months)).map(({ state }) => state.held);
  };
  const sweep = async (): Promise<void> => {
    const now = () => Date.now() + abandonMs + 1_000;
    const alone = async (_id: string, work: () => Promise<void>) => work();
    await sweepQuotas({ store, pool: world.adapters.pool, now }, alone, new AbortController().signal);
  };
  const idsOf = (made: Json): readonly string[] => (made.targets as readonly Json[]).map(({ id }) => id);
  const move = { scheduledAt: later.at };

  for (const [fault, action] of [
    ['quota:after-reserve', 'create'],
    ['quota:after-reserve', 'move'],
    ['quota:before-give-back', 'move'],
    ['campaign:before-give-back', 'shift'],
  ] as const) {
    t(
      `at ${fault} of a ${action}: the sweep leaves the places that are needed, and the repeat ends the call`,
      async () => {
        const campaign = await post('/campaigns', { name: 'Moved' });
        const made = await post('/posts', body({ campaignId: campaign.id }));
        const ids = idsOf(made);
        const [first = 0, second = 0] = await count();
        const days = Math.round((Date.parse(later.at) - Date.parse(next.at)) / 86_400_000);
        const [route, sent] = {
          create: ['/posts', body()],
          move: [`/post-targets/${ids[0]}/reschedule`, move],
          shift: [`/campaigns/${campaign.id}/shift`, { days }],
        }[action] as [string, object];
        const key = randomUUID();
        const moved = action === 'create' ? 0 : action === 'move' ? 1 : ids.length;
        await dies(route, sent, key, fault);
        // What a dead caller took is held, and what it left is not given back.
        const [held = 0, heldLater = 0] = await count();
        assert.ok(held + heldLater > first + second, `${held} and ${heldLater}`);
        await sweep();
        const reached = fault === 'quota:after-reserve' ? 0 : await movedOf(ids);
        assert.deepEqual(await count(), [first - reached, second + reached]);
        await post(route, sent, key);
        const created = action === 'create' ? ids.length : 0;
        assert.deepEqual(await count(), [first + created - moved, second + moved]);
        await sweep();
        assert.deepEqual(await count(), [first + created - moved, second + moved]);
      },
    );
  }

  const movedOf = async (ids: readonly string[]): Promise<number> => {
    const streams = await Promise.all(ids.map((id) => store.readStream(`target-${id}`)));
    return streams.filter((events) => events.some(({ type }) => type === 'TargetRescheduled')).length;
  };
});
