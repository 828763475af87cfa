import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/target.ts';
import { instantOf } from '#domain/zones.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Composer, composer } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { type Called, connect, type Mcp, mcpWorld, worked } from '#test/support/mcp.ts';
import { oauthOf } from '#test/support/oauth.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** What people ask an agent for, from names as they say them: each in at most four calls, over OAuth and with a key. */

const maxCalls = 4;
const day = 86_400_000;
const minute = 60_000;

type Data = Readonly<Record<string, unknown>>;
interface Row {
  readonly [member: string]: unknown;
  readonly targetId: string;
  readonly postId: string;
  readonly platform: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly reason: string;
  readonly whatToDo: string;
}

/** A conversation about one request. */
class Agent {
  readonly #mcp: Mcp;
  calls = 0;
  constructor(mcp: Mcp) {
    this.#mcp = mcp;
  }

  async call(name: string, args: Data = {}): Promise<Called> {
    this.calls += 1;
    const answer = await this.#mcp.call(name, args);
    worked(answer);
    return answer;
  }

  async ask(name: string, args: Data = {}): Promise<Data> {
    return (await this.call(name, args)).data;
  }

  /** The client that a person means. */
  async client(search: string): Promise<{ readonly clientId: string; readonly timezone: string }> {
    const { clients } = await this.ask('find_clients', { search });
    const [first, ...others] = clients as { clientId: string; timezone: string }[];
    assert.ok(first !== undefined && others.length === 0, `one client is ${search}`);
    return first;
  }
}

suite('requests of people', (t) => {
  let world: World;
  let northwind: Composer;
  let bakery: Composer;
  const clients: Record<'key' | 'oauth', Mcp | undefined> = { key: undefined, oauth: undefined };

  t.before(async () => {
    world = await mcpWorld();
    northwind = await composer(world, ['x', 'bluesky', 'linkedin', 'facebook'], {
      ...{ name: 'Northwind Traders', timezone: 'Europe/Berlin' },
    });
    bakery = await composer(world, ['x', 'bluesky'], { name: 'Bakery Berlin Mitte', timezone: 'Europe/Berlin' });
    const app = await oauthOf(world).register();
    const tokens = await oauthOf(world).tokensOf(app, {
      query: { scope: grantableScopes.join(' ') },
      result: { memberId: world.memberId, scopes: [...grantableScopes], mode: 'test' },
    });
    await world.settled();
    clients.key = await connect(world, world.testKey.secret);
    clients.oauth = await connect(world, tokens.access_token);
  });
  t.after(async () => {
    for (const mcp of Object.values(clients)) await mcp?.close();
    await world?.close();
  });

  const request = (what: string, carryOut: (agent: Agent) => Promise<void>): void => {
    for (const entrance of ['key', 'oauth'] as const) {
      t(`${what} (${entrance})`, async () => {
        const mcp = clients[entrance];
        assert.ok(mcp !== undefined);
        const agent = new Agent(mcp);
        await carryOut(agent);
        assert.ok(agent.calls > 0 && agent.calls <= maxCalls, `${agent.calls} calls`);
      });
    }
  };

  const context = () => contextOf(world.operator, testTwinIdOf(world.workspaceId));
  const tell = async (postId: string, targetId: string, ...commands: readonly TargetCommand[]): Promise<void> => {
    for (const one of commands) {
      await execute(world.store, target, targetId, one, context(), { partitionKey: postId });
    }
    await world.settled();
  };
  /** A post that somebody scheduled before. */
  const scheduled = async (composed: Composer, scheduledAt: string, more: Data = {}) => {
    const content = `Word ${randomUUID()}`;
    const schedule = { type: 'at', scheduledAt };
    const { data, text } = await world.tester.post('/posts', composed.body({ content, schedule, ...more }));
    assert.equal(typeof data.id, 'string', text);
    await world.settled();
    const targets = data.targets as readonly { id: string; platform: string; scheduledAt: string }[];
    return { postId: data.id, content, targets };
  };
  const storedTargets = async (postId: string) => {
    await world.settled();
    const { data } = await world.tester.get(`/posts/${postId}`);
    return data.targets as readonly {
      id: string;
      platform: string;
      status: string;
      scheduledAt: string;
      overrides: Data;
    }[];
  };
  const dayOf = (now: unknown, days: number): string =>
    new Date(Date.parse(String(now)) + days * day).toISOString().slice(0, 10);

  request('“Tuesday 9 in New York, on all of Northwind but LinkedIn”', async (agent) => {
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('Northwind');
    // The Tuesday after the next days.
    const ahead = 2 + ((9 - new Date(Date.parse(String(now)) + 2 * day).getUTCDay()) % 7);
    const scheduledLocal = `${dayOf(now, ahead)}T09:00`;
    const { postId } = await agent.ask('compose_post', {
      ...{ clientId, content: `New in store ${randomUUID()}`, action: 'schedule' },
      ...{ exceptPlatforms: ['linkedin'], scheduledLocal, timezone: 'America/New_York' },
    });
    const instant = instantOf(scheduledLocal, 'America/New_York');
    assert.equal(new Date(instant).getUTCDay(), 2);
    assert.deepEqual(
      (await storedTargets(String(postId))).map(({ platform, scheduledAt }) => [platform, scheduledAt]).toSorted(),
      [
        ['bluesky', instant],
        ['facebook', instant],
        ['x', instant],
      ],
    );
  });

  request('“What failed this week at the Berlin bakery, and why?”', async (agent) => {
    const { postId, targets } = await scheduled(bakery, new Date(Date.now() + 60 * minute).toISOString());
    const [broken] = targets;
    await tell(postId, broken?.id ?? '', { type: 'Start', now: new Date(Date.now() + 61 * minute).toISOString() }, {
      ...{ type: 'RecordFailed', attempt: 1, takeover: 0 },
      failure: { ...failure, category: 'reauth_required', code: 'token_revoked', message: 'The token was revoked.' },
    } as TargetCommand);
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('the Berlin bakery');
    const window = { from: `${dayOf(now, -3)}T00:00:00Z`, to: `${dayOf(now, 4)}T00:00:00Z` };
    const answer = await agent.call('find_targets', { clientId, statuses: ['failed'], ...window });
    const found = (answer.data.targets as Row[]).filter((one) => one.postId === postId);
    assert.deepEqual(
      found.map((one) => [one.targetId, one.reason, one.whatToDo]),
      [
        [
          ...[broken?.id, 'The token was revoked.'],
          'The holder of the account must connect it again, through a connect link for its client. Then call retry.',
        ],
      ],
    );
    assert.match(answer.text, /token was revoked\. What to do: The holder of the account must connect/);
  });

  request('“Move tomorrow’s posts of the bakery by two hours”', async (agent) => {
    const tomorrow = dayOf(new Date().toISOString(), 1);
    const posts = [
      await scheduled(bakery, `${tomorrow}T09:00:00.000Z`),
      await scheduled(bakery, `${tomorrow}T12:30:00.000Z`),
    ];
    const other = await scheduled(northwind, `${tomorrow}T10:00:00.000Z`);
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('bakery');
    const window = { from: `${dayOf(now, 1)}T00:00:00Z`, to: `${dayOf(now, 2)}T00:00:00Z` };
    await agent.ask('reschedule', { clientId, ...window, shiftMinutes: 120, idempotencyKey: randomUUID() });
    for (const { postId, targets } of posts) {
      const before = new Map(targets.map((one) => [one.id, Date.parse(one.scheduledAt)]));
      for (const one of await storedTargets(postId)) {
        assert.equal(Date.parse(one.scheduledAt) - (before.get(one.id) ?? 0), 120 * minute);
      }
    }
    for (const one of await storedTargets(other.postId)) assert.equal(one.scheduledAt, `${tomorrow}T10:00:00.000Z`);
  });

  request('“Cancel everything of Northwind next week, but leave X”', async (agent) => {
    const [inWeek, after] = [
      await scheduled(northwind, `${dayOf(new Date().toISOString(), 8)}T10:00:00.000Z`),
      await scheduled(northwind, `${dayOf(new Date().toISOString(), 20)}T10:00:00.000Z`),
    ];
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('northwind');
    const window = { from: `${dayOf(now, 7)}T00:00:00Z`, to: `${dayOf(now, 14)}T00:00:00Z` };
    await agent.ask('cancel', { clientId, ...window, exceptPlatforms: ['x'] });
    for (const { platform, status } of await storedTargets(inWeek.postId)) {
      assert.equal(status, platform === 'x' ? 'pending' : 'canceled', platform);
    }
    for (const { status } of await storedTargets(after.postId)) assert.equal(status, 'pending');
  });
});
